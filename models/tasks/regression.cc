// Regression of one or more scores per sample (model.classes), with mean squared error
// (transformers' problem_type "regression").
#include "models/task.h"

namespace concertina::model_tasks {

Task regression() {
  return {.head =
              [](const Trunk& trunk) {
                return head(trunk.shape, sample_head(trunk, HeadSpec::Loss::squares,
                                                     scores_field(trunk.classes)));
              },
          .about = "predict scores for a text",
          .reads = one_row,
          .targets = TargetKind::scores,
          .classes = true};
}

}  // namespace concertina::model_tasks
