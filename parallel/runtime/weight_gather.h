// Sends new weights from the owners of parts to all holders: by an all-gather if the gradient
// exchange has one phase, otherwise along the path of the gradients in reverse.
// Invariant: all ranks start the buckets of a group in the same order; nothing is allocated after
// construction.
#pragma once

#include <map>
#include <vector>

#include "core/model/stage.h"
#include "parallel/plan/assignment.h"
#include "parallel/runtime/groups.h"
#include "parallel/runtime/phased_exchange.h"

namespace concertina {

class WeightGather {
 public:
  /// `weights`: this rank's, by bucket; empty if not held here. All references must outlive it.
  WeightGather(const Assignment& assignment, int rank, const std::vector<View>& weights,
               const Groups& groups);

  /// Excludes these buckets from the next step.
  void skip(SkippedBuckets skipped);
  /// Starts sending this rank's new part of `bucket`. Call in bucket order in each step.
  void start(std::size_t bucket);
  /// Waits until all parts of the started buckets have arrived.
  void wait();

 private:
  struct Gather {
    std::vector<Bytes> parts;  // by holder
    int me = 0;
    Communicator* group = nullptr;     // set for an all-gather
    PhasedExchange* phases = nullptr;  // set for an exchange
    int number = 0;                    // number of the exchange
  };
  void add_phases(const ExchangeRow& row, Gather& bucket);

  std::vector<Gather> buckets_;
  std::map<std::vector<int>, PhasedExchange> phased_;  // by holders
  std::vector<Work> works_;
};

}  // namespace concertina
