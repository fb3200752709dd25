#include "experiments/hugging_face/exported_files.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "experiments/hugging_face/kept_files.h"
#include "experiments/hugging_face/published_config.h"
#include "experiments/hugging_face/published_config_text.h"
#include "experiments/run/planning.h"
#include "io/file.h"
#include "io/strict_json.h"
#include "models/task.h"

namespace concertina {
namespace {

using ExportJson = nlohmann::json;

/// The named file that the model came with; an empty object if there is none.
ExportJson kept_json(const RunConfig& config, const char* name) {
  const std::string path = kept_folder(config) + "/" + name;
  if (!exists_at(path)) return ExportJson::object();
  return parse_strict_object(read_file(path, kMostConfigBytes), path);
}

/// A text may have at most model.context tokens, since there are no further positions.
std::string generation_text(const RunConfig& config) {
  ExportJson file = kept_json(config, kGenerationConfig);
  const auto tokenizer = tokenizer_of(config);
  constexpr std::array kRoles{std::pair{SpecialToken::begin, "bos_token_id"},
                              std::pair{SpecialToken::end, "eos_token_id"},
                              std::pair{SpecialToken::padding, "pad_token_id"}};
  for (const auto& [role, key] : kRoles)
    if (const auto id = tokenizer->special(role); id && !file.contains(key)) file[key] = *id;
  const auto most = file.find("max_length");
  if (most == file.end() || !most->is_number() || *most > config.model.context)
    file["max_length"] = config.model.context;
  return file.dump(2) + "\n";
}

std::vector<double> of_channels(const std::vector<double>& values, std::int64_t channels) {
  return values.size() == 1 ? std::vector(static_cast<std::size_t>(channels), values[0]) : values;
}

std::string preprocessor_text(const RunConfig& config, const Field& image) {
  ExportJson file = kept_json(config, kPreprocessorConfig);
  if (file.empty())
    file = {{"image_processor_type", "ViTImageProcessor"},
            {"do_resize", true},
            {"resample", 2},  // bilinear
            {"do_rescale", true},
            {"rescale_factor", 1.0 / 255},
            {"do_normalize", true}};
  file["size"] = {{"height", image.shape[1]}, {"width", image.shape[2]}};
  if (!data_files(config).empty() || !file.contains("image_mean")) {
    for (const auto& [theirs, ours] : {std::pair{"image_mean", "mean"}, {"image_std", "deviation"}})
      file[theirs] =
          of_channels(option<std::vector<double>>(config.data.options, ours), image.shape[0]);
  }
  return file.dump(2) + "\n";
}

/// The image field that the model reads; nullopt if it reads none.
std::optional<Field> image_of(const RunConfig& config) {
  const std::vector<Field> fields = fields_of(model_of(config)->spec());
  const auto image = std::ranges::find(fields, "image", &Field::name);
  return image == fields.end() ? std::nullopt : std::optional(*image);
}

}  // namespace

FileTexts exported_files(const RunConfig& config) {
  FileTexts files = exported_tokenizer(config);
  if (is_causal_lm(config)) files[kGenerationConfig] = generation_text(config);
  if (const auto image = image_of(config))
    files[kPreprocessorConfig] = preprocessor_text(config, *image);
  return files;
}

std::string pipeline_of(const RunConfig& config) {
  constexpr std::array kPipelines{std::pair{"causal-lm", "text-generation"},
                                  std::pair{"masked-lm", "fill-mask"},
                                  std::pair{"question-answering", "question-answering"}};
  const Task& task = task_of(config.model.family, config.model.task);
  for (const auto& [name, pipeline] : kPipelines)
    if (&task == &find_task(name)) return pipeline;
  if (&task != &find_task("classification")) return "";
  return image_of(config) ? "image-classification" : "text-classification";
}

}  // namespace concertina
