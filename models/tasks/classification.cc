// Which class a sample is of, told from one row after the last norm: its first, which a pooler (a
// map and an activation) and dropout may follow (BERT), or in causal families the last token that
// is not padding, by a map without a bias, as transformers has it (GPT-2, Llama).
#include "models/task.h"
#include "models/units/head.h"

namespace concertina::model_tasks {
namespace {

RowsRead one_row(const Trunk& trunk) {
  return {trunk.causal ? RowsRead::Which::last : RowsRead::Which::first};
}

UnitPlan classification_head(const Trunk& trunk) {
  const std::int64_t width = trunk.shape.width;
  HeadSpec spec;
  spec.rows = one_row(trunk);
  spec.norm = trunk.norm;
  if (trunk.pools)
    spec.transform =
        TransformSpec{.map = {.name = "pooler", .in = width, .out = width, .std = trunk.std},
                      .activation = trunk.pooler};
  spec.drops = trunk.pools;
  spec.logits = {.name = "classes", .in = width, .out = trunk.classes, .std = trunk.std};
  spec.logits.bias = !trunk.causal;
  spec.reads = {label_field()};
  return head(trunk.shape, spec);
}

}  // namespace

extern const Task classification{
    .head = classification_head, .about = "tell the class of a text or an image", .reads = one_row};

}  // namespace concertina::model_tasks
