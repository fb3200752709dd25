#include "experiments/hugging_face/model_from.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/error.h"
#include "core/index.h"
#include "core/log.h"
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

/// A run on one rank and a folder on another would part their ways.
void require_same_kind(Communicator& world, bool run) {
  const std::vector<nlohmann::json> runs = gather_json(world, run);
  const auto rank_with = [&](bool kind) {
    return std::ranges::find(runs, nlohmann::json(kind)) - runs.begin();
  };
  if (rank_with(!run) == std::ssize(runs)) return;
  throw_input(fmt::format("it is a run on rank {}, and a folder of Hugging Face on rank {}",
                          rank_with(true), rank_with(false)),
              std::string(kKey), "the same files on every host");
}

/// `files`: what decides all weights. Collective.
void require_same_model(Communicator& world,
                        const std::function<std::vector<std::string>()>& files) {
  std::optional<Corpus> corpus;
  together(world, [&] { corpus.emplace(files(), std::string(kKey)); });
  require_same_files(world, *corpus, "model", std::string(kKey));
}

/// `read` writes a tensor of `source` by its name; false: it stays as it is. Frozen copies of a
/// tensor begin as it does.
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
      // No checkpoint is made of larger ones either: their squares overflow.
      if (!std::ranges::all_of(values, [](float value) { return std::abs(value) < 0x1p64F; }))
        throw_input(fmt::format("the weights have a NaN, an infinity or a value above 2^64, in "
                                "what is {} here",
                                tensor.name),
                    source, "a model whose weights are numbers of an ordinary size");
      mirror.upload();
    }
  }
}

void log_source(Trainer& trainer, const std::string& source,
                const std::vector<std::string>& missing, const std::vector<std::string>& left_out) {
  if (trainer.world().rank() != 0) return;
  log::info("weights of {}", source);
  if (!missing.empty()) log::info("not in it, and initialized: {}", fmt::join(missing, ", "));
  if (!left_out.empty()) log::info("in it, and not used: {}", fmt::join(left_out, ", "));
}

/// Only where the model reads text that a tokenizer makes tokens of.
void log_tokenizer(const ModelSpec& model, const RunConfig& config) {
  const std::vector<Field>& reads = model.units.front().reads;
  const bool tokens =
      std::ranges::any_of(reads, [](const Field& one) { return one.name == "tokens"; });
  if (!tokens || data_files(config).empty() || config.data.format == "tokens") return;
  if (config.data.tokenizer == config.model.from)
    log::info("text is read by the model's own tokenizer");
  else if (config.data.tokenizer == RunConfig{}.data.tokenizer)
    log::warn(
        "the model came without a tokenizer, and text is read as bytes: data.tokenizer names one");
}

/// Heads drop by model.dropout, and not by a key of their own.
void log_head_dropouts(const PublishedConfig& published, const RunConfig& config) {
  for (const auto& [key, usual] : published.table->head_dropouts) {
    const auto said = published.values.find(std::string(key));
    const nlohmann::json value = said != published.values.end() ? said->second
                                 : usual.empty()                ? nlohmann::json()
                                                                : parse_json(usual);
    if (value.is_number() && value != config.model.dropout &&
        task_of(config.model.family, config.model.task).classes)
      log::info("{} = {} of the model is not used: its head drops by model.dropout = {}", key,
                value.dump(), config.model.dropout);
  }
}

void start_from_published(Trainer& trainer, const RunConfig& config) {
  std::optional<PublishedConfig> published;
  std::optional<PublishedWeights> weights;
  require_same_model(trainer.world(), [&] {
    published = read_published_config(config.model.from);
    weights.emplace(config.model.from, *published, config);
    return weights->files();
  });
  together(trainer.world(), [&] {
    weights->check_copies();
    read_weights(
        trainer.state(), config.model.from,
        [&](const std::string& name, std::span<float> out) { return weights->read(name, out); });
  });
  log_source(trainer, fmt::format("{} ({})", config.model.from, published->type),
             weights->missing(), weights->left_out());
  if (trainer.world().rank() != 0) return;
  log_head_dropouts(*published, config);
  log_tokenizer(trainer.job().model, config);
}

void start_from_commit(Trainer& trainer, const std::string& commit, const RunConfig& config) {
  StoredWeights weights(commit, config);
  weights.on_beat([&] {
    if (trainer.watchdog() != nullptr) trainer.watchdog()->beat();
  });
  read_weights(trainer.state(), commit, [&](const std::string& name, std::span<float> out) {
    return weights.read(name, out);
  });
  log_source(trainer, fmt::format("{}, after step {}", commit, weights.step()), weights.missing(),
             weights.left_out());
}

}  // namespace

void start_from(Trainer& trainer, const RunConfig& config) {
  const Watchdog::Patience patience(trainer.watchdog(), "reading model.from");
  std::optional<StoredRun> run;
  together(trainer.world(), [&] { run = model_from_run(config); });
  require_same_kind(trainer.world(), run.has_value());
  if (run) {
    const std::string commit = agreed_commit(trainer.world(), run->checkpoints, run->chosen);
    require_same_model(trainer.world(),
                       [&] { return std::vector<std::string>{commit + "/" + kManifestHashName}; });
    together(trainer.world(), [&] { start_from_commit(trainer, commit, config); });
  } else {
    start_from_published(trainer, config);
  }
  trainer.refresh();
}

}  // namespace concertina
