#include "experiments/cache/slot_plan.h"

#include <algorithm>
#include <utility>

namespace concertina {
namespace {

constexpr std::size_t kTables = 4;

}  // namespace

SlotPlan::SlotPlan(OrderOf order, std::uint64_t samples, std::uint64_t views, std::uint64_t slots,
                   std::uint64_t first, std::uint64_t batch)
    : order_(std::move(order)),
      slots_(slots / views),
      batch_(batch),
      views_(views),
      comes_first_(samples) {
  now_.reserve(samples);
  next_.reserve(samples);
  for (std::uint64_t v = 0; v < views; ++v) {
    View& view = views_[(first + v) % views];
    view.epoch = first + v;
    view.tables.assign(kTables, std::vector<std::int64_t>(samples, -1));
    for (; view.count < slots_; ++view.count)
      view.free.push_back({(first + v) % views * slots_ + view.count, 0});
  }
}

std::int64_t SlotPlan::before(std::uint64_t epoch, std::uint64_t sample) {
  View& view = views_[epoch % views_.size()];
  while (view.epoch < epoch) advance(view);
  if (epoch + (kTables - 1) * views_.size() < view.epoch) return -1;
  return table(view, epoch)[sample];
}

/// Computes the table for the view's next epoch from the accesses during its newest epoch.
void SlotPlan::advance(View& view) {
  order_(view.epoch, now_);
  order_(view.epoch + views_.size(), next_);
  std::fill(comes_first_.begin(), comes_first_.end(), false);
  for (std::size_t i = 0; i < std::min<std::size_t>(slots_, next_.size()); ++i)
    comes_first_[next_[i]] = true;
  const std::vector<std::int64_t>& from = table(view, view.epoch);
  view.epoch += views_.size();
  std::vector<std::int64_t>& to = table(view, view.epoch);
  std::fill(to.begin(), to.end(), -1);
  for (const std::uint64_t sample : now_) {
    const std::int64_t slot = from[sample];
    if (comes_first_[sample] && slot >= 0) {
      to[sample] = slot;
    } else if (slot >= 0) {
      view.free[(view.first + view.count++) % slots_] = {static_cast<std::uint64_t>(slot),
                                                         view.seen + batch_};
    } else if (comes_first_[sample] && view.count > 0 && view.free[view.first].from <= view.seen) {
      to[sample] = static_cast<std::int64_t>(view.free[view.first].slot);
      view.first = (view.first + 1) % slots_;
      --view.count;
    }
    ++view.seen;
  }
}

}  // namespace concertina
