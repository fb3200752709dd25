// New weights from the owners of their parts back to all holders: by an all-gather where the
// exchange of their gradients has one phase, else by the way of the gradients backwards.
// Invariant: all ranks start the buckets of a group in one order; no call after the constructor
// allocates.
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
  /// `weights`: of this rank, by bucket; empty where it has none. All outlive it.
  WeightGather(const Assignment& assignment, int rank, const std::vector<View>& weights,
               const Groups& groups);

  /// In the next step these buckets have no part.
  void skip(SkippedBuckets skipped);
  /// This rank's part of `bucket` is new. By ascending bucket in each step.
  void start(std::size_t bucket);
  /// Waits until all parts of what was started are there.
  void wait();

 private:
  struct Gather {
    std::vector<Bytes> parts;  // of each holder
    int me = 0;
    Communicator* group = nullptr;     // of an all-gather, or
    PhasedExchange* phases = nullptr;  // the exchange
    int number = 0;                    // in that
  };
  void add_phases(const ExchangeRow& row, Gather& bucket);

  std::vector<Gather> buckets_;
  std::map<std::vector<int>, PhasedExchange> phased_;  // by holders
  std::vector<Work> works_;
};

}  // namespace concertina
