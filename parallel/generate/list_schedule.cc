#include "parallel/generate/list_schedule.h"

#include <algorithm>
#include <limits>

#include "core/error.h"

namespace concertina {
namespace {

constexpr int kNever = std::numeric_limits<int>::max();

}  // namespace

ListProgress::ListProgress(const PipelineShape& shape)
    : shape_(shape),
      open_(static_cast<std::size_t>(shape.stages()) * shape.microbatches),
      forward_end_(open_, kNever),
      gradient_end_(open_, kNever),
      forwards_(shape.stages(), 0),
      backwards_(shape.stages(), 0),
      saved_(shape.ranks, 0),
      free_(shape.ranks, 0) {}

bool ListProgress::ready(const Action& action) const {
  const Kind kind = action.kind;
  const int stage = action.stage, microbatch = action.microbatch;
  if (microbatch >= shape_.microbatches) return false;
  if (kind == Kind::F) return stage == 0 || forward_end_[cell(stage - 1, microbatch)] <= now_;
  if (kind == Kind::W) return gradient_end_[cell(stage, microbatch)] <= now_;
  return forward_end_[cell(stage, microbatch)] <= now_ &&
         (stage + 1 == shape_.stages() || gradient_end_[cell(stage + 1, microbatch)] <= now_);
}

void ListProgress::start(int rank, const Action& action) {
  const Kind kind = action.kind;
  const int stage = action.stage, microbatch = action.microbatch;
  CONCERTINA_CHECK(idle(rank) && ready(action), "{} cannot start now", to_text(action));
  free_[rank] = now_ + (kind == Kind::B ? 2 : 1);
  if (kind == Kind::F) {
    forward_end_[cell(stage, microbatch)] = free_[rank];
    forwards_[stage] = microbatch + 1;
    ++saved_[rank];
  }
  if (kind == Kind::I || kind == Kind::B) {
    gradient_end_[cell(stage, microbatch)] = free_[rank];
    backwards_[stage] = microbatch + 1;
  }
  if (kind == Kind::W || kind == Kind::B) {
    --saved_[rank];
    --open_;
  }
}

bool ListProgress::waiting() const {
  return std::any_of(free_.begin(), free_.end(), [&](int end) { return end > now_; });
}

Rows list_schedule(const PipelineShape& shape, const PickRule& rule) {
  ListProgress progress(shape);
  Rows rows(shape.ranks);
  for (; !progress.complete(); progress.tick()) {
    for (int rank = 0; rank < shape.ranks; ++rank) {
      if (!progress.idle(rank)) continue;
      if (const std::optional<Action> action = rule(rank, progress)) {
        progress.start(rank, *action);
        rows[rank].push_back(*action);
      }
    }
    CONCERTINA_CHECK(progress.waiting(), "no rank can run anything");
  }
  return rows;
}

}  // namespace concertina
