// Which trial of a study runs next, and up to which step.
// Invariant: what a sampler asks for follows from the study and from what it knows of ended trials,
// so that a study that was stopped goes on where it was.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "experiments/study/study_spec.h"
#include "experiments/study/trial_record.h"

namespace concertina {

/// A trial up to a step of its run.
struct TrialTask {
  Trial trial;
  std::int64_t steps = 0;  // 0: all that its config has
};

class Sampler {
 public:
  virtual ~Sampler() = default;
  /// What to start next. Nothing: there is nothing before a task under way has ended; once none is
  /// under way, the study is over. `idle`: none is.
  virtual std::optional<TrialTask> next(bool idle) = 0;
  /// A task has ended; `trial` has its state and, with rungs, its metrics.
  virtual void tell(const StoredTrial& trial) = 0;
  /// How many tasks are left, as far as that can be known: those under way not included.
  virtual std::optional<int> left() const = 0;
};

/// `before`: the trials that have a record.
std::unique_ptr<Sampler> make_sampler(const StudySpec& spec,
                                      const std::map<int, StoredTrial>& before);

/// All trials in order, but those that have ended.
std::unique_ptr<Sampler> list_sampler(const StudySpec& spec,
                                      const std::map<int, StoredTrial>& before);
/// This trial alone; nothing if the study has no such trial.
std::unique_ptr<Sampler> one_trial_sampler(const StudySpec& spec, int number);
/// Successive halving: of the trials that reached a rung, the best 1/factor go on to the next one.
/// As in ASHA (Li et al., MLSys 2020, algorithm 2) no task waits for the last ones of a rung; but
/// as the trials are known beforehand, lower rungs come first, so that few go on that should not.
std::unique_ptr<Sampler> asha_sampler(const StudySpec& spec,
                                      const std::map<int, StoredTrial>& before);
/// Another program, by lines of JSON (the user's guide has the protocol).
std::unique_ptr<Sampler> command_sampler(const StudySpec& spec,
                                         const std::map<int, StoredTrial>& before);

/// The steps of asha's rungs, ascending; the last one is `steps`.
std::vector<std::int64_t> rungs_of(const SearchSection& search, std::int64_t steps);

}  // namespace concertina
