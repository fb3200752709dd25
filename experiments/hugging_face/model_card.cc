#include "experiments/hugging_face/exported_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "core/text/number_text.h"
#include "core/version.h"
#include "experiments/hugging_face/kept_files.h"
#include "experiments/hugging_face/published_config_text.h"
#include "experiments/hugging_face/published_pieces.h"
#include "experiments/hugging_face/published_weights.h"
#include "experiments/machine/program.h"
#include "experiments/record/run_lines.h"
#include "io/run_files.h"

namespace concertina {
namespace {

std::string last_name(const std::string& path) {
  std::filesystem::path whole = std::filesystem::path(path).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();
  return whole.filename().string();
}

/// The first names, and the total number if there are more.
std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 10;
  const std::size_t shown = std::min(names.size(), kMost);
  const auto first = names.begin();
  const std::vector some(first, first + static_cast<std::ptrdiff_t>(shown));
  const std::string rest =
      shown < names.size() ? fmt::format(", ... ({} in all)", names.size()) : "";
  return fmt::format("{}{}", fmt::join(some, ", "), rest);
}

std::string data_text(const RunConfig& config) {
  std::vector<std::string> names;
  for (const std::string& path : data_files(config)) names.push_back(last_name(path));
  return names.empty() ? "none" : fmt::format("{}: {}", config.data.format, listed(names));
}

/// "loss 0.31 over 872 targets, accuracy 0.91"; empty if the run did not evaluate this step.
std::string held_out_text(const std::string& directory, std::int64_t step) {
  const std::vector<ValidationPoint> points =
      validations_of(read_lines(run_file(directory, kEventsFile)));
  std::string text;
  for (const ValidationPoint& point : points) {
    if (point.step != static_cast<double>(step)) continue;
    text = fmt::format("loss {} nats over {}", number_text(point.loss),
                       counted(point.tokens, "target"));
    for (const auto& [name, value] : point.metrics)
      if (name != "step" && name != "loss" && name != "tokens" && name != "of_tokens" &&
          name != "seconds")
        text += fmt::format(", {} {}", name, number_text(value));
  }
  return text;
}

/// The command of the launch that trained up to `step`; empty if the model was imported.
std::string command_text(const std::string& directory, std::int64_t step) {
  nlohmann::json launch;
  for (const nlohmann::json& line : read_lines(run_file(directory, kLaunchesFile)))
    if (number_in(line, "from") < static_cast<double>(step)) launch = line;
  const double ranks = launch.is_null() ? 0 : number_in(launch, "ranks");
  const nlohmann::json words = launch.is_null() ? launch : launch["command"];
  std::string text = ranks > 1 ? fmt::format("mpirun -n {:.0f}", ranks) : "";
  for (std::size_t i = 0; i < words.size() && words[i].is_string(); ++i) {
    const auto word = words[i].get<std::string>();
    text += (text.empty() ? "" : " ") + shell_word(i == 0 ? last_name(word) : word);
  }
  return words.empty() ? "" : text;
}

std::int64_t parameters_of(const RunConfig& config) {
  std::int64_t sum = 0;
  for (const auto& [name, shape] : parameter_shapes(config)) sum += elements_of(shape);
  return sum;
}

}  // namespace

std::string model_card(const StoredRun& run, std::int64_t step, const std::string& weights) {
  const RunConfig& config = run.config;
  const std::string pipeline = pipeline_of(config);
  std::string text =
      "---\n# license: fill this in, such as apache-2.0\nlibrary_name: transformers\n";
  if (!pipeline.empty()) text += fmt::format("pipeline_tag: {}\n", pipeline);
  text += fmt::format("tags:\n- concertina\n---\n\n# {}\n\n", last_name(run.directory));
  text += fmt::format("A `{}` with {} parameters, trained by Concertina {}.\n\n| | |\n|---|---|\n",
                      hugging_face_of(config).name, grouped(parameters_of(config)),
                      program_version().number);
  const auto row = [&](const char* what, const std::string& value) {
    if (!value.empty()) text += fmt::format("| {} | {} |\n", what, value);
  };
  row("started from", config.model.from.empty() ? "random weights" : last_name(config.model.from));
  row("data", data_text(config));
  row("classes", listed(kept_classes(config)));
  row("steps",
      fmt::format("{}, of {} each", grouped(step), counted(config.batch.global, "sample")));
  row("weights", weights);
  if (weights.empty()) row("held out", held_out_text(run.directory, step));
  if (!pipeline.empty())
    text += fmt::format(
        "\n```python\nfrom transformers import pipeline\n\nmodel = pipeline(\"{}\", \"PATH OF THIS "
        "FOLDER\")\n```\n",
        pipeline);
  if (const std::string command = command_text(run.directory, step); !command.empty())
    text += fmt::format("\nTraining command:\n\n```sh\n{}\n```\n", command);
  return text;
}

}  // namespace concertina
