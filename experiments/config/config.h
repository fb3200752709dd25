// Everything that a run can be told, as one typed value.
// Invariant: a RunConfig that passed `validate` breaks no rule that can be checked without the
// world size, the data or the files of a run. sections.inc has its fields, their defaults and
// rules.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/options.h"
#include "experiments/config/byte_size.h"
#include "io/datasets/dataset.h"
#include "io/tokenizers/tokenizer.h"
#include "models/lr_schedule.h"
#include "parallel/plan/layout.h"
#include "parallel/policies/freeze_rules.h"
#include "parallel/repartition/layout_policy.h"

namespace concertina {

/// Values of the options of every entry of a registry, by entry.
using EntryOptions = std::map<std::string, OptionValues, std::less<>>;
/// The defaults of those of all model families, optimizers and lr schedules.
EntryOptions family_options();
EntryOptions optimizer_options();
EntryOptions lr_options();

using Betas = std::array<double, 2>;
inline constexpr Betas kBetas{0.9, 0.95};

// clang-format off
#define SECTION(name, Type, ...) struct Type { bool operator==(const Type&) const = default;
#define KEY(type, name, usual, ...) type name = usual;
#define OPTIONS(type, usual, ...) type options = usual;
#define END() };
// clang-format on
#include "experiments/config/sections.inc"

struct Sections {
#define SECTION(name, Type, ...) Type name;
#include "experiments/config/sections.inc"
  bool operator==(const Sections&) const = default;
};

/// Two are equal where their sections are: where values came from does not matter.
struct RunConfig : Sections {
  /// A model is to compute the logits of all tokens, also of those that no loss counts. No key.
  bool every_logit = false;
  /// Where each key that is not a default was set last: "a.toml:3:10" or "--set".
  std::map<std::string, std::string, std::less<>> origins;

  /// The place of a key, for errors: "a.toml:3:10: batch.global", "--set: batch.global",
  /// "batch.global (default)".
  std::string where(std::string_view key) const;
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
/// Returns the value of that key.
std::vector<std::string> data_files(const RunConfig& config);
/// data.documents, or what "auto" there stands for.
std::string documents_of(const RunConfig& config);
/// Whether the value of a key is paths of data: what counts is what the files hold.
bool names_data(std::string_view key);
/// The step at which the learning rate reaches its end: `lr.steps`, or `run.steps` where that is 0.
std::int64_t lr_steps(const RunConfig& config);

/// The keys of [lr], where the rate reaches its end at step `steps`.
LrSchedule lr_schedule_of(const RunConfig& config, std::int64_t steps);
/// Steps before a freeze policy is asked: `freeze.after`, or what -1 there stands for.
std::int64_t freeze_after(const RunConfig& config);

/// The keys of [freeze] for a model. Steps are those that the learning rate has: they stay what
/// they were when run.steps grows. Throws Error{bad_input} where model and keys contradict each
/// other.
FreezeRules freeze_rules(const RunConfig& config, const ModelSpec& model);

/// The keys of [elastic] that say what a layout policy may change.
LayoutOptions layout_options(const RunConfig& config);

/// Throws Error{bad_input} for the first pair of keys that contradict each other.
void validate(const RunConfig& config);

}  // namespace concertina
