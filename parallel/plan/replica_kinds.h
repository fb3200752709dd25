// The replicas of a layout that are alike, so that one of each kind is planned and simulated in
// place of all of them. A replica is the pipelines between two cuts; at a cut, all ranks before it
// are below all ranks after it, and none is missing between them. So no two replicas share a rank,
// and each is another one with its ranks, stages and microbatches moved. A layout without such cuts
// is one replica. Invariant: pure; time and memory are proportional to the stages of the layout.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "parallel/plan/schedule.h"

namespace concertina {

/// The first pipeline, stage, rank and microbatch of a replica.
struct ReplicaPlace {
  int pipeline = 0, stage = 0, rank = 0, microbatch = 0;
};

class ReplicaKinds {
 public:
  /// Appends what two replicas must have in common, beside their stages, to be alike. `end` is the
  /// place after the replica.
  using Traits = std::function<void(const ReplicaPlace& begin, const ReplicaPlace& end,
                                    std::vector<double>& key)>;
  /// Replicas begin at multiples of `run` microbatches, such as the leaves of the gradient sum.
  explicit ReplicaKinds(const Layout& layout, int run = 1, const Traits& traits = {});

  /// No two replicas are alike.
  bool all_differ() const { return places_.size() == kinds_.size() + 1; }
  /// One replica of each kind; the first one is that of the whole layout.
  const Layout& layout() const { return layout_; }
  /// By rank of the whole layout: the rank of layout() that does the same.
  std::vector<int> ranks() const;
  /// The stages of the whole layout that layout() has, by its numbers.
  std::vector<int> stages() const;

  /// A plan of the whole layout, from a plan of layout().
  Plan spread(const Plan& plan) const;
  /// The reverse; nothing if two replicas that are alike do not have the same actions.
  std::optional<Plan> gather(const Plan& whole) const;

 private:
  struct Kind {
    int replica = 0;       // the first one of the kind
    ReplicaPlace at, end;  // in layout()
  };
  const Kind& kind(std::size_t replica) const;
  void add_kind(const Layout& layout, std::size_t replica, int run);

  Layout layout_;
  std::vector<ReplicaPlace> places_;  // by replica, and the end
  std::vector<int> kind_of_;          // by replica
  std::vector<Kind> kinds_;
};

}  // namespace concertina
