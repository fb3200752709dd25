// `concertina eval`: evaluates a run's best or newest checkpoint on held-out data.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/error.h"
#include "core/log.h"
#include "experiments/commands/command.h"
#include "experiments/evaluate/ensemble.h"
#include "experiments/evaluate/evaluate.h"
#include "experiments/evaluate/logits_files.h"
#include "experiments/evaluate/prediction_rows.h"
#include "experiments/launch/launch.h"
#include "experiments/record/progress.h"
#include "experiments/run/best_commit.h"
#include "experiments/run/run_checkpoint.h"
#include "experiments/run/run_identity.h"
#include "io/checkpoint/checkpoint_commit.h"
#include "io/datasets/split_files.h"
#include "io/file.h"
#include "models/task.h"

namespace concertina {
namespace {

struct EvalOptions : ConfigOptions {
  std::string split = "validation";  // or "test"
  std::vector<std::string> text;     // replaces the run's text
  std::vector<std::string> files;    // replace the run's files; entirely held out
  std::int64_t step = -1;            // of the checkpoint; -1: the best if kept, else the newest
  CheckpointChoice choice{};
  std::string predictions;          // CSV with a row for each sample; empty: none
  std::string logits;               // directory for the model's outputs; empty: none
  std::vector<std::string> others;  // runs that form an ensemble with the first
};

Split split_of(const EvalOptions& options) {
  return options.split == "test" ? Split::test : Split::validation;
}

/// Returns the commit for `step`. If it is missing, throws Error{bad_input} that lists all steps.
std::string commit_of(const std::string& checkpoints, std::int64_t step) {
  std::vector<std::int64_t> steps;
  for (const Commit& commit : list_commits(checkpoints)) {
    if (commit.step == step) return commit.path;
    steps.push_back(commit.step);
  }
  throw_input(fmt::format("no checkpoint for step {}", step), checkpoints,
              steps.empty() ? "a run directory with checkpoints"
                            : fmt::format("one of: {}", fmt::join(steps, ", ")));
}

/// Throws Error{bad_input} unless the data held out now was also held out when the checkpoint with
/// the metadata `then` was written. Collective.
void require_held_out(Launch& launch, const nlohmann::json& then) {
  const std::string commit = checkpoint_directory(launch.config);
  const nlohmann::json now = launch.identity();
  require_version(then, now, commit);
  const auto differs = [&](const char* key) {
    return then.contains(key) && then[key] != now.at(key);
  };
  if (differs("data.text"))
    throw_input("the data files differ from those that the run was trained on", commit,
                "the original files, or --files FILE to evaluate other data");
  for (const char* const key : {"data.validation", "data.test", "data.split", "data.split_seed"}) {
    if (!now.contains(key)) continue;
    const nlohmann::json was = value_then(then, key);
    if (was.is_null() || was == now[key]) continue;
    throw_input(fmt::format("{} changed from {} to {}, so the held-out data differs", key,
                            was.get<std::string>(), now[key].get<std::string>()),
                launch.config.where(key),
                fmt::format("{} = {}, or --files FILE to evaluate other data", key,
                            was.get<std::string>()));
  }
}

void say_overlap(const EvalOptions& options, const Launch& launch) {
  const Splits* const splits = launch.dataset->splits();
  if (splits == nullptr || launch.world.rank() != 0) return;
  if (const double share = splits->overlap(split_of(options)); share > 0)
    log::warn("{:.1f}% of the {}s are {}", 100 * share, splits->words.item, splits->words.overlaps);
}

void print_result(const EvalOptions& options, const Launch& launch, std::int64_t step,
                  const nlohmann::json& stored, const Validation& result) {
  const double bits = result.loss / std::log(2.0);
  const char* const split = split_of(options) == Split::test ? "test" : "held-out";
  if (options.json) {
    nlohmann::ordered_json json{{"step", step}, {"split", options.split}, {"loss", result.loss}};
    if (result.tokens)
      json.update({{"bits_per_token", bits}, {"perplexity", std::exp(result.loss)}});
    json.update({{"tokens", result.targets},
                 {"of_tokens", result.of},
                 {"seconds", result.seconds},
                 {"layout", short_form(launch.trainer.layout())}});
    for (const Metric& metric : result.metrics) json[metric.name] = metric.value;
    json.update(confusion_json(result, launch.dataset->classes()));
    print_once(json.dump() + "\n");
  } else {
    print_once(fmt::format("{}: {} loss {:.4f} {}{}, over {}\n", step_text(step, stored), split,
                           result.loss, result.tokens ? "nats per token" : loss_unit(launch.config),
                           result.tokens ? fmt::format(", {:.4f} bits, perplexity {:.3f}", bits,
                                                       std::exp(result.loss))
                                         : metrics_text(result),
                           text_share(result)) +
               confusion_text(result, launch.dataset->classes()));
  }
}

Validation evaluate_to_files(const EvalOptions& options, Launch& launch, SampleLogits also) {
  HeldOut held_out{split_of(options), std::max(0, launch.config.eval.batches), {}};
  std::optional<Progress> progress;
  if (launch.world.rank() == 0) {
    progress.emplace(stderr, 1);
    held_out.progress = [&](auto... metrics) { progress->evaluation(metrics...); };
  }
  std::optional<LogitsFiles> arrays;
  std::optional<PredictionRows> rows;
  if (!options.logits.empty())
    arrays.emplace(launch.trainer, launch.dataset, held_out.split, options.logits);
  if (!options.predictions.empty())
    rows.emplace(launch.trainer, launch.dataset, held_out.split, options.predictions);
  std::vector<SampleLogits> seers;
  if (also) seers.push_back(std::move(also));
  if (arrays) seers.push_back(arrays->see());
  if (rows) seers.push_back(rows->see());
  const SampleLogits see = [&](std::uint64_t sample, std::span<const float> logits) {
    for (const SampleLogits& one : seers) one(sample, logits);
  };
  Validation result =
      evaluate(launch.trainer, launch.dataset, held_out, {}, seers.empty() ? SampleLogits() : see);
  if (arrays && result.samples > 0) arrays->finish(result.samples);
  if (rows) rows->finish();
  return result;
}

/// Sets `files` as the only data of a run without data, such as an imported one. The extension of
/// the first file may determine the format.
void take_files(const std::vector<std::string>& files, RunConfig& config) {
  const std::string ending = std::filesystem::path(files[0]).extension();
  for (const auto& [format, reader] : dataset_formats())
    if (config.data.format == RunConfig{}.data.format && ending == fmt::format(".{}", format))
      config.data.format = format;
  if (files_key(config) == "data.files") config.data.files = files;
  config.data.validation = 0;
}

/// The run's config with the files from the options.
RunConfig config_of(const EvalOptions& options) {
  RunConfig config = options.config;
  if (!options.text.empty() && files_key(config) != "data.text")
    throw_input(fmt::format("--text is not available for data.format = \"{}\"", config.data.format),
                "--text", "--files FILE to evaluate all samples in a file");
  if (!options.text.empty()) config.data.text = options.text;
  if (!options.text.empty() || !options.files.empty()) config.data.weights.clear();
  if (!options.files.empty()) {
    config.data.test_files = options.files;
    config.data.test = 0;
    if (data_files(config).empty()) take_files(options.files, config);
    // Overlap with the training data and missing classes only cause warnings.
    config.data.most_overlap = 1;
    config.data.options.find("missing_classes")->second = true;
  }
  return config;
}

/// Rows without labels have predictions but no loss.
int say_unlabelled(const EvalOptions& options, const Validation& result) {
  if (options.predictions.empty() && options.logits.empty())
    throw_input("the rows have no labels", "--files",
                "files with labels, or add --predictions FILE.csv");
  if (options.json)
    print_once(json_line({{"split", options.split}, {"samples", result.samples}, {"tokens", 0}}));
  else
    print_once(fmt::format("{} rows without labels, no loss\n", result.samples));
  return 0;
}

struct Evaluated {
  std::unique_ptr<Launch> launch;
  std::int64_t step = 0;
  nlohmann::json stored{};  // metadata of the checkpoint
  Validation result{};
};

/// Evaluates the run of `options`. `also` receives its logits, unless it is empty. Collective.
Evaluated evaluate_run(const EvalOptions& options, MpiEnvironment& mpi, SampleLogits also = {}) {
  RunConfig config = config_of(options);
  config.every_logit = !options.logits.empty();
  if (const std::string key = files_key(config); data_files(config).empty())
    throw_input(fmt::format("no {} to evaluate", key == "data.text" ? "text" : "data"),
                config.where(key),
                key == "data.text" ? "--text FILE" : fmt::format("--set {}=FILE", key));
  const std::string checkpoints = checkpoint_directory(config);
  const std::string path = options.step < 0 ? checkpoints : commit_of(checkpoints, options.step);
  Evaluated one{open_launch(config, mpi, "eval")};
  one.step = require_checkpoint(one.launch->trainer, path, options.choice, &one.stored);
  one.launch->begin();
  if (options.text.empty() && options.files.empty())
    require_held_out(*one.launch, one.stored);
  else
    one.launch->identity(/*remember=*/false);  // verifies the files
  if (one.step > 0) say_overlap(options, *one.launch);
  one.result = evaluate_to_files(options, *one.launch, std::move(also));
  if (one.result.targets == 0 && one.result.samples > 0) return one;
  if (one.result.targets == 0 && split_of(options) == Split::test)
    throw_input("the run has no test data", config.where("data.test_files"),
                "--files FILE, or data.test_files or data.test in a new run");
  if (one.result.targets == 0)
    throw_input("the data has no held-out part", config.where("data.validation"),
                "data.validation = 0.1, or more data");
  require_finite(one.result, one.step);
  return one;
}

/// Evaluates the run and --ensemble's runs in turn, each alone and all together.
int run_ensemble(const EvalOptions& options, MpiEnvironment& mpi) {
  const auto is_run = [](const std::string& source) { return is_folder(source); };
  if (options.sources.empty() || std::ranges::count_if(options.sources, is_run) != 1 ||
      !is_run(options.sources[0]))
    throw_input("an ensemble needs one run, and --ensemble for each other one", "command line",
                "concertina eval RUN --ensemble RUN");
  std::vector<EvalOptions> members;
  for (std::size_t at = 0; at <= options.others.size(); ++at) {
    EvalOptions& member = members.emplace_back(options);
    if (at > 0) member.sources[0] = options.others[at - 1];
    member.config = load(member);
    const Task& task = task_of(member.config.model.family, member.config.model.task);
    if (!task.classes || task.targets != TargetKind::label)
      throw_input("the model does not predict one class for each sample", member.sources[0],
                  "runs of the task classification");
  }
  Ensemble ensemble;
  for (const EvalOptions& member : members) {
    const Evaluated one = evaluate_run(member, mpi, ensemble.see());
    if (one.result.targets == 0)
      throw_input("the rows have no labels", "--files", "files with labels");
    ensemble.add(member.sources[0], one.launch->trainer, *one.launch->dataset, split_of(options),
                 one.result);
  }
  if (mpi.world().rank() != 0) return 0;
  nlohmann::ordered_json report = ensemble.report();
  print_once(options.json ? json_line(report) : Ensemble::text(report));
  return 0;
}

int run_eval(const EvalOptions& given, MpiEnvironment& mpi) {
  given.excludes("--split", "--files", !given.files.empty());
  given.excludes("--text", "--files", !given.files.empty());
  given.excludes("--text", "--split test", given.split == "test");
  given.excludes("--newest", "--step", given.step >= 0);
  for (const char* const option : {"--step", "--predictions", "--logits"})
    given.excludes(option, "--ensemble", !given.others.empty());
  EvalOptions options = given;
  if (!options.files.empty()) options.split = "test";
  if (!options.predictions.empty()) require_output(options.predictions, "--predictions");
  if (!options.others.empty()) return run_ensemble(options, mpi);
  const Evaluated one = evaluate_run(options, mpi);
  if (one.result.targets == 0) return say_unlabelled(options, one.result);
  print_result(options, *one.launch, one.step, one.stored, one.result);
  return 0;
}

void add_eval_options(CLI::App& app, EvalOptions& options) {
  add_json_option(app, options);
  app.add_option("--step", options.step,
                 "step of the checkpoint (default: the best checkpoint if checkpoint.best is set, "
                 "otherwise the newest)")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber);
  add_choice_options(app, options.choice);
  app.add_option(
         "--predictions", options.predictions,
         "file to write each sample's index, tokens, label, prediction, probability and logits to")
      ->type_name("FILE.csv|FILE.jsonl");
  app.add_option("--logits", options.logits,
                 "directory to write logits.npy and the model's inputs (tokens.npy, ...) to")
      ->type_name("DIRECTORY");
  add_default_option(app, "--split", options.split,
                     "split to evaluate: validation, or test (data.test_files, data.test)")
      ->check(CLI::IsMember({"validation", "test"}));
  const auto add_files = [&](const char* name, std::vector<std::string>& files, const char* help,
                             const char* type = "FILE") {
    app.add_option(name, files, help)
        ->type_name(type)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  };
  add_files("--ensemble", options.others,
            "another run that classifies the same data; prints the metrics of each run, of the "
            "mean of their probabilities and of a majority vote; may be repeated",
            "RUN");
  add_files("--text", options.text, "text whose held-out part is evaluated instead of the run's");
  add_files("--files", options.files,
            "files in the run's data.format to evaluate entirely, instead of --split and --text");
}

}  // namespace

Command command_eval() {
  return make_command<EvalOptions>("evaluate a run's best or newest checkpoint on held-out data",
                                   add_eval_options, run_eval);
}

}  // namespace concertina
