#include "experiments/hugging_face/model_from.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/error.h"
#include "core/index.h"
#include "core/log.h"
#include "experiments/hugging_face/peft.h"
#include "experiments/hugging_face/published_weights.h"
#include "experiments/machine/gather.h"
#include "experiments/run/run_checkpoint.h"
#include "experiments/run/text_identity.h"
#include "io/checkpoint/checkpoint_format.h"
#include "io/strict_json.h"
#include "models/task.h"

namespace concertina {
namespace {

constexpr std::string_view kKey = "model.from";

/// Checks that model.from is a run on all ranks or a folder on all ranks: their code paths differ.
void require_same_kind(Communicator& world, bool run) {
  const std::vector<nlohmann::json> runs = gather_json(world, run);
  const auto rank_with = [&](bool kind) {
    return std::ranges::find(runs, nlohmann::json(kind)) - runs.begin();
  };
  if (rank_with(!run) == std::ssize(runs)) return;
  throw_input(fmt::format("model.from is a run on rank {}, but a Hugging Face folder on rank {}",
                          rank_with(true), rank_with(false)),
              std::string(kKey), "the same files on every host");
}

/// `files` returns the files that determine all weights. Collective.
void require_same_model(Communicator& world,
                        const std::function<std::vector<std::string>()>& files) {
  std::optional<Corpus> corpus;
  together(world, [&] { corpus.emplace(files(), std::string(kKey)); });
  require_same_files(world, *corpus, "model", std::string(kKey));
}

/// `read` writes a tensor of `source` by its name, or returns false to keep the initial value.
/// Frozen copies of a tensor start with its values.
void read_weights(State& state, const std::string& source,
                  const std::function<bool(const std::string&, std::span<float>)>& read) {
  const std::vector<Bucket>& buckets = state.assignment().buckets;
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    if (state.weights()[b].empty()) continue;
    for (const BucketTensor& tensor : buckets[b].tensors) {
      HostMirror mirror(state.memory(), state.weights()[b].slice(tensor.offset, tensor.count));
      const std::span<float> values(mirror.host().f32(), tensor.count);
      const int original = buckets[b].copy_of;
      if (!read(original < 0 ? tensor.name : buckets[at(original)].name, values)) continue;
      // Checkpoints refuse larger values as well: their squares overflow.
      if (!std::ranges::all_of(values, [](float value) { return std::abs(value) < 0x1p64F; }))
        throw_input(fmt::format("the weights of {} contain NaN, infinity or a value above 2^64",
                                tensor.name),
                    source, "a model with finite weights");
      mirror.upload();
    }
  }
}

void log_source(Trainer& trainer, const std::string& source,
                const std::vector<std::string>& missing, const std::vector<std::string>& left_out) {
  if (trainer.world().rank() != 0) return;
  log::info("starting from the weights of {}", source);
  if (!missing.empty()) log::info("initialized, not in the source: {}", fmt::join(missing, ", "));
  if (!left_out.empty()) log::info("in the source, but not used: {}", fmt::join(left_out, ", "));
}

/// Logs which tokenizer is used, if the model reads text that a tokenizer splits into tokens.
void log_tokenizer(const ModelSpec& model, const RunConfig& config) {
  const std::vector<Field>& reads = model.units.front().reads;
  const bool tokens =
      std::ranges::any_of(reads, [](const Field& one) { return one.name == "tokens"; });
  if (!tokens || data_files(config).empty() || config.data.format == "tokens") return;
  if (config.data.tokenizer == base_folder(config.model.from))
    log::info("using the model's own tokenizer");
  else if (config.data.tokenizer == RunConfig{}.data.tokenizer)
    log::warn(
        "the model has no tokenizer, so text is read as bytes; set data.tokenizer to use one");
}

/// Logs the dropout keys of the head, which have no effect, since heads use model.dropout.
void log_head_dropouts(const PublishedConfig& published, const RunConfig& config) {
  for (const auto& [key, default_value] : published.table->head_dropouts) {
    const auto declared = published.values.find(std::string(key));
    const nlohmann::json value = declared != published.values.end() ? declared->second
                                 : default_value.empty()            ? nlohmann::json()
                                                                    : parse_json(default_value);
    if (value.is_number() && value != config.model.dropout &&
        task_of(config.model.family, config.model.task).classes)
      log::info("the model's {} = {} is not used: its head uses model.dropout = {}", key,
                value.dump(), config.model.dropout);
  }
}

void start_from_published(Trainer& trainer, const RunConfig& config) {
  std::optional<PublishedConfig> published;
  std::optional<PublishedWeights> weights;
  std::optional<PeftWeights> adapters;
  require_same_model(trainer.world(), [&] {
    const std::string folder = base_folder(config.model.from);
    published = read_published_config(folder);
    weights.emplace(folder, *published, config);
    std::vector<std::string> files = weights->files();
    if (folder != config.model.from)
      files.push_back(adapters.emplace(config.model.from, config).path());
    return files;
  });
  together(trainer.world(), [&] {
    weights->check_copies();
    read_weights(trainer.state(), config.model.from,
                 [&](const std::string& name, std::span<float> out) {
                   return (adapters && adapters->read(name, out)) || weights->read(name, out);
                 });
  });
  log_source(trainer, fmt::format("{} ({})", config.model.from, published->type),
             weights->missing(), weights->left_out());
  if (trainer.world().rank() != 0) return;
  log_head_dropouts(*published, config);
  log_tokenizer(trainer.job().model, config);
}

StoredWeights weights_of(const std::string& commit, const Trainer& trainer,
                         const RunConfig& config) {
  StoredWeights weights(commit, config);
  weights.on_beat([&trainer] { trainer.beat(); });
  return weights;
}

void start_from_commit(Trainer& trainer, const std::string& commit, const RunConfig& config) {
  StoredWeights weights = weights_of(commit, trainer, config);
  read_weights(trainer.state(), commit, [&](const std::string& name, std::span<float> out) {
    return weights.read(name, out);
  });
  log_source(trainer, fmt::format("{}, after step {}", commit, weights.step()), weights.missing(),
             weights.left_out());
}

/// Writes the mean of a tensor of all `models`, summed in their order; false if they lack it.
bool read_mean(std::span<StoredWeights> models, const std::string& name, std::span<float> out) {
  std::vector<double> sum(out.size());
  for (StoredWeights& model : models) {
    if (!model.read(name, out)) return false;
    std::ranges::transform(sum, out, sum.begin(), std::plus<double>());
  }
  std::ranges::transform(sum, out.begin(), [&](double value) {
    return static_cast<float>(value / static_cast<double>(models.size()));
  });
  return true;
}

}  // namespace

void start_from(Trainer& trainer, const RunConfig& config) {
  const Watchdog::Patience patience(trainer.watchdog(), "reading model.from");
  std::optional<StoredRun> run;
  together(trainer.world(), [&] { run = model_from_run(config); });
  require_same_kind(trainer.world(), run.has_value());
  if (run) {
    const std::string commit = agreed_commit(trainer.world(), run->checkpoints, run->choice.chosen);
    require_same_model(trainer.world(),
                       [&] { return std::vector<std::string>{commit + "/" + kManifestHashName}; });
    together(trainer.world(), [&] { start_from_commit(trainer, commit, config); });
  } else {
    start_from_published(trainer, config);
  }
  trainer.refresh();
}

void start_from_mean(Trainer& trainer, std::span<const std::string> commits,
                     const RunConfig& config) {
  const Watchdog::Patience patience(trainer.watchdog(), "averaging checkpoints");
  std::vector<std::string> files;
  for (const std::string& commit : commits) files.push_back(commit + "/" + kManifestHashName);
  require_same_model(trainer.world(), [&] { return files; });
  together(trainer.world(), [&] {
    std::vector<StoredWeights> models;
    for (const std::string& commit : commits) models.push_back(weights_of(commit, trainer, config));
    for (std::size_t i = 1; i < models.size(); ++i)
      if (models[i].missing() != models[0].missing() ||
          models[i].left_out() != models[0].left_out())
        throw_input("this checkpoint and the first have different tensors", commits[i],
                    "checkpoints of one task");
    read_weights(trainer.state(), commits[0], [&](const std::string& name, std::span<float> out) {
      return read_mean(models, name, out);
    });
  });
  trainer.refresh();
}

}  // namespace concertina
