// The contents of a study file (STUDY.toml): configs, how to vary them and how to launch them.
// Invariant: pure values; each axis value has passed the checks of its config key, so that a trial
// can only fail because of a combination of values.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/options.h"
#include "experiments/config/config.h"
#include "experiments/study/results.h"
#include "io/toml_reader.h"

namespace concertina {

inline constexpr int kMostTrials = 100'000, kMostTrialRanks = 1 << 20;  // of a study; of a trial

/// A config file that all trials start from.
struct BaseFile {
  std::string path, text;
};

/// The settings of a trial at each position of an axis, and the keys that identify the positions:
/// all keys of [grid] and [[zip]]; only kArmKey for [[arm]]s, whose keys may differ.
struct Axis {
  std::vector<std::string> keys;
  std::vector<Settings> values;
  bool operator==(const Axis&) const = default;
};

/// A key whose values are drawn randomly.
struct Draw {
  enum class Kind { uniform, log_uniform, choice };
  std::string key;
  Kind kind = Kind::uniform;
  double low = 0, high = 0;  // inclusive
  bool whole = false;        // rounded to integers
  std::vector<std::string> choices;
  bool operator==(const Draw&) const = default;
};

/// [random]: the random draws and their number.
struct RandomAxes {
  std::vector<Draw> draws;
  int trials = 0;
  std::int64_t seed = 1;
  bool operator==(const RandomAxes&) const = default;
};

/// [search]: which trials run, and for how long.
struct SearchSection {
  std::string method = "all";  // of search_methods()
  std::string metric{};
  bool minimise = true;
  OptionValues options{};  // of the method
  bool operator==(const SearchSection&) const = default;
};

/// [stop]: when a running trial is stopped because of its metrics.
struct StopSection {
  std::string metric;  // of metrics.jsonl, or validation_loss; empty: never
  double above = 0, below = 0;
  bool has_above = false, has_below = false;
  std::int64_t after = 0;  // never stops a trial before this step
  int patience = 0;        // values in a row without improvement; 0: unlimited
  bool operator==(const StopSection&) const = default;
};

/// [launch]: how a trial is started. Not part of a study's identity: it may change between
/// launches.
struct LaunchSection {
  std::string command;               // with {ranks}, {program} and {args}; empty: kDefaultLauncher
  int ranks = 0;                     // 0: from parallel.pp and parallel.dp
  int jobs = 1;                      // concurrent trials
  double time_limit = 0;             // seconds per trial; 0: none
  double launcher_limit = 300;       // seconds that a launcher may run without ranks; 0: unlimited
  std::string stop_signal = "USR1";  // asks a trial to write a checkpoint and stop
};

struct StudySpec {
  std::string name;
  std::vector<BaseFile> bases;
  Settings set;            // for all trials: [set], or [override] instead
  std::vector<Axis> axes;  // [grid], [[zip]] and [[arm]], in the order of the file
  RandomAxes random;
  std::vector<std::int64_t> seeds;  // run.seed; empty: the config's
  SearchSection search;
  StopSection stop;
  std::optional<EquivalenceClaim> claim;  // [equivalence]
  LaunchSection launch;
  /// For an extended study: the previous numbers of [random] trials, of values of each axis and of
  /// seeds, for each extension. Keeps trial numbers stable.
  std::vector<std::vector<std::int64_t>> grown;
};

/// Axis keys that are not config keys: a launch's number of ranks and an arm's name.
inline constexpr const char* kRanksKey = "ranks";
inline constexpr const char* kArmKey = "arm";
/// Placeholder for the trial's seed in a value's text.
inline constexpr const char* kSeedWord = "{seed}";

/// Finds the base file with this index, from 0, and this path in the study's file.
using FindBase = std::function<std::string(std::size_t index, const std::string& path)>;

/// `source`: the study's name in errors. Throws Error{bad_input} for the first error.
StudySpec read_study_spec(const std::string& toml, const std::string& source,
                          const FindBase& find_base);
/// Reads a study from a file, with paths relative to it. The file name is the study's default name.
/// Sets `toml` to the file's text followed by `more`, such as [override].
StudySpec read_study_file(const std::string& path, std::string& toml, const std::string& more = "");

/// How `now` differs from the study `before`: "[set] differs". Empty if they are equal or `now`
/// only adds trials at the end; names, launchers and comments do not matter.
std::string study_difference(const StudySpec& before, const StudySpec& now);

/// SHA-256 of what all trials of a study share: base files and [set].
std::string study_digest(const StudySpec& spec);

/// The keys that differ between trials, run.seed last.
std::vector<std::string> axes_of(const StudySpec& spec);

struct Trial {
  int number = 0;  // from 1
  Settings settings;
};
/// All trials in order: for each seed all draws, for each draw all combinations of the axes, with
/// the last axis varying fastest. Configs are thus interleaved, and more seeds add trials at the
/// end. For an extended study, the original trials come first.
std::vector<Trial> trials_of(const StudySpec& spec);
/// Returns `now` with the trial numbers of `before` if it only adds values at the end of axes or
/// seeds, otherwise unchanged.
StudySpec grown_from(const StudySpec& before, StudySpec now);
/// The text of StudySpec::grown for the study's copy of its file; empty if there is none.
std::string grown_text(const StudySpec& spec);

/// The config of a trial, not validated: base files, the study's keys and the trial's settings.
RunConfig config_of(const StudySpec& spec, const Settings& settings);
/// Whether the study itself sets this key for each trial: the location of the trial's run.
bool is_studys_own(std::string_view key);
/// A trial's number of ranks: kRanksKey in `settings`, otherwise [launch] ranks, otherwise computed
/// from the config's pp and dp.
int ranks_of(const StudySpec& spec, const Settings& settings, const RunConfig& config);

/// Removes seeds, [set], [override], [sweep], [random], [grid], [[zip]], [[arm]] and [grown] from
/// `table` (the table of `root`) and stores them in a spec whose [search] is set. Throws
/// Error{bad_input} naming the location.
void read_axes(const TomlSource& source, const toml::table& root, TomlTable& table,
               StudySpec& spec);

}  // namespace concertina
