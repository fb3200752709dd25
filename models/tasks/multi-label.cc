// Which classes a sample is of, any number of them: a probability for each, by binary
// cross-entropy: transformers' problem_type "multi_label_classification".
#include "models/task.h"

namespace concertina::model_tasks {

Task multi_label() {
  return {.head =
              [](const Trunk& trunk) {
                return head(trunk.shape, sample_head(trunk, HeadSpec::Loss::binary,
                                                     scores_field(trunk.classes)));
              },
          .about = "tell all classes that a text is of",
          .reads = one_row,
          .targets = TargetKind::labels,
          .classes = true};
}

}  // namespace concertina::model_tasks
