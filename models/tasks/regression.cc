// One or several scores of a sample (model.classes), by mean squared error: transformers'
// problem_type "regression".
#include "models/task.h"

namespace concertina::model_tasks {
namespace {

UnitPlan regression_head(const Trunk& trunk) {
  return head(trunk.shape,
              sample_head(trunk, HeadSpec::Loss::squares, scores_field(trunk.classes)));
}

}  // namespace

extern const Task regression{.head = regression_head,
                             .about = "tell scores of a text",
                             .reads = one_row,
                             .targets = TargetKind::scores,
                             .classes = true};

}  // namespace concertina::model_tasks
