// When gradients that several ranks hold have been exchanged, and updated weights gathered: what
// parallel/runtime/gradient_exchange.h and STEP do, as times.
// Invariant: a bucket's exchange starts on a holder when its last gradient is done and the buckets
// of the same holders before it have started, as FIFO channels demand.
#pragma once

#include <vector>

#include "parallel/simulate/link_clock.h"

namespace concertina {

class BucketClock {
 public:
  BucketClock(const Layout& layout, const Costs& costs, int ranks);

  /// A bucket is done on one of its holders at `time`.
  struct Start {
    int bucket = 0, holder = 0;
    double time = 0;
    int node = -1;  // the action that did it
  };
  /// The starts that the end of a gradient of `stage` by action `node` brings.
  std::vector<Start> gradient(int stage, double end, int node);
  /// Ranks that have waited for what this start completes.
  std::vector<int> start(const Start& start, LinkClock& links);

  /// The rank's exchanges of `stage`: false if some are still open (then `start` will name the
  /// rank). Else moves `now` behind them, and `node` to the action that was waited for, if any.
  bool reduce(int rank, int stage, double& now, int& node);

  /// Ends of STEP's update on each rank, if all ranks start updating at `start`.
  std::vector<double> update(double start, LinkClock& links) const;

 private:
  struct Holder {
    bool ready = false, counted = false;
    int open = 0;       // stages of its rank whose last gradient is to come
    int missing = 0;    // parts from other holders
    double start = -1;  // of its exchange
    int node = -1;
    double arrived = 0;
    int late = -1;  // node of the action that the last arrival came from
  };
  struct Item {
    std::vector<Holder> holders;
    int group = 0;
  };
  void exchange(int bucket, int a, int b, LinkClock& links);
  double cpu_seconds(int bucket, int holder, bool pieces) const;
  int holder_of(int bucket, int rank) const;

  const Costs& costs_;
  int ranks_;
  std::vector<Item> items_;
  std::vector<std::vector<int>> groups_;           // buckets of equal holders, in order
  std::vector<std::vector<std::size_t>> started_;  // by group and holder: how many
  std::vector<std::vector<int>> buckets_of_;       // by stage
  std::vector<int> gradients_left_, rank_of_;      // by stage
  std::vector<bool> waiting_;                      // by rank
};

}  // namespace concertina
