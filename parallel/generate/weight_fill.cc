#include "parallel/generate/weight_fill.h"

#include <algorithm>

#include "parallel/generate/list_schedule.h"

namespace concertina {
namespace {

class RowFill {
 public:
  RowFill(const std::vector<Action>& row, const WeightFill& options)
      : row_(row), options_(options) {
    first_stage_ = std::min_element(row.begin(), row.end(), [](const Action& a, const Action& b) {
                     return a.stage < b.stage;
                   })->stage;
  }

  std::optional<Action> pick(int rank, const ListProgress& progress) {
    while (position_ < row_.size() && went_ahead(row_[position_], progress)) ++position_;
    if (position_ < row_.size()) {
      const Action& next = row_[position_];
      const bool full = next.kind == Kind::F && progress.saved(rank) >= options_.limit;
      if (progress.ready(next) && !(full && oldest_ < weights_.size())) {
        ++position_;
        if (next.kind == Kind::I) weights_.push_back({Kind::W, next.stage, next.microbatch});
        return next;
      }
    }
    if (oldest_ < weights_.size()) return weights_[oldest_++];
    const Action early{Kind::F, first_stage_, progress.next_forward(first_stage_)};
    if (options_.early_forwards && progress.saved(rank) < options_.limit && progress.ready(early))
      return early;
    return std::nullopt;
  }

 private:
  bool went_ahead(const Action& action, const ListProgress& progress) const {
    return action.kind == Kind::F && action.microbatch < progress.next_forward(action.stage);
  }

  const std::vector<Action>& row_;
  const WeightFill options_;
  int first_stage_ = 0;
  std::size_t position_ = 0;
  std::vector<Action> weights_;  // Ws whose I has started, in that order
  std::size_t oldest_ = 0;       // index of the first W that has not started
};

}  // namespace

Rows fill_weights(const PipelineShape& shape, const Rows& rows, const WeightFill& options) {
  std::vector<RowFill> fills;
  for (const std::vector<Action>& row : rows) fills.emplace_back(row, options);
  return list_schedule(
      shape, [&](int rank, const ListProgress& progress) { return fills[rank].pick(rank, progress); });
}

}  // namespace concertina
