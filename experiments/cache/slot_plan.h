// Which samples have a slot of a cache that has fewer slots than there are samples.
// Invariant: a pure function of the order of the epochs, so that all ranks of a host agree.
//
// The samples that come first in the next epoch of the same view have one (Belady 1966: what is
// needed last goes first), so the first microbatches of an epoch are read as a whole; any other
// share of the samples would leave most microbatches with one that has to be computed. The slot of
// a sample that was read goes to one that is computed later in the epoch.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace concertina {

class SlotPlan {
 public:
  /// The samples of an epoch, in its order.
  using OrderOf = std::function<void(std::uint64_t epoch, std::vector<std::uint64_t>& order)>;
  /// Nothing is cached before epoch `first`. `samples`: of the largest epoch. A slot is free for
  /// another sample `batch` samples after it was read: in another step.
  SlotPlan(OrderOf order, std::uint64_t samples, std::uint64_t views, std::uint64_t slots,
           std::uint64_t first, std::uint64_t batch);

  /// Where the entry of `sample` is when epoch `epoch` comes to it, and where it is from then on;
  /// -1 is nowhere. `epoch` is not below `first`; what is long over is not known any more.
  std::int64_t before(std::uint64_t epoch, std::uint64_t sample);
  std::int64_t after(std::uint64_t epoch, std::uint64_t sample) {
    return before(epoch + views_.size(), sample);
  }

 private:
  struct Free {
    std::uint64_t slot = 0, from = 0;  // samples of the view that came before
  };
  struct View {
    std::uint64_t epoch = 0;                        // of the newest table
    std::uint64_t seen = 0;                         // samples
    std::vector<std::vector<std::int64_t>> tables;  // by epoch modulo their number, by sample
    std::vector<Free> free;                         // a ring: `count` of them from `first`
    std::size_t first = 0, count = 0;
  };
  std::vector<std::int64_t>& table(View& view, std::uint64_t epoch) const {
    return view.tables[epoch / views_.size() % view.tables.size()];
  }
  void advance(View& view);

  const OrderOf order_;
  const std::uint64_t slots_, batch_;  // slots: of each view
  std::vector<View> views_;
  std::vector<std::uint64_t> now_, next_;  // orders
  std::vector<bool> comes_first_;
};

}  // namespace concertina
