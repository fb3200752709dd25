// Chooses which trial of a study runs next, and up to which step. Invariant: a sampler's choices
// depend only on the study and the finished trials, so a stopped study continues where it ended.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/options.h"
#include "core/registry.h"
#include "experiments/study/study_spec.h"
#include "experiments/study/trial_record.h"
#include "io/toml_reader.h"

namespace concertina {

/// A trial to be run up to a certain step.
struct TrialTask {
  Trial trial;
  std::int64_t steps = 0;  // 0: all steps of its config
};

class Sampler {
 public:
  virtual ~Sampler() = default;
  /// Returns the next trial to start, or nothing if a running task must finish first. If `idle` (no
  /// task is running), returning nothing means that the study is finished.
  virtual std::optional<TrialTask> next(bool idle) = 0;
  /// Reports a finished task; `trial` contains its state and, with rungs, its metrics.
  virtual void tell(const TrialRecord& trial) = 0;
  /// Number of remaining tasks that are not running, if known.
  virtual std::optional<int> left() const = 0;
};

/// A method for choosing a study's trials ([search] method). Each has a file, samplers/<name>.cc.
struct SearchMethod {
  /// `before`: the trials that already have a record.
  std::unique_ptr<Sampler> (*make)(const StudySpec& spec,
                                   const std::map<int, TrialRecord>& before) = nullptr;
  std::vector<Option> options{};  // keys of [search]; required if the default is 0 or ""
  /// The steps at which trials are compared, ascending and ending with `steps`; null if they are
  /// not compared.
  std::vector<std::int64_t> (*rungs)(const OptionValues& options, std::int64_t steps) = nullptr;
  /// The option that names the program that proposes trials, which are then not in the study's
  /// file; empty if all trials are known in advance. Set by `study run --sampler`; not part of the
  /// study's identity.
  std::string_view program{};

  bool proposes() const { return !program.empty(); }
  /// Whether no trial depends on another's outcome.
  bool independent() const { return rungs == nullptr && !proposes(); }
};

/// The methods that experiments/meson.build lists.
std::span<const Entry<SearchMethod>> search_methods();
/// Reads the [search] section of a study's file. Throws Error{bad_input} naming the location.
SearchSection read_search(const TomlSource& source, const toml::node& node);
/// The method of a study whose file has been read.
const SearchMethod& method_of(const SearchSection& search);

/// A sampler of all trials for which `wanted` is true, ordered by number.
std::unique_ptr<Sampler> list_sampler(const StudySpec& spec,
                                      const std::function<bool(int number)>& wanted);

}  // namespace concertina
