#include "parallel/runtime/row_losses.h"

#include <algorithm>

#include "core/error.h"

namespace concertina {

RowLosses::RowLosses(const std::vector<LocalStage>& stages, int microbatches)
    : slot_(static_cast<std::size_t>(microbatches)), sums_(static_cast<std::size_t>(microbatches)) {
  for (const LocalStage& one : stages) {
    if (!one.info.last) continue;
    rows_ = one.stage->memory().loss_rows;
    for (int m = one.info.first_microbatch; m < one.info.last_microbatch; ++m)
      slot_[static_cast<std::size_t>(m)] = slots_++;
  }
  kept_.reserve(slots_);
}

void RowLosses::attach(Arena& arena, Memory& memory) {
  memory_ = &memory;
  all_ = arena.take(slots_ * rows_, DType::f32, "losses of rows");
  if (!memory.on_host()) host_.reserve(all_.bytes());
}

void RowLosses::begin() {
  std::fill(sums_.begin(), sums_.end(), 0.0);
  kept_.clear();
}

void RowLosses::keep(int microbatch, View rows) {
  CONCERTINA_CHECK(rows.count == rows_ && kept_.size() < slots_, "{} losses of microbatch {}",
                   rows.count, microbatch);
  memory_->copy(rows.data, rows_of(microbatch, all_).data, rows.bytes());
  kept_.push_back(microbatch);
}

void RowLosses::read() {
  if (kept_.empty()) return;
  const View host = host_view(*memory_, all_, host_);
  for (const int microbatch : kept_) {
    const View rows = rows_of(microbatch, host);
    double& sum = sums_[static_cast<std::size_t>(microbatch)];
    for (std::size_t r = 0; r < rows.count; ++r) sum += static_cast<double>(rows.f32()[r]);
  }
}

}  // namespace concertina
