#include "models/task.h"

#include <fmt/format.h>

#include <array>

#include "models/model.h"
#include "models/units/embedding.h"
#include "task_table.h"

namespace concertina {

namespace model_tasks {
#define CONCERTINA_DECLARE(name, symbol) extern const Task symbol;
CONCERTINA_TASKS(CONCERTINA_DECLARE)
#undef CONCERTINA_DECLARE
}  // namespace model_tasks

std::span<const Entry<Task>> tasks() {
#define CONCERTINA_ENTRY(name, symbol) Entry<Task>{name, model_tasks::symbol},
  static const std::array kTasks{CONCERTINA_TASKS(CONCERTINA_ENTRY)};
#undef CONCERTINA_ENTRY
  return kTasks;
}

const Task& find_task(std::string_view name) {
  return lookup(tasks(), name, "task", "model.task");
}

const Task& task_of(std::string_view family, std::string_view task) {
  if (task != "auto") return find_task(task);
  return find_task(lookup(models(), family, "model family", "model.family").usual_task);
}

DenseSpec token_logits(const Trunk& trunk) {
  DenseSpec spec;
  spec.name = trunk.tied ? kTokenTable : "head";
  spec.in = trunk.shape.width;
  spec.out = trunk.vocabulary;
  spec.std = trunk.std;
  spec.shared_table = trunk.tied;
  spec.split = DenseSpec::Split::columns;
  return spec;
}

RowsRead one_row(const Trunk& trunk) {
  return {trunk.causal ? RowsRead::Which::last : RowsRead::Which::first};
}

HeadSpec sample_head(const Trunk& trunk, HeadSpec::Loss loss, const Field& reads) {
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
  spec.loss = loss;
  spec.reads = {reads};
  return spec;
}

void require_whole_sample(const Trunk& trunk, std::string_view task) {
  if (trunk.causal)
    throw_input(fmt::format("the task {} needs rows that see the whole sample, which those of this "
                            "family do not",
                            task),
                "model.task", "a family without a causal mask: bert or vit");
}

}  // namespace concertina
