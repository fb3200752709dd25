// When gradients that several ranks hold have been exchanged, and updated weights gathered: what
// parallel/runtime/gradient_exchange.h and STEP do, as times.
// Invariant: a bucket's exchange starts on a holder when its last gradient is done and the buckets
// of the same holders before it have started, as FIFO channels demand.
#pragma once

#include <memory>
#include <vector>

#include "parallel/simulate/exchange_clock.h"

namespace concertina {

class BucketClock {
 public:
  BucketClock(const Layout& layout, const Costs& costs, int ranks);

  /// A gradient of `stage` ends at `end`, by action `node`: its buckets start once it is the last.
  void gradient(int stage, double end, int node);
  /// When a message of an exchange starts or ends next; infinite: never.
  double next_time() const { return exchanges_.next_time(); }
  /// That event; ranks that have waited for what it completes.
  const std::vector<int>& advance(LinkClock& links);

  /// The rank's exchanges of `stage`: false if some are still open (then advance() will name the
  /// rank). Else moves `now` to their end, and `node` to the action that was waited for, if any.
  bool reduce(int rank, int stage, double& now, int& node);

  /// Ends of STEP's update on each rank, if all ranks start updating at `start`.
  std::vector<double> update(double start, LinkClock& links) const;

 private:
  struct Holder {
    int open = 0;  // stages of its rank whose last gradient is to come
    bool counted = false;
  };
  struct Item {
    std::vector<Holder> holders;
    int group = 0, exchange = 0;  // in exchanges_
    std::shared_ptr<const ExchangeLoad> load;
  };
  /// Buckets of equal holders.
  struct Group {
    std::unique_ptr<const ExchangeRoutes> there, back;
    std::vector<int> buckets;  // in order
    std::shared_ptr<const ExchangeLoad> gradients, weights;
  };
  double cpu_seconds(const ExchangeLoad& load, int bucket, int holder, bool adds) const;
  int holder_of(int bucket, int rank) const;
  double piece_bytes(int bucket) const;
  void add_item(int bucket, int group);

  const Costs& costs_;
  int ranks_;
  ExchangeClock exchanges_;
  std::vector<Item> items_;
  std::vector<Group> groups_;
  std::vector<std::vector<int>> buckets_of_;   // by stage
  std::vector<int> gradients_left_, rank_of_;  // by stage
  std::vector<bool> waiting_;                  // by rank
  std::vector<int> woken_;
};

}  // namespace concertina
