// How the replicas of a bucket exchange gradients: which holder sends which share to whom, step by
// step, until the owner of each chunk holds its whole gradient. Weights return along the same path
// in reverse. Invariant: a scheme moves shares and cannot modify them. Shares are added in the
// order of the run's tree (parallel/plan/reduction_tree.h), and rounding or compression would apply
// to leaves before they move, so the result is bit-identical for every scheme and layout.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/registry.h"
#include "parallel/plan/reduction_tree.h"

namespace concertina {

/// The holders of a bucket, 0 to n - 1, as seen by a scheme. Holder h owns chunk h.
struct ExchangeShape {
  std::vector<int> hosts;  // by holder, arbitrary numbers
  int holders() const { return static_cast<int>(hosts.size()); }
  bool operator==(const ExchangeShape&) const = default;
};

/// The holder's share of `chunk`, sent to `peer` or received from it.
struct ShareMove {
  int step = 1;  // within the phase, ascending; one peer per step to send to, and one to receive
                 // from
  int peer = 0, chunk = 0;
  bool operator==(const ShareMove&) const = default;
};

/// Moves that do not wait for each other. A holder begins a phase when it has completed the
/// previous one and added up the shares.
struct ExchangePhase {
  std::vector<ShareMove> sends, receives;  // each in ascending order of steps
  bool operator==(const ExchangePhase&) const = default;
};

/// The moves of one holder, by phase. All holders have the same number of phases.
using ExchangeRow = std::vector<ExchangePhase>;

struct ExchangeScheme {
  ExchangeRow (*row)(const ExchangeShape& shape, int holder) = nullptr;
  const char* about = "";
};

/// Returns all schemes listed in meson.build, by name.
std::span<const Entry<ExchangeScheme>> exchange_schemes();

/// The exchange settings of an assignment.
struct ExchangeChoice {
  std::string scheme = "all-to-all";
  std::vector<int> hosts{};  // by rank; empty: a single host
  bool operator==(const ExchangeChoice&) const = default;

  /// Throws Error{bad_input} if the scheme does not exist.
  const ExchangeScheme& find() const;
  ExchangeShape shape(const std::vector<int>& ranks) const;
};

/// Returns the rows of all holders and verifies them. Within a phase, both ends of a message use
/// the same step, in the same order. No holder sends to two peers in a step, or receives from two.
/// Each holder sends its share of every chunk except its own once, after it has received all it
/// ever will for that chunk. So every leaf reaches the chunk's owner once, and the exchange cannot
/// hang even on unbuffered, untagged channels, because each wait is for an earlier step or phase.
/// Throws Error{bad_input} for the first violation.
std::vector<ExchangeRow> exchange_rows(const Entry<ExchangeScheme>& scheme,
                                       const ExchangeShape& shape);
std::vector<ExchangeRow> exchange_rows(const ExchangeChoice& choice, const std::vector<int>& ranks);

/// Returns the reverse: owners send chunks of the new weights, and each holder forwards what its
/// peers wait for.
ExchangeRow backwards(const ExchangeRow& row);

/// Returns one line per holder: phases separated by ';', steps by ',', "2>1" for chunk 2 to holder
/// 1, "0<3" for chunk 0 from holder 3.
std::string to_text(const std::vector<ExchangeRow>& rows);

/// A part of a share: a tree node of one use of the bucket.
struct Piece {
  int use = 0;
  TreeNode node;
  auto operator<=>(const Piece&) const = default;
};
using Share = std::vector<Piece>;

struct PieceMerge {
  Piece left, right;
};

/// Returns the additions that are possible within `share`, in order, and applies them to it.
std::vector<PieceMerge> add_up(Share& share, int leaves);

/// Simulates the shares during an exchange.
class ShareFlow {
 public:
  /// `own`: what each holder has summed locally, for all chunks. Arguments must outlive the object.
  ShareFlow(const ExchangeScheme& scheme, const ExchangeShape& shape, const std::vector<Share>& own,
            int leaves);
  const ExchangeRow& row(int holder);
  /// Returns the share of `chunk` that `holder` has before `phase`, unless it has already sent it.
  Share share(int holder, int chunk, int phase);

 private:
  const ExchangeScheme& scheme_;
  const ExchangeShape& shape_;
  const std::vector<Share>& own_;
  const int leaves_;
  std::vector<std::optional<ExchangeRow>> rows_;
};

}  // namespace concertina
