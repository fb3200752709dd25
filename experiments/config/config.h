// Everything that a run can be told, as one typed value.
// Invariant: a RunConfig that passed `validate` breaks no rule that can be checked without the
// world size, the data or the files of a run; key table, types and defaults are in config_keys.cc.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/options.h"
#include "experiments/config/byte_size.h"
#include "io/tokenizers/tokenizer.h"
#include "parallel/plan/layout.h"
#include "parallel/policies/freeze_rules.h"
#include "parallel/repartition/layout_policy.h"

namespace concertina {

struct RunSection {
  std::string name = "default", dir = "runs", device = "cpu";
  std::int64_t seed = 1, steps = 200;
  double watchdog = 600;
  double peak_tflops = 0;  // 0: by the name of the GPU, where that is known
  int threads = 0;         // 0: the cores that this rank may use, shared with the other ranks there
  bool graphs = true;
  bool operator==(const RunSection&) const = default;
};

/// Values of the options of every entry of a registry, by entry.
using EntryOptions = std::map<std::string, OptionValues, std::less<>>;
/// The defaults of those of all model families, optimizers and lr schedules.
EntryOptions family_options();
EntryOptions optimizer_options();
EntryOptions lr_options();

struct ModelSection {
  std::string family = "gpt";
  int layers = 4, width = 128, heads = 4, context = 128, vocab = 256;
  double dropout = 0;
  std::int64_t seed = -1;  // see model_seed()
  std::string task = "auto";
  int classes = 2;
  EntryOptions options = family_options();  // of every family
  std::string from{};                       // a folder, or empty
  bool operator==(const ModelSection&) const = default;
};

struct DataSection {
  std::string format = "text";
  std::vector<std::string> text, files, validation_files, test_files;
  std::string tokenizer{kBytesTokenizer}, windows = "shifted";
  double validation = 0.1;
  std::vector<double> mean{0.5}, deviation{0.5};  // of all channels, or of each
  int crop = 0, stride = 128;
  bool flip = false;
  std::int64_t seed = -1;  // see data_seed()
  bool operator==(const DataSection&) const = default;
};

struct BatchSection {
  int global = 32, microbatches = 8;
  bool operator==(const BatchSection&) const = default;
};

struct FreezeSection {
  int units = 0;
  std::string policy = "none";
  std::int64_t every = 0;
  int max = 0;  // layers; 0: all, as long as something trains
  std::string unfreeze = "never";
  double unfreeze_rise = 0.1;
  OptionValues options = default_freeze_options();  // of every policy
  bool operator==(const FreezeSection&) const = default;
};

/// What decides the layout while a run goes on.
struct ElasticSection {
  std::string policy = "none";
  std::int64_t every = 0;  // steps; 0: only after a freeze
  bool depth = true, replicas = true, schedule = true;
  double least_gain = 0.02;
  std::string batch = "constant";
  bool operator==(const ElasticSection&) const = default;
};

struct CacheSection {
  ByteSize memory, disk;
  std::string dir, use = "pays";
  bool operator==(const CacheSection&) const = default;
};

struct OptimizerSection {
  std::string name = "adamw";
  double lr = 1e-3, eps = 1e-8, weight_decay = 0.1, clip = 1;
  std::array<double, 2> betas{0.9, 0.95};
  EntryOptions options = optimizer_options();  // of every optimizer
  bool operator==(const OptimizerSection&) const = default;
};

struct LrSection {
  std::string schedule = "cosine";
  std::int64_t warmup = 20, steps = 0;  // steps: see lr_steps()
  double min = 0.1;
  EntryOptions options = lr_options();  // of every schedule
  bool operator==(const LrSection&) const = default;
};

struct ParallelSection {
  int pp = 0, dp = 0;    // 0: follows from the world size
  int chunks = 0;        // stages a rank; 0: as many as the schedule wants
  int spare = 0;         // ranks that hold no stage
  ByteSize move_memory;  // 0: a quarter of a rank's state
  std::string schedule = "1f1b", partition = "balanced";  // schedule: a name, or a path
  std::string exchange = "all-to-all", transport = "auto";
  std::vector<std::string> recompute;  // see choose_recompute() (models/recompute.h)
  bool overlap = false;
  Layout layout;  // empty: from pp and dp
  bool operator==(const ParallelSection&) const = default;
};

struct NumericsSection {
  std::string compute = "fp32", attention = "auto", isa = "auto";
  int leaves = 0;  // 0: see reduction_leaves()
  bool operator==(const NumericsSection&) const = default;
};

struct CheckpointSection {
  std::int64_t every = 0;
  int keep = 2;
  std::string dir;
  bool operator==(const CheckpointSection&) const = default;
};

struct EvalSection {
  std::int64_t every = 0;
  int batches = 0, periodic_batches = 0;
  bool operator==(const EvalSection&) const = default;
};

struct GenerateSection {
  int tokens = 0;
  double temperature = 0.8;
  std::string prompt = "\n";
  bool operator==(const GenerateSection&) const = default;
};

struct LogSection {
  std::int64_t every = 10;
  bool tensorboard = true;
  int trace = 4;
  std::vector<std::int64_t> trace_at;
  std::int64_t trace_every = 0;
  bool operator==(const LogSection&) const = default;
};

struct RunConfig {
  RunSection run;
  ModelSection model;
  DataSection data;
  BatchSection batch;
  FreezeSection freeze;
  ElasticSection elastic;
  CacheSection cache;
  OptimizerSection optimizer;
  LrSection lr;
  ParallelSection parallel;
  NumericsSection numerics;
  CheckpointSection checkpoint;
  EvalSection eval;
  GenerateSection generate;
  LogSection log;

  /// A model is to compute the logits of all tokens, also of those that no loss counts. No key.
  bool every_logit = false;
  /// Where each key that is not a default was set last: "a.toml:3:10" or "--set".
  std::map<std::string, std::string, std::less<>> origins;

  /// The place of a key, for errors: "a.toml:3:10: batch.global", "--set: batch.global",
  /// "batch.global (default)".
  std::string where(std::string_view key) const;

  /// Equal values; where they came from does not matter.
  bool operator==(const RunConfig& other) const;
};

/// `<run.dir>/<run.name>`.
std::string run_directory(const RunConfig& config);
/// `checkpoint.dir`, or `<run directory>/checkpoints`.
std::string checkpoint_directory(const RunConfig& config);
/// Where the files of cached activations are: `cache.dir`, or the run directory.
std::string cache_directory(const RunConfig& config);
/// Paths to files outside the run directory made absolute: such a config holds from anywhere.
RunConfig with_absolute_paths(RunConfig config);
/// Leaves of the canonical reduction tree: `numerics.leaves`, or default_leaves() of the
/// microbatches (parallel/plan/reduction_tree.h). A layout never matters.
int reduction_leaves(const RunConfig& config);

/// The seed of the initial weights: `model.seed`, or `run.seed` where that is -1.
std::uint64_t model_seed(const RunConfig& config);
/// The seed of the order of the data: `data.seed`, or `run.seed` where that is -1.
std::uint64_t data_seed(const RunConfig& config);
/// The key that names the files of data.format.
std::string files_key(const RunConfig& config);
/// What that key says.
std::vector<std::string> data_files(const RunConfig& config);
/// Whether the value of a key is paths of data: what counts is what the files hold.
bool names_data(std::string_view key);
/// The step at which the learning rate reaches its end: `lr.steps`, or `run.steps` where that is 0.
std::int64_t lr_steps(const RunConfig& config);

/// The keys of [freeze] for a model. Steps are those that the learning rate has: they stay what
/// they were when run.steps grows. Throws Error{bad_input} where model and keys contradict each
/// other.
FreezeRules freeze_rules(const RunConfig& config, const ModelSpec& model);

/// The keys of [elastic] that say what a layout policy may change.
LayoutOptions layout_options(const RunConfig& config);

/// Throws Error{bad_input} for the first pair of keys that contradict each other.
void validate(const RunConfig& config);

}  // namespace concertina
