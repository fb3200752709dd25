#include "experiments/hugging_face/peft.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "core/error.h"
#include "core/log.h"
#include "experiments/config/config_keys.h"
#include "experiments/hugging_face/merged_weights.h"
#include "experiments/hugging_face/published_config_text.h"
#include "experiments/hugging_face/stored_run.h"
#include "experiments/run/planning.h"
#include "io/file.h"
#include "io/strict_json.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;
using PeftJson = nlohmann::json;

constexpr const char *kPeftConfig = "adapter_config.json",
                     *kPeftWeights = "adapter_model.safetensors";
constexpr std::string_view kBase = "base_model.model.";

std::string path_in(const std::string& folder, const char* file) {
  return (fs::path(folder) / file).string();
}

bool is_peft(const std::string& folder) {
  return exists_at(path_in(folder, kPeftConfig));
}

PeftJson read_peft_config(const std::string& folder) {
  const std::string path = path_in(folder, kPeftConfig);
  return parse_strict_object(read_file(path, kMostConfigBytes), path);
}

/// The name of a target of [lora] for one of our weights; empty if it cannot have an adapter.
std::string target_of(const std::string& ours) {
  for (const std::string& target : kLoraTargets)
    if (ours.ends_with("/" + target + ".weight")) return target;
  return ours.ends_with("/gate_up.weight") ? "up" : "";
}

std::string without_weight(const std::string& name) {
  return name.substr(0, name.size() - std::string_view(".weight").size());
}

std::vector<TensorMapping> mappings_of(const RunConfig& config) {
  return hugging_face_of(config).value.tensors(model_config_of(without_adapters(config)));
}

/// The maps that can have an adapter, and whose B [rank,out] is stored as the Bs [n,rank] of their
/// modules.
std::vector<PublishedPieces> adapted_maps(const RunConfig& config, std::int64_t rank) {
  const auto shapes = parameter_shapes(config);
  std::vector<PublishedPieces> maps;
  for (TensorMapping& rule : mappings_of(config)) {
    if (target_of(rule.ours).empty() || !shapes.contains(rule.ours)) continue;
    const std::int64_t out = shapes.at(rule.ours).back();
    rule.ours = without_weight(rule.ours);
    for (std::string& name : rule.theirs) name = std::string(kBase) + without_weight(name);
    rule.transposed = true, rule.shape = {};
    maps.emplace_back(rule, std::vector{rank, out});
  }
  return maps;
}

std::vector<PublishedPieces> class_heads(const RunConfig& config) {
  std::vector<PublishedPieces> heads;
  const auto shapes = parameter_shapes(config);
  for (TensorMapping& rule : mappings_of(config)) {
    if (!is_of_classes(rule.ours) || !shapes.contains(rule.ours)) continue;
    for (std::string& name : rule.theirs) name = std::string(kBase) + name;
    heads.emplace_back(rule, shapes.at(rule.ours));
  }
  return heads;
}

std::string a_of(const PublishedPiece& module) {
  return module.name + ".lora_A.weight";
}
std::string b_of(const PublishedPiece& module) {
  return module.name + ".lora_B.weight";
}

[[noreturn]] void refuse_peft(const std::string& folder, const std::string& what,
                              const std::string& fix) {
  throw_input(what, path_in(folder, kPeftConfig), fix);
}

/// The keys of adapter_config.json that are read here, or that the adapters do not depend on once
/// they are stored. Another key must be absent, null, false or empty.
const std::set<std::string_view> kPlainKeys{"peft_type",
                                            "peft_version",
                                            "auto_mapping",
                                            "base_model_name_or_path",
                                            "revision",
                                            "task_type",
                                            "inference_mode",
                                            "r",
                                            "lora_alpha",
                                            "lora_dropout",
                                            "bias",
                                            "fan_in_fan_out",
                                            "use_rslora",
                                            "target_modules",
                                            "exclude_modules",
                                            "modules_to_save",
                                            "init_lora_weights",
                                            "layers_to_transform",
                                            "layers_pattern",
                                            "megatron_core",
                                            "qalora_group_size"};

/// Input error: adapter_config.json asks for more than A and B of whole modules.
void require_plain(const PeftJson& json, const std::string& folder) {
  for (const auto& [key, wanted] : {std::pair("peft_type", "LORA"), std::pair("bias", "none")})
    if (const PeftJson value = json.value(key, PeftJson()); value != PeftJson(wanted))
      refuse_peft(folder, fmt::format("{} = {}", key, value.dump()), PeftJson(wanted).dump());
  for (const auto& [key, value] : json.items())
    if (!kPlainKeys.contains(key) && !value.is_null() && value != PeftJson(false) && !value.empty())
      refuse_peft(folder, fmt::format("{} = {} is not supported", key, value.dump()),
                  "adapters of one rank and alpha, without this key");
  if (const PeftJson rooted = json.value("use_rslora", PeftJson(false)); !rooted.is_boolean())
    refuse_peft(folder, fmt::format("use_rslora = {}", rooted.dump()), "true or false");
  const PeftJson rank = json.value("r", PeftJson()), alpha = json.value("lora_alpha", PeftJson());
  if (!rank.is_number_integer() || rank.get<std::int64_t>() < 1 ||
      rank.get<std::int64_t>() > 4096 || !alpha.is_number() || !(alpha.get<double>() > 0))
    refuse_peft(folder, fmt::format("r = {}, lora_alpha = {}", rank.dump(), alpha.dump()),
                "an integer from 1 to 4096, and a number > 0");
}

/// Input error: the file lacks an adapter of a module that target_modules lists by its name or the
/// end of its name, unless the config has other rules that select modules.
void require_targets(const PeftJson& json, const SafetensorsFile& file,
                     const PublishedPieces& map) {
  const PeftJson targets = json.value("target_modules", PeftJson());
  for (const char* const key : {"exclude_modules", "layers_to_transform"})
    if (!json.value(key, PeftJson()).empty()) return;
  for (const PublishedPiece& module : map.all())
    for (const PeftJson& target : targets.is_array() ? targets : PeftJson::array())
      if (!file.tensors().contains(a_of(module)) && target.is_string() &&
          module.name.ends_with("." + target.get<std::string>()))
        throw_input(
            fmt::format("the tensor '{}' is missing, but target_modules includes it", a_of(module)),
            file.path(), "the whole file");
}

std::int64_t modules_in(const SafetensorsFile& file, const PublishedPieces& map) {
  return std::ranges::count_if(map.all(), [&](const PublishedPiece& module) {
    const bool has_a = file.tensors().contains(a_of(module));
    if (const bool has_b = file.tensors().contains(b_of(module)); has_a != has_b)
      throw_input(fmt::format("the tensor '{}' is missing", has_a ? b_of(module) : a_of(module)),
                  file.path(), "A and B of each adapted module");
    return has_a;
  });
}

}  // namespace

std::string base_folder(const std::string& folder) {
  if (!is_peft(folder)) return folder;
  if (exists_at(path_in(folder, "config.json")))
    refuse_peft(folder, "the folder has both adapters and a whole model (config.json)",
                "separate folders");
  const PeftJson name = read_peft_config(folder).value("base_model_name_or_path", PeftJson());
  if (name.is_string())
    for (const fs::path& path :
         {fs::path(name.get<std::string>()), fs::path(folder) / name.get<std::string>()})
      if (exists_at(path / "config.json")) return path.string();
  refuse_peft(
      folder,
      fmt::format("base_model_name_or_path = {} is not a folder with config.json; models are "
                  "not downloaded",
                  name.dump()),
      "the folder of the base model");
}

void adopt_peft(RunConfig& config) {
  const std::string& folder = config.model.from;
  if (!is_peft(folder)) return;
  const PeftJson json = read_peft_config(folder);
  require_plain(json, folder);
  if (!exists_at(path_in(folder, kPeftWeights)))
    throw_input("the folder has no adapter_model.safetensors", folder,
                "a folder with this file; .bin files are not read");
  const SafetensorsFile file(path_in(folder, kPeftWeights));
  const auto rank = json["r"].get<std::int64_t>();
  std::set<std::string> targets, known;
  std::int64_t modules = 1;
  for (const PublishedPieces& map : adapted_maps(config, rank)) {
    require_targets(json, file, map);
    if (modules_in(file, map) == 0) continue;
    targets.insert(target_of(map.rule().ours + ".weight"));
    modules = std::max<std::int64_t>(modules, std::ssize(map.all()));
    for (const PublishedPiece& module : map.all()) known.insert({a_of(module), b_of(module)});
  }
  for (const PublishedPieces& head : class_heads(config))
    for (const PublishedPiece& piece : head.all()) known.insert(piece.name);
  for (const auto& [name, tensor] : file.tensors())
    if (!known.contains(name))
      throw_input(fmt::format("unexpected tensor '{}'", name.substr(0, 100)), file.path(),
                  "adapters of attention and MLP maps, and a head of classes");
  RunConfig theirs = config;
  const bool rooted = json.value("use_rslora", PeftJson()) == PeftJson(true);
  const double root = rooted ? std::sqrt(static_cast<double>(rank)) : 1;
  theirs.lora = {.rank = static_cast<int>(rank * modules),
                 .alpha = json["lora_alpha"].get<double>() * root * static_cast<double>(modules),
                 .targets = {targets.begin(), targets.end()}};
  for (const char* key : {"lora.rank", "lora.alpha", "lora.targets"})
    adopt_value(key, theirs, path_in(folder, kPeftConfig), false, config);
}

PeftWeights::PeftWeights(const std::string& folder, const RunConfig& config)
    : file_(path_in(folder, kPeftWeights)),
      rank_(config.lora.rank),
      module_rank_(read_peft_config(folder)["r"].get<std::size_t>()),
      maps_(adapted_maps(config, static_cast<std::int64_t>(module_rank_))),
      classes_(class_heads(config)) {}

std::vector<float> PeftWeights::values_of(const std::string& name,
                                          const std::vector<std::int64_t>& shape) const {
  const StoredTensor& tensor = file_.tensors().at(name);
  if (tensor.shape != shape)
    throw_input(fmt::format("the tensor '{}' has the shape [{}], but the base model and the rank "
                            "need [{}]",
                            name, fmt::join(tensor.shape, ", "), fmt::join(shape, ", ")),
                file_.path(), "adapters of this base model");
  std::vector<float> values(tensor.elements());
  file_.read(tensor, 0, values);
  return values;
}

bool PeftWeights::read_adapter(const std::string& ours, bool is_a, std::span<float> out) const {
  const std::string map = ours.substr(0, ours.size() - std::string_view(".lora_a").size());
  const auto found = std::ranges::find_if(
      maps_, [&](const PublishedPieces& one) { return one.rule().ours == map; });
  if (found == maps_.end() || modules_in(file_, *found) == 0) return false;
  std::ranges::fill(out, 0.0F);
  const std::size_t rank = static_cast<std::size_t>(rank_), r = module_rank_;
  for (std::size_t m = 0; m < found->all().size(); ++m) {
    const PublishedPiece& module = found->all()[m];
    if (!file_.tensors().contains(a_of(module))) continue;
    const std::size_t in = out.size() / rank;
    const auto rows_of_a = static_cast<std::int64_t>(r), inputs = static_cast<std::int64_t>(in);
    const std::vector<float> theirs = is_a ? values_of(a_of(module), {rows_of_a, inputs})
                                           : values_of(b_of(module), {module.columns, rows_of_a});
    if (is_a) {
      for (std::size_t k = 0; k < r; ++k)
        for (std::size_t i = 0; i < in; ++i) out[i * rank + m * r + k] = theirs[k * in + i];
    } else {
      std::vector<float> rows(static_cast<std::size_t>(found->elements()));
      found->place(module, theirs, rows);
      std::ranges::copy(rows, out.begin() + static_cast<std::ptrdiff_t>(m * rows.size()));
    }
  }
  return true;
}

bool PeftWeights::read(const std::string& ours, std::span<float> out) const {
  if (is_adapter(ours)) return read_adapter(ours, ours.ends_with("_a"), out);
  for (const PublishedPieces& head : classes_) {
    if (head.rule().ours != ours || !file_.tensors().contains(head.all()[0].name)) continue;
    for (const PublishedPiece& piece : head.all()) {
      if (!file_.tensors().contains(piece.name))
        throw_input(fmt::format("the tensor '{}' is missing", piece.name), file_.path(),
                    "the whole head of classes, or none");
      head.place(piece, values_of(piece.name, piece.shape), out);
    }
    return true;
  }
  return false;
}

namespace {

/// The folder of the base model for peft; empty, with a warning, if there is none.
std::string exported_base(const RunConfig& config) {
  const std::string base = config.model.from.empty() ? "" : base_folder(config.model.from);
  if (!base.empty() && exists_at(path_in(base, "config.json"))) return base;
  log::warn(
      "the adapters' base model is not in a folder that peft can load: base_model_name_or_path "
      "stays empty");
  return "";
}

/// Input error: the run trained tensors that adapters do not contain.
void require_only_adapters(const RunConfig& config) {
  const std::unique_ptr<Model> model = model_of(config);
  for (const UnitSpec& unit : model->spec().units)
    for (const ParameterSpec& parameter : unit.parameters)
      if (parameter.trains && !parameter.tuned)
        throw_input(fmt::format("the run also trained {}/{}, which adapters do not contain",
                                unit.name, parameter.name),
                    "freeze.tensors", "an export without --peft");
}

}  // namespace

void write_peft(const std::string& folder, const RunConfig& config, StoredType type,
                const ReadOurs& read) {
  require_only_adapters(config);
  const std::int64_t rank = config.lora.rank;
  const auto shapes = parameter_shapes(config);
  std::map<std::string, std::pair<std::vector<std::int64_t>, std::vector<float>>> tensors;
  std::set<std::string> modules, saved;
  const auto last = [](const std::string& name) { return name.substr(name.rfind('.') + 1); };
  std::vector<float> a, b, theirs;
  for (const PublishedPieces& map : adapted_maps(config, rank)) {
    const std::string& ours = map.rule().ours;
    if (std::ranges::find(config.lora.targets, target_of(ours + ".weight")) ==
        config.lora.targets.end())
      continue;
    const std::int64_t in =
        elements_of(shapes.at(ours + ".weight")) / shapes.at(ours + ".weight").back();
    a.resize(static_cast<std::size_t>(in * rank));
    b.resize(static_cast<std::size_t>(map.elements()));
    read(ours + ".lora_a", a);
    read(ours + ".lora_b", b);
    const PublishedPieces turned({.ours = ours, .theirs = {""}, .transposed = true}, {in, rank});
    for (const PublishedPiece& module : map.all()) {
      turned.collect(turned.all()[0], a, theirs);
      tensors[a_of(module)] = {{rank, in}, theirs};
      map.collect(module, b, theirs);
      tensors[b_of(module)] = {{module.columns, rank}, theirs};
      modules.insert(module.name.substr(kBase.size()));  // whole: peft compares ends of names
    }
  }
  for (const PublishedPieces& head : class_heads(config)) {
    a.resize(static_cast<std::size_t>(head.elements()));
    read(head.rule().ours, a);
    for (const PublishedPiece& piece : head.all()) {
      head.collect(piece, a, theirs);
      tensors[piece.name] = {piece.shape, theirs};
      saved.insert(last(piece.name.substr(0, piece.name.rfind('.'))));
    }
  }
  const std::map<std::string, std::string> types{{"causal-lm", "CAUSAL_LM"},
                                                 {"classification", "SEQ_CLS"},
                                                 {"multi-label", "SEQ_CLS"},
                                                 {"regression", "SEQ_CLS"},
                                                 {"token-classification", "TOKEN_CLS"},
                                                 {"question-answering", "QUESTION_ANS"}};
  const auto task = types.find(config.model.task);
  const bool conv1d = hugging_face_of(config).name == "gpt2";
  nlohmann::ordered_json json{
      {"peft_type", "LORA"},
      {"task_type", task == types.end() ? PeftJson() : PeftJson(task->second)},
      {"base_model_name_or_path", exported_base(config)},
      {"r", rank},
      {"lora_alpha", config.lora.alpha},
      {"lora_dropout", 0.0},
      {"bias", "none"},
      {"fan_in_fan_out", conv1d},
      {"target_modules", modules},
      {"modules_to_save", saved.empty() ? PeftJson() : PeftJson(saved)},
      {"inference_mode", true}};
  make_directories(folder);
  std::vector<StoredTensor> list;
  for (const auto& [name, tensor] : tensors) list.push_back({name, type, tensor.first, 0});
  const std::string path = path_in(folder, kPeftWeights), partial = path + ".partial";
  std::error_code ignored;
  fs::remove(partial, ignored);  // of an export that was killed
  SafetensorsWriter writer(partial, list);
  for (const auto& [name, tensor] : tensors) writer.append(tensor.second);
  writer.finish();
  fs::rename(partial, path);
  atomic_replace(path_in(folder, kPeftConfig), json.dump(2) + "\n");
}

}  // namespace concertina
