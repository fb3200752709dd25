// The content of a study file (STUDY.toml): configs to vary, how to vary them, how to launch.
// Invariant: values alone; each value of an axis passed the checks of its config key, so that what
// a trial can still get wrong is how values go together.
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

/// What a trial gets at each place of an axis, and the keys that tell these places apart: all keys
/// of [grid] and [[zip]], kArmKey alone of [[arm]]s, each of which has keys of its own.
struct Axis {
  std::vector<std::string> keys;
  std::vector<Settings> values;
  bool operator==(const Axis&) const = default;
};

/// A key whose values are drawn at random.
struct Draw {
  enum class Kind { uniform, log_uniform, choice };
  std::string key;
  Kind kind = Kind::uniform;
  double low = 0, high = 0;  // the ends belong to the range
  bool whole = false;        // rounded to whole numbers
  std::vector<std::string> choices;
  bool operator==(const Draw&) const = default;
};

/// [random]: how many times all draws are made.
struct RandomAxes {
  std::vector<Draw> draws;
  int trials = 0;
  std::int64_t seed = 1;
  bool operator==(const RandomAxes&) const = default;
};

/// [search]: which trials run, and how long.
struct SearchSection {
  std::string method = "all";  // of search_methods()
  std::string metric{};
  bool minimise = true;
  OptionValues options{};  // of the method
  bool operator==(const SearchSection&) const = default;
};

/// [stop]: when a trial under way is ended for its figures.
struct StopSection {
  std::string metric;  // of metrics.jsonl, or validation_loss; empty: never
  double above = 0, below = 0;
  bool has_above = false, has_below = false;
  std::int64_t after = 0;  // steps that are always left to it
  int patience = 0;        // values in a row that are no better than the best; 0: any number
  bool operator==(const StopSection&) const = default;
};

/// [launch]: how a trial is started. Not part of what a study is: it may change between launches.
struct LaunchSection {
  std::string command;               // with {ranks}, {program} and {args}; empty: mpirun's usual
  int ranks = 0;                     // 0: as parallel.pp and parallel.dp ask for
  int jobs = 1;                      // trials side by side
  double time_limit = 0;             // seconds of a trial; 0: none
  double launcher_limit = 300;       // seconds of a launcher without ranks; 0: any number
  std::string stop_signal = "USR1";  // what asks a trial for a checkpoint and its end
};

struct StudySpec {
  std::string name;
  std::vector<BaseFile> bases;
  Settings set;            // of all trials: [set], or [override] in its place
  std::vector<Axis> axes;  // [grid], [[zip]] and [[arm]], in the order of the file
  RandomAxes random;
  std::vector<std::int64_t> seeds;  // run.seed; empty: the config's
  SearchSection search;
  StopSection stop;
  std::optional<EquivalenceClaim> claim;  // [equivalence]
  LaunchSection launch;
  /// Of a study that grew: how many of [random]'s trials, of the values of each axis and of seeds
  /// there were before, each time. Trials keep their numbers by it.
  std::vector<std::vector<std::int64_t>> grown;
};

/// The keys of axes that are no config keys: the number of ranks of a launch, the name of an arm.
inline constexpr const char* kRanksKey = "ranks";
inline constexpr const char* kArmKey = "arm";
/// Stands for the seed of a trial in the text of a value.
inline constexpr const char* kSeedWord = "{seed}";

/// Finds the base file of this index, 0 being the first, and this path in the study's file.
using FindBase = std::function<std::string(std::size_t index, const std::string& path)>;

/// `source`: its name in errors. Throws Error{bad_input} at the first thing that is wrong.
StudySpec read_study_spec(const std::string& toml, const std::string& source,
                          const FindBase& find_base);
/// The same from a file, with paths that are relative to it; its name is the study's if the file
/// gives none. `toml`: gets the file's text, and after it `more`, such as [override].
StudySpec read_study_file(const std::string& path, std::string& toml, const std::string& more = "");

/// Why `now` is not the study that `before` is: "[set] differs"; empty if it is the same, or has
/// more trials after the same first ones, whatever their names, launchers and comments.
std::string study_difference(const StudySpec& before, const StudySpec& now);

/// SHA-256 of what all trials of a study have in common: base files and [set].
std::string study_digest(const StudySpec& spec);

/// The keys that differ between trials, in order; run.seed last.
std::vector<std::string> axes_of(const StudySpec& spec);

struct Trial {
  int number = 0;  // from 1
  Settings settings;
};
/// All trials, in order: for each seed all draws, for each draw all combinations of the axes, the
/// last axis fastest. So all configs come by turns, and more seeds are more trials at the end. Of a
/// study that grew, first those that there were before.
std::vector<Trial> trials_of(const StudySpec& spec);
/// `now` with the numbers of the trials of `before`, where it is that study with more values at the
/// end of axes, or more seeds; else as it is.
StudySpec grown_from(const StudySpec& before, StudySpec now);
/// What the study's copy of its file says of StudySpec::grown; empty if that is.
std::string grown_text(const StudySpec& spec);

/// The config of a trial, not validated: base files, what the study sets, its own settings.
RunConfig config_of(const StudySpec& spec, const Settings& settings);
/// Whether a study sets this key itself, for each trial: where its run is.
bool is_studys_own(std::string_view key);
/// The value of kRanksKey in `settings`, else [launch] ranks, else what the config's pp and dp ask
/// for.
int ranks_of(const StudySpec& spec, const Settings& settings, const RunConfig& config);

/// Takes seeds, [set], [override], [random], [grid], [[zip]], [[arm]] and [grown] out of `table`,
/// which is that of `root`, into a spec that has its [search]. Throws Error{bad_input} with the
/// place of what is wrong.
void read_axes(const TomlSource& source, const toml::table& root, TomlTable& table,
               StudySpec& spec);

}  // namespace concertina
