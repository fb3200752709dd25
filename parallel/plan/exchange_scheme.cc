#include "parallel/plan/exchange_scheme.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/error.h"
#include "core/index.h"
#include "exchange_table.h"

namespace concertina {

CONCERTINA_REGISTRY(CONCERTINA_EXCHANGES, ExchangeScheme, exchange_, exchange_schemes)

const ExchangeScheme& ExchangeChoice::find() const {
  return lookup(exchange_schemes(), scheme, "exchange scheme", "parallel.exchange");
}

ExchangeShape ExchangeChoice::shape(const std::vector<int>& ranks) const {
  ExchangeShape shape;
  for (const int rank : ranks) shape.hosts.push_back(hosts.empty() ? 0 : hosts.at(at(rank)));
  return shape;
}

namespace {

/// A move, as seen from one of its ends.
struct Seen {
  int from, to, step, chunk;
  bool operator==(const Seen&) const = default;
};

class RowsCheck {
 public:
  RowsCheck(std::string_view name, const std::vector<ExchangeRow>& rows)
      : name_(name), rows_(rows), holders_(static_cast<int>(rows.size())) {}

  void run() const {
    for (int h = 0; h < holders_; ++h)
      if (rows_[at(h)].size() != rows_[0].size()) refuse(h, "has a different number of phases");
    for (std::size_t phase = 0; phase < rows_[0].size(); ++phase) {
      for (int h = 0; h < holders_; ++h) {
        require_steps(h, rows_[at(h)][phase].sends);
        require_steps(h, rows_[at(h)][phase].receives);
      }
      require_matches(phase);
    }
    for (int h = 0; h < holders_; ++h) require_shares(h);
  }

 private:
  [[noreturn]] void refuse(int holder, const std::string& what) const {
    throw_input(fmt::format("exchange scheme '{}' is invalid for {} holders: holder {} {}", name_,
                            holders_, holder, what),
                "parallel.exchange", "another scheme, or fix this one");
  }

  void require_steps(int holder, const std::vector<ShareMove>& moves) const {
    for (std::size_t i = 0; i < moves.size(); ++i) {
      const auto& [step, peer, chunk] = moves[i];
      if (peer < 0 || peer >= holders_ || peer == holder || chunk < 0 || chunk >= holders_)
        refuse(holder, fmt::format("uses the invalid holder {} or chunk {}", peer, chunk));
      if (i > 0 && moves[i - 1].step > step)
        refuse(holder, fmt::format("has step {} after step {}", step, moves[i - 1].step));
      if (i > 0 && moves[i - 1].step == step && moves[i - 1].peer != peer)
        refuse(holder, fmt::format("has messages with two peers ({} and {}) in step {}",
                                   moves[i - 1].peer, peer, step));
    }
  }

  /// Checks that the k-th message a holder sends to another is the k-th one the other receives.
  void require_matches(std::size_t phase) const {
    std::vector<Seen> sent, received;
    for (int h = 0; h < holders_; ++h) {
      for (const auto& [step, peer, chunk] : rows_[at(h)][phase].sends)
        sent.push_back({h, peer, step, chunk});
      for (const auto& [step, peer, chunk] : rows_[at(h)][phase].receives)
        received.push_back({peer, h, step, chunk});
    }
    const auto ends = [](const Seen& one) { return std::pair(one.from, one.to); };
    std::ranges::stable_sort(sent, {}, ends);
    std::ranges::stable_sort(received, {}, ends);
    const auto [mine, theirs] = std::ranges::mismatch(sent, received);
    if (mine == sent.end() && theirs == received.end()) return;
    const bool lacks =
        theirs == received.end() || (mine != sent.end() && ends(*mine) < ends(*theirs));
    const Seen& one = lacks ? *mine : *theirs;
    refuse(lacks ? one.to : one.from,
           fmt::format("does not {} chunk {} {} holder {} in step {} of phase {}",
                       lacks ? "receive" : "send", one.chunk, lacks ? "from" : "to",
                       lacks ? one.from : one.to, one.step, phase));
  }

  /// Checks that each share is sent exactly once, after every receive for its chunk.
  void require_shares(int holder) const {
    constexpr int kNever = -1;
    std::vector<int> sent(at(holders_), kNever);  // by chunk: the phase in which it was sent
    const ExchangeRow& row = rows_[at(holder)];
    for (int phase = 0; phase < static_cast<int>(row.size()); ++phase)
      for (const ShareMove& send : row[at(phase)].sends) {
        if (send.chunk == holder) refuse(holder, "sends its own chunk");
        if (std::exchange(sent[at(send.chunk)], phase) != kNever)
          refuse(holder, fmt::format("sends chunk {} twice", send.chunk));
      }
    for (int chunk = 0; chunk < holders_; ++chunk)
      if (chunk != holder && sent[at(chunk)] == kNever)
        refuse(holder, fmt::format("never sends chunk {}", chunk));
    for (int phase = 0; phase < static_cast<int>(row.size()); ++phase)
      for (const ShareMove& receive : row[at(phase)].receives)
        if (receive.chunk != holder && sent[at(receive.chunk)] <= phase)
          refuse(holder,
                 fmt::format("receives a share of chunk {} in phase {}, after sending that chunk",
                             receive.chunk, phase));
  }

  const std::string_view name_;
  const std::vector<ExchangeRow>& rows_;
  const int holders_;
};

}  // namespace

std::vector<ExchangeRow> exchange_rows(const Entry<ExchangeScheme>& scheme,
                                       const ExchangeShape& shape) {
  std::vector<ExchangeRow> rows;
  for (int h = 0; h < shape.holders(); ++h) rows.push_back(scheme.value.row(shape, h));
  if (!rows.empty()) RowsCheck(scheme.name, rows).run();
  return rows;
}

std::vector<ExchangeRow> exchange_rows(const ExchangeChoice& choice,
                                       const std::vector<int>& ranks) {
  return exchange_rows({choice.scheme, choice.find()}, choice.shape(ranks));
}

ExchangeRow backwards(const ExchangeRow& row) {
  const auto turned = [](std::vector<ShareMove> moves) {
    std::ranges::reverse(moves);
    for (ShareMove& move : moves) move.step = -move.step;
    return moves;
  };
  ExchangeRow back;
  for (auto phase = row.rbegin(); phase != row.rend(); ++phase)
    back.push_back({turned(phase->receives), turned(phase->sends)});
  return back;
}

std::string to_text(const std::vector<ExchangeRow>& rows) {
  const auto phase_text = [](const ExchangePhase& phase) {
    std::map<int, std::vector<std::string>> steps;
    for (const auto& [step, peer, chunk] : phase.sends)
      steps[step].push_back(fmt::format("{}>{}", chunk, peer));
    for (const auto& [step, peer, chunk] : phase.receives)
      steps[step].push_back(fmt::format("{}<{}", chunk, peer));
    std::vector<std::string> texts;
    for (const auto& [step, moves] : steps)
      texts.push_back(fmt::format("{}", fmt::join(moves, " ")));
    return fmt::format("{}", fmt::join(texts, ", "));
  };
  std::string text;
  for (const ExchangeRow& row : rows) {
    std::vector<std::string> phases;
    for (const ExchangePhase& phase : row) phases.push_back(phase_text(phase));
    text += fmt::format("{}\n", fmt::join(phases, "; "));
  }
  return text;
}

std::vector<PieceMerge> add_up(Share& share, int leaves) {
  std::map<int, std::vector<TreeNode>> uses;
  for (const Piece& piece : share) uses[piece.use].push_back(piece.node);
  share.clear();
  std::vector<PieceMerge> additions;
  for (auto& [use, nodes] : uses) {
    for (const TreeMerge& merge : merges(nodes, leaves))
      additions.push_back({{use, merge.left}, {use, merge.right}});
    for (const TreeNode& node : nodes) share.push_back({use, node});
  }
  return additions;
}

ShareFlow::ShareFlow(const ExchangeScheme& scheme, const ExchangeShape& shape,
                     const std::vector<Share>& own, int leaves)
    : scheme_(scheme), shape_(shape), own_(own), leaves_(leaves), rows_(own.size()) {}

const ExchangeRow& ShareFlow::row(int holder) {
  std::optional<ExchangeRow>& row = rows_[at(holder)];
  if (!row) row = scheme_.row(shape_, holder);
  return *row;
}

Share ShareFlow::share(int holder, int chunk, int phase) {
  Share share = own_[at(holder)];
  for (int before = 0; before < phase; ++before)
    for (const ShareMove& receive : row(holder)[at(before)].receives) {
      if (receive.chunk != chunk) continue;
      const Share more = this->share(receive.peer, chunk, before);
      share.insert(share.end(), more.begin(), more.end());
    }
  if (phase > 0) add_up(share, leaves_);
  return share;
}

}  // namespace concertina
