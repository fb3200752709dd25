// All settings of a run as one typed value.
// Invariant: a RunConfig that passed `validate` breaks no rule that can be checked without the
// world size, the data or the files of a run. sections.inc lists the fields, defaults and rules.
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

/// Option values of every registry entry, by entry name.
using EntryOptions = std::map<std::string, OptionValues, std::less<>>;
/// Default options of all model families, optimizers and learning-rate schedules.
EntryOptions family_options();
EntryOptions optimizer_options();
EntryOptions lr_options();

using Betas = std::array<double, 2>;
inline constexpr Betas kBetas{0.9, 0.95};
/// The maps that may have adapters (models/units/adapter.h), and do by default.
inline const std::vector<std::string> kLoraTargets{"qkv", "proj", "up", "down"};

// clang-format off
#define SECTION(name, Type, ...) struct Type { bool operator==(const Type&) const = default;
#define KEY(type, name, default_value, ...) type name = default_value;
#define OPTIONS(type, default_value, ...) type options = default_value;
#define END() };
// clang-format on
#include "experiments/config/sections.inc"

struct Sections {
#define SECTION(name, Type, ...) Type name;
#include "experiments/config/sections.inc"
  bool operator==(const Sections&) const = default;
};

/// Two configs are equal if their sections are; the origins of values do not matter.
struct RunConfig : Sections {
  /// Whether to compute the logits of all tokens, even of those without a loss. Not a config key.
  bool every_logit = false;
  /// Where each non-default key was last set: "a.toml:3:10" or "command line".
  std::map<std::string, std::string, std::less<>> origins;

  /// Describes the location of a key for errors: "a.toml:3:10: batch.global", "command line:
  /// batch.global", "batch.global (default)".
  std::string where(std::string_view key) const;
};

/// `<run.dir>/<run.name>`.
std::string run_directory(const RunConfig& config);
/// `checkpoint.dir`, or `<run directory>/checkpoints`.
std::string checkpoint_directory(const RunConfig& config);
/// Directory of the cached activation files: `cache.dir`, or the run directory.
std::string cache_directory(const RunConfig& config);
/// Returns a copy with absolute paths to files outside the run directory, valid in any directory.
RunConfig with_absolute_paths(RunConfig config);
/// Number of leaves of the canonical reduction tree: `numerics.leaves`, or default_leaves() of the
/// microbatches (parallel/plan/reduction_tree.h). Does not depend on the layout.
int reduction_leaves(const RunConfig& config);

/// Whether the model learns from a teacher.
inline bool distills(const RunConfig& config) {
  return !config.distill.teacher.empty();
}
/// The seed of the initial weights: `model.seed`, or `run.seed` where that is -1.
std::uint64_t model_seed(const RunConfig& config);
/// The seed of the data order: `data.seed`, or `run.seed` where that is -1.
std::uint64_t data_seed(const RunConfig& config);
/// The key that names the files of data.format.
std::string files_key(const RunConfig& config);
/// The value of files_key().
std::vector<std::string> data_files(const RunConfig& config);
/// The resolved value of data.documents, never "auto".
std::string documents_of(const RunConfig& config);
/// Whether the model predicts the next token.
bool is_causal_lm(const RunConfig& config);
/// The step that reaches the final learning rate: `lr.steps`, or `run.steps` where that is 0.
std::int64_t lr_steps(const RunConfig& config);

/// The keys of [lr] as a schedule that reaches the final rate at step `steps`.
LrSchedule lr_schedule_of(const RunConfig& config, std::int64_t steps);
/// Steps before a freeze policy may decide: `freeze.after`, or the value that -1 resolves to.
std::int64_t freeze_after(const RunConfig& config);

/// The keys of [freeze] for a model. Steps are relative to lr_steps(), so they do not change when
/// run.steps grows. Throws Error{bad_input} if the keys and the model are incompatible.
FreezeRules freeze_rules(const RunConfig& config, const ModelSpec& model);

/// The keys of [elastic] that limit what a layout policy may change.
LayoutOptions layout_options(const RunConfig& config);

/// Throws Error{bad_input} for the first rule that the keys break.
void validate(const RunConfig& config);

}  // namespace concertina
