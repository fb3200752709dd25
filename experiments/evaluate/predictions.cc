#include "experiments/evaluate/predictions.h"

#include <algorithm>

#include "io/labelled/questions.h"
#include "models/task.h"

namespace concertina {

std::unique_ptr<Predictions> make_predictions(const RunConfig& config, std::span<const Field> reads,
                                              std::shared_ptr<const Dataset> dataset, Split split) {
  const auto has = [&](std::string_view name) {
    return std::ranges::find(reads, name, &Field::name) != reads.end();
  };
  const auto classes = static_cast<std::size_t>(config.model.classes);
  if (has("label") || has("tags"))
    return class_predictions(std::move(dataset), split, /*words=*/!has("label"), classes);
  if (has("scores"))
    return score_predictions(
        std::move(dataset), split, classes,
        task_of(config.model.family, config.model.task).targets == TargetKind::labels);
  const QuestionAnswers* questions = dataset->questions();
  if (has("start") && questions != nullptr)
    return span_predictions(std::move(dataset), *questions, split);
  return nullptr;
}

}  // namespace concertina
