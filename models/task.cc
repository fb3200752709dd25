#include "models/task.h"

#include <fmt/format.h>

#include "models/model.h"
#include "models/units/embedding.h"
#include "task_table.h"

namespace concertina {

CONCERTINA_REGISTRY_IN(CONCERTINA_TASKS, Task, model_tasks, tasks)

const Task& find_task(std::string_view name) {
  return lookup(tasks(), name, "task", "model.task");
}

const Task& task_of(std::string_view family, std::string_view task) {
  if (task != "auto") return find_task(task);
  return find_task(lookup(models(), family, "model family", "model.family").default_task);
}

DenseSpec token_logits(const Trunk& trunk) {
  return {.name = std::string(trunk.tied ? kTokenTable : "head"),
          .in = trunk.shape.width,
          .out = trunk.vocabulary,
          .std = trunk.std,
          .shared_table = trunk.tied,
          .split = DenseSpec::Split::columns};
}

RowsRead one_row(const Trunk& trunk) {
  return {trunk.causal ? RowsRead::Which::last : RowsRead::Which::first};
}

HeadSpec sample_head(const Trunk& trunk, HeadSpec::Loss loss, const Field& reads) {
  const std::int64_t width = trunk.shape.width;
  HeadSpec spec{.rows = one_row(trunk),
                .norm = trunk.norm,
                .drops = trunk.pools,
                .logits = {.name = "classes",
                           .in = width,
                           .out = trunk.classes,
                           .std = trunk.std,
                           .bias = !trunk.causal,
                           .tuned = true},
                .loss = loss,
                .reads = {reads}};
  if (trunk.pools)
    spec.transform =
        TransformSpec{.map = {.name = "pooler", .in = width, .out = width, .std = trunk.std},
                      .activation = trunk.pooler};
  return spec;
}

void require_whole_sample(const Trunk& trunk, std::string_view task) {
  if (trunk.causal)
    throw_input(
        fmt::format("task {} requires bidirectional attention, which this family does not have",
                    task),
        "model.task", "a family without a causal mask: bert or vit");
}

}  // namespace concertina
