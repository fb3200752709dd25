#include "parallel/plan/moves.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>

#include "core/error.h"
#include "core/index.h"

namespace concertina {
namespace {

/// Memory and traffic that a rank needs to change a bucket: bytes of blocks to allocate, bytes to
/// release afterwards, and bytes to send.
struct Demand {
  int rank = 0;
  std::size_t makes = 0, gives = 0;
  std::size_t out = 0;
};

struct BucketChange {
  std::size_t bucket = 0;
  std::vector<std::size_t> copies;  // copies of the bucket; they are filled before its blocks are
                                    // released
  std::vector<Move> moves;
  std::vector<Demand> demands;  // by ascending rank
};

/// Ranks of `holders` on the host of `rank`, or all holders if there are none.
std::vector<int> nearest(const std::vector<int>& holders, int rank, const std::vector<int>& hosts) {
  std::vector<int> near;
  if (!hosts.empty())
    for (const int holder : holders)
      if (hosts[at(holder)] == hosts[at(rank)]) near.push_back(holder);
  return near.empty() ? holders : near;
}

class ChangeFinder {
 public:
  ChangeFinder(const Assignment& from, const Assignment& to, std::size_t kinds,
               const std::vector<int>& hosts)
      : from_(from), to_(to), kinds_(kinds), hosts_(hosts) {}

  BucketChange of(std::size_t bucket) {
    change_ = {bucket, {}, {}, {}};
    demands_.clear();
    const std::vector<int>&before = from_.owners[bucket].ranks, &after = to_.owners[bucket].ranks;
    change_weights(bucket, bucket);
    for (const std::size_t copy : copies_of(bucket)) {
      change_.copies.push_back(copy);
      change_weights(copy, copy < from_.buckets.size() ? copy : bucket);
    }
    for (const int rank : after) gain_kinds(rank, before);
    for (const int rank : before)
      if (const Part* old = own_state(from_, bucket, rank);
          old != nullptr && !keeps_own_state(from_, to_, bucket, rank))
        demands_[rank].gives += block_bytes(old->count(), kinds_);
    for (const Move& move : change_.moves) {
      if (move.from == move.to) continue;
      demands_[move.from].out += move.bytes(kinds_);
    }
    for (auto& [rank, demand] : demands_) {
      demand.rank = rank;
      change_.demands.push_back(demand);
    }
    return std::move(change_);
  }

 private:
  std::size_t weight_bytes() const {
    return block_bytes(from_.buckets[change_.bucket].elements, 1);
  }

  /// Copies of `bucket` in either assignment.
  std::vector<std::size_t> copies_of(std::size_t bucket) const {
    std::vector<std::size_t> found;
    for (const Assignment* one : {&from_, &to_})
      for (std::size_t b = bucket + 1; b < one->buckets.size(); ++b)
        if (one->buckets[b].copy_of == static_cast<int>(bucket) &&
            std::find(found.begin(), found.end(), b) == found.end())
          found.push_back(b);
    return found;
  }

  /// `source` is the bucket that holds these weights before the change.
  void change_weights(std::size_t bucket, std::size_t source) {
    for (int rank = 0; rank < from_.world; ++rank) {
      const bool before = holds(from_, bucket, rank), after = holds(to_, bucket, rank);
      if (after && !before) gain_weights(bucket, source, rank);
      if (before && !after) demands_[rank].gives += weight_bytes();
    }
  }

  /// Splits the transfer over the nearest holders; a rank with the weights copies them locally.
  void gain_weights(std::size_t bucket, std::size_t source, int rank) {
    demands_[rank].makes += weight_bytes();
    const std::vector<int> sources = holds(from_, source, rank)
                                         ? std::vector<int>{rank}
                                         : nearest(from_.owners[source].ranks, rank, hosts_);
    const std::vector<Part> shares =
        split_bucket(from_.buckets[change_.bucket], static_cast<int>(sources.size()));
    for (std::size_t i = 0; i < sources.size(); ++i)
      if (shares[i].count() > 0)
        change_.moves.push_back(
            {bucket, false, shares[i].begin, shares[i].end, sources[i], rank, source});
  }

  void gain_kinds(int rank, const std::vector<int>& owners) {
    const Part* part = own_state(to_, change_.bucket, rank);
    if (part == nullptr || keeps_own_state(from_, to_, change_.bucket, rank)) return;
    demands_[rank].makes += block_bytes(part->count(), kinds_);
    for (const int owner : owners) {
      const Part* old = own_state(from_, change_.bucket, owner);
      if (old == nullptr) continue;
      const std::size_t begin = std::max(part->begin, old->begin),
                        end = std::min(part->end, old->end);
      if (begin < end) change_.moves.push_back({change_.bucket, true, begin, end, owner, rank});
    }
  }

  const Assignment &from_, &to_;
  std::size_t kinds_;
  const std::vector<int>& hosts_;
  BucketChange change_;
  std::map<int, Demand> demands_;
};

/// Groups changes that differ only in size into classes. The changes in a class are handled in
/// order, and only the next one of each class is compared with the other classes.
std::vector<std::vector<BucketChange>> classes_of(std::vector<BucketChange> changes,
                                                  const Assignment& from, const Assignment& to) {
  std::map<std::vector<std::vector<int>>, std::vector<BucketChange>> classes;
  for (BucketChange& change : changes) {
    const std::vector<int> trained{from.buckets[change.bucket].frozen,
                                   to.buckets[change.bucket].frozen};
    classes[{from.owners[change.bucket].ranks, to.owners[change.bucket].ranks, trained}].push_back(
        std::move(change));
  }
  std::vector<std::vector<BucketChange>> result;
  for (auto& [key, members] : classes) result.push_back(std::move(members));
  return result;
}

using Classes = std::vector<std::vector<BucketChange>>;

/// Selects the next change.
enum class Order {
  even,     // from the class that has moved the smallest fraction, so all rounds are alike
  sparing,  // the change with the smallest excess over the ranks' larger states
};

/// Packs changes into rounds.
class RoundPacker {
 public:
  RoundPacker(const Assignment& from, const Assignment& to, std::size_t kinds, std::size_t budget) {
    for (int rank = 0; rank < from.world; ++rank) {
      const std::size_t before = state_bytes(from, rank, kinds).total(),
                        after = state_bytes(to, rank, kinds).total();
      larger_.push_back(std::max(before, after));
      limit_.push_back(larger_.back() + (budget > 0 ? budget : larger_.back() / 4));
      used_.push_back(before);
    }
    open_ = used_;
    plan_.peak_bytes = used_;
  }

  MovePlan pack(const Classes& classes, Order order) {
    std::vector<std::size_t> next(classes.size(), 0);
    std::vector<double> moved(classes.size(), 0), all;  // by class
    for (const std::vector<BucketChange>& members : classes) {
      all.push_back(1);
      for (const BucketChange& change : members) all.back() += bytes_of(change);
    }
    for (;;) {
      std::optional<std::size_t> best;
      double least = 0;
      for (std::size_t c = 0; c < classes.size(); ++c) {
        if (next[c] == classes[c].size()) continue;
        const BucketChange& change = classes[c][next[c]];
        const double rank = order == Order::sparing ? excess_of(change)
                                                    : (moved[c] + bytes_of(change) / 2) / all[c];
        if (!best || rank < least) least = rank, best = c;
      }
      if (!best) break;
      const BucketChange& change = classes[*best][next[*best]++];
      moved[*best] += bytes_of(change);
      add(change);
    }
    close();
    for (std::size_t r = 0; r < larger_.size(); ++r)
      plan_.extra_bytes.push_back(plan_.peak_bytes[r] - std::min(plan_.peak_bytes[r], larger_[r]));
    return std::move(plan_);
  }

  /// Whether no rank exceeds its limit in `plan`.
  bool within_limits(const MovePlan& plan) const {
    for (std::size_t r = 0; r < limit_.size(); ++r)
      if (plan.peak_bytes[r] > limit_[r]) return false;
    return true;
  }

 private:
  static double bytes_of(const BucketChange& change) {
    std::size_t bytes = 0;
    for (const Demand& one : change.demands) bytes += one.out + one.makes;
    return static_cast<double>(bytes);
  }

  /// Returns the maximum excess of any rank over its larger state if only this change came next.
  /// Negative if all ranks have free memory.
  double excess_of(const BucketChange& change) const {
    double most = -std::numeric_limits<double>::infinity();
    for (const Demand& one : change.demands)
      most =
          std::max(most, static_cast<double>(used_[at(one.rank)]) + static_cast<double>(one.makes) -
                             static_cast<double>(larger_[at(one.rank)]));
    return most;
  }

  bool fits(const BucketChange& change) const {
    return std::all_of(change.demands.begin(), change.demands.end(), [&](const Demand& one) {
      return open_[at(one.rank)] + one.makes <= limit_[at(one.rank)];
    });
  }

  void add(const BucketChange& change) {
    if (!round_.buckets.empty() && !fits(change)) close();
    for (const Demand& one : change.demands) {
      const std::size_t rank = at(one.rank);
      open_[rank] += one.makes;
      used_[rank] += one.makes;
      used_[rank] -= one.gives;
      plan_.peak_bytes[rank] = std::max(plan_.peak_bytes[rank], open_[rank]);
    }
    round_.buckets.push_back(change.bucket);
    round_.buckets.insert(round_.buckets.end(), change.copies.begin(), change.copies.end());
    round_.moves.insert(round_.moves.end(), change.moves.begin(), change.moves.end());
  }

  void close() {
    if (!round_.buckets.empty()) plan_.rounds.push_back(std::move(round_));
    round_ = {};
    open_ = used_;
  }

  std::vector<std::size_t> larger_, limit_;
  std::vector<std::size_t> used_;  // by rank, after the round
  std::vector<std::size_t> open_;  // by rank, during the round, before anything is released
  MoveRound round_;
  MovePlan plan_;
};

}  // namespace

bool holds(const Assignment& assignment, std::size_t bucket, int rank) {
  return bucket < assignment.owners.size() && assignment.owners[bucket].index_of(rank) >= 0;
}

const Part* own_state(const Assignment& assignment, std::size_t bucket, int rank) {
  if (!holds(assignment, bucket, rank)) return nullptr;
  const BucketOwners& owners = assignment.owners[bucket];
  const Bucket& one = assignment.buckets[bucket];
  const bool kept = !one.frozen || (assignment.keeps_frozen_state && one.copy_of < 0);
  if (!kept) return nullptr;
  return &owners.parts[at(owners.index_of(rank))];
}

bool keeps_own_state(const Assignment& from, const Assignment& to, std::size_t bucket, int rank) {
  const Part *before = own_state(from, bucket, rank), *after = own_state(to, bucket, rank);
  const std::size_t count = before == nullptr ? 0 : before->count();
  if (count != (after == nullptr ? 0 : after->count())) return false;
  return count == 0 || before->begin == after->begin;
}

std::size_t block_bytes(std::size_t elements, std::size_t count) {
  return count * align_up(elements * sizeof(float));
}

StateBytes state_bytes(const Assignment& assignment, int rank, std::size_t kinds) {
  StateBytes bytes;
  for (std::size_t b = 0; b < assignment.buckets.size(); ++b) {
    if (assignment.owners[b].index_of(rank) < 0) continue;
    bytes.weights += block_bytes(assignment.buckets[b].elements, 1);
    if (const Part* part = own_state(assignment, b, rank))
      bytes.optimizer += block_bytes(part->count(), kinds);
  }
  return bytes;
}

std::size_t MovePlan::bytes(std::size_t kinds) const {
  std::size_t sum = 0;
  for (const MoveRound& round : rounds)
    for (const Move& move : round.moves)
      if (move.from != move.to) sum += move.bytes(kinds);
  return sum;
}

MovePlan plan_moves(const Assignment& from, const Assignment& to, std::size_t kinds,
                    const std::vector<int>& hosts, std::size_t budget) {
  CONCERTINA_CHECK(from.world == to.world, "a move from {} ranks to {}", from.world, to.world);
  ChangeFinder finder(from, to, kinds, hosts);
  std::vector<BucketChange> changes;
  for (std::size_t b = 0; b < std::min(from.buckets.size(), to.buckets.size()); ++b) {
    if (from.buckets[b].copy_of >= 0) break;  // handled with their originals
    if (BucketChange change = finder.of(b); !change.demands.empty())
      changes.push_back(std::move(change));
  }
  Classes classes = classes_of(std::move(changes), from, to);
  // Largest first: small changes fill the remaining memory of a round.
  for (std::vector<BucketChange>& members : classes)
    std::ranges::stable_sort(members, std::greater(), [&](const BucketChange& change) {
      return from.buckets[change.bucket].elements;
    });
  RoundPacker packer(from, to, kinds, budget);
  MovePlan even = packer.pack(classes, Order::even);
  if (packer.within_limits(even)) return even;
  return RoundPacker(from, to, kinds, budget).pack(classes, Order::sparing);
}

}  // namespace concertina
