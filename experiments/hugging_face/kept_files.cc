#include "experiments/hugging_face/kept_files.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "experiments/hugging_face/published_config_text.h"
#include "experiments/machine/output.h"
#include "io/file.h"
#include "io/run_files.h"
#include "io/strict_json.h"
#include "io/tokenizers/published_tokenizer.h"

namespace concertina {
namespace {

constexpr std::uint64_t kMostNames = std::uint64_t{1} << 28;

std::string classes_path(const RunConfig& config) {
  return kept_folder(config) + "/classes.json";
}

std::string tokenizer_folder(const RunConfig& config) {
  return run_file(run_directory(config), kTokenizerFolder);
}

bool are_numbers(std::span<const std::string> names) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] != std::to_string(i)) return false;
  return true;
}

}  // namespace

void keep_for_export(const RunConfig& config, std::span<const std::string> classes) {
  const std::string folder = tokenizer_folder(config);
  for (const auto& [name, text] :
       tokenizer_files(config.data.tokenizer, config.where("data.tokenizer"))) {
    const std::string path = fmt::format("{}/{}", folder, name);
    if (exists_at(path)) continue;
    make_directories(folder);
    atomic_replace(path, text);
  }
  if (are_numbers(classes) || exists_at(classes_path(config))) return;
  make_directories(kept_folder(config));
  atomic_replace(classes_path(config),
                 json_line(std::vector<std::string>(classes.begin(), classes.end())));
}

std::vector<std::string> kept_classes(const RunConfig& config) {
  const std::string path = classes_path(config);
  if (!exists_at(path)) return {};
  const auto json = parse_json(read_file(path, kMostNames));
  const bool texts = json.is_array() && std::ranges::all_of(json, [](const nlohmann::json& name) {
                       return name.is_string();
                     });
  if (!texts) throw_input("expected a list of names", path, "the file as the run wrote it");
  return json.get<std::vector<std::string>>();
}

RunConfig with_kept_tokenizer(RunConfig config) {
  const std::string folder = tokenizer_folder(config);
  if (is_folder(folder)) config.data.tokenizer = folder;
  return config;
}

}  // namespace concertina
