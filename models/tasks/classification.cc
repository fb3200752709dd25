// Single-label classification of samples.
#include "models/task.h"

namespace concertina::model_tasks {

Task classification() {
  return {.head =
              [](const Trunk& trunk) {
                return head(trunk.shape, sample_head(trunk, HeadSpec::Loss::rows, label_field()));
              },
          .about = "classify a text or an image",
          .reads = one_row,
          .classes = true};
}

}  // namespace concertina::model_tasks
