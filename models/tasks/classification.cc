// Which class a sample is of, told from its first row: after a pooler (a map and tanh) and dropout
// where the family has one (BERT), else after its last norm (ViT).
#include "models/task.h"
#include "models/units/head.h"

namespace concertina::model_tasks {
namespace {

UnitPlan classification_head(const Trunk& trunk) {
  require_whole_sample(trunk, "classification");
  const std::int64_t width = trunk.shape.width;
  HeadSpec spec;
  spec.first_row = true;
  spec.norm = trunk.norm;
  if (trunk.pooler)
    spec.transform =
        TransformSpec{.map = {.name = "pooler", .in = width, .out = width, .std = trunk.std}};
  spec.drops = trunk.pooler;
  spec.logits = {.name = "classes", .in = width, .out = trunk.classes, .std = trunk.std};
  spec.reads = {label_field()};
  return head(trunk.shape, spec);
}

}  // namespace

extern const Task classification{.head = classification_head,
                                 .about = "tell the class of a text or an image"};

}  // namespace concertina::model_tasks
