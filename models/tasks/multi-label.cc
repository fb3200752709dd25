// Multi-label classification of samples: a probability for each class, trained with binary
// cross-entropy (transformers' problem_type "multi_label_classification").
#include "models/task.h"

namespace concertina::model_tasks {

Task multi_label() {
  return {.head =
              [](const Trunk& trunk) {
                return head(trunk.shape, sample_head(trunk, HeadSpec::Loss::binary,
                                                     scores_field(trunk.classes)));
              },
          .about = "assign any number of classes to a text",
          .reads = one_row,
          .targets = TargetKind::labels,
          .classes = true};
}

}  // namespace concertina::model_tasks
