// Times at which gradients of several holders have been exchanged and updated weights gathered;
// models parallel/runtime/gradient_exchange.h and STEP.
// Invariant: a bucket's exchange starts on a holder when its last gradient is done and the
// preceding buckets of the same holders have started, as FIFO channels require.
#pragma once

#include <memory>
#include <vector>

#include "parallel/simulate/exchange_clock.h"

namespace concertina {

class BucketClock {
 public:
  BucketClock(const Layout& layout, const Costs& costs, int ranks);

  /// Action `node` completes a gradient of `stage` at `end`. The last one starts the exchanges.
  void gradient(int stage, double end, int node);
  /// Time of the next start or end of a message; infinity if there is none.
  double next_time() const { return exchanges_.next_time(); }
  /// Handles that event. Returns the ranks that were waiting for an exchange that it completes.
  const std::vector<int>& advance(LinkClock& links);

  /// Completes the rank's exchanges of `stage`. Returns false if some are pending; advance()
  /// returns the rank later. Otherwise moves `now` to their end and sets `node` to the awaited
  /// action, if any.
  bool reduce(int rank, int stage, double& now, int& node);

  /// End of STEP's update on each rank if all ranks start it at `start`.
  std::vector<double> update(double start, LinkClock& links) const;

 private:
  struct Holder {
    int open = 0;  // number of the rank's stages whose last gradient is pending
    bool counted = false;
  };
  struct Item {
    std::vector<Holder> holders;
    int group = 0, exchange = 0;  // index in exchanges_
    std::shared_ptr<const ExchangeLoad> load;
  };
  /// Buckets with the same holders.
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
