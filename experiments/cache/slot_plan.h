// Assigns the slots of a cache that has fewer slots than there are samples. Invariant: a pure
// function of the order of the epochs, so that all ranks of a host agree.
//
// Slots go to the samples that come first in the next epoch of the same view (Belady 1966: evict
// what is needed last), so the first microbatches of an epoch are read completely; any other
// selection would leave most microbatches with a sample that has to be computed. Once a sample has
// been read, its slot can be reused for a sample that is computed later in the epoch.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace concertina {

class SlotPlan {
 public:
  /// Writes the samples of an epoch in order.
  using OrderOf = std::function<void(std::uint64_t epoch, std::vector<std::uint64_t>& order)>;
  /// Nothing is cached before epoch `first`. `samples`: the size of the largest epoch. A slot can
  /// be reused `batch` samples after its sample was read, that is, in a later step.
  SlotPlan(OrderOf order, std::uint64_t samples, std::uint64_t views, std::uint64_t slots,
           std::uint64_t first, std::uint64_t batch);

  /// The slot of `sample` until epoch `epoch` reaches it (before), and from then on (after); -1:
  /// none. `epoch` must be at least `first`; old epochs are forgotten.
  std::int64_t before(std::uint64_t epoch, std::uint64_t sample);
  std::int64_t after(std::uint64_t epoch, std::uint64_t sample) {
    return before(epoch + views_.size(), sample);
  }

 private:
  struct Free {
    std::uint64_t slot = 0, from = 0;  // `from`: number of earlier samples of the view
  };
  struct View {
    std::uint64_t epoch = 0;                        // epoch of the newest table
    std::uint64_t seen = 0;                         // samples visited
    std::vector<std::vector<std::int64_t>> tables;  // [epoch modulo their number][sample]
    std::vector<Free> free;                         // ring of `count` elements from `first`
    std::size_t first = 0, count = 0;
  };
  std::vector<std::int64_t>& table(View& view, std::uint64_t epoch) const {
    return view.tables[epoch / views_.size() % view.tables.size()];
  }
  void advance(View& view);

  const OrderOf order_;
  const std::uint64_t slots_, batch_;  // slots_ is per view
  std::vector<View> views_;
  std::vector<std::uint64_t> now_, next_;  // orders
  std::vector<bool> comes_first_;
};

}  // namespace concertina
