// Which trial of a study runs next, and up to which step.
// Invariant: what a sampler asks for follows from the study and from what it knows of ended trials,
// so that a study that was stopped goes on where it was.
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

/// A trial up to a step of its run.
struct TrialTask {
  Trial trial;
  std::int64_t steps = 0;  // 0: all that its config has
};

class Sampler {
 public:
  virtual ~Sampler() = default;
  /// Returns the next trial to start. None: there is nothing before a task under way has ended;
  /// once none is under way, the study is over. `idle`: none is.
  virtual std::optional<TrialTask> next(bool idle) = 0;
  /// A task has ended; `trial` has its state and, with rungs, its metrics.
  virtual void tell(const TrialRecord& trial) = 0;
  /// How many tasks are left, as far as that can be known: those under way not included.
  virtual std::optional<int> left() const = 0;
};

/// How the trials of a study are chosen: [search] method. A method is one file, samplers/<name>.cc.
struct SearchMethod {
  /// `before`: the trials that have a record.
  std::unique_ptr<Sampler> (*make)(const StudySpec& spec,
                                   const std::map<int, TrialRecord>& before) = nullptr;
  std::vector<Option> options{};  // keys of [search]; one whose default is 0 or "" must be given
  /// The steps after which trials are compared, ascending, the last one `steps`; null: none are.
  std::vector<std::int64_t> (*rungs)(const OptionValues& options, std::int64_t steps) = nullptr;
  /// The option that says which program proposes the trials, which the study's file then does not;
  /// empty: all trials are known beforehand. `study run --sampler` gives it, and it is not part of
  /// what the study is.
  std::string_view program{};

  bool proposes() const { return !program.empty(); }
  /// No trial depends on what came of another.
  bool independent() const { return rungs == nullptr && !proposes(); }
};

/// The methods that experiments/meson.build lists.
std::span<const Entry<SearchMethod>> search_methods();
/// The [search] of a study's file. Throws Error{bad_input} with the place of what is wrong.
SearchSection read_search(const TomlSource& source, const toml::node& node);
/// The one of a study whose file was read.
const SearchMethod& method_of(const SearchSection& search);

/// All trials that `wanted` holds of, by number, in order.
std::unique_ptr<Sampler> list_sampler(const StudySpec& spec,
                                      const std::function<bool(int number)>& wanted);

}  // namespace concertina
