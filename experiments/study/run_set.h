// Runs that exist, as the results of a study: so tables, plots and pages are of any runs, whoever
// launched them. Invariant: it only reads; a run that has not ended is there with the steps that it
// has done, and its name says so.
#pragma once

#include <string>
#include <vector>

#include "experiments/study/results.h"

namespace concertina {

/// The runs in `folders`: directories of runs, folders of studies, or folders with some of these.
/// Each is a trial; the axes are the keys in which their configs differ, where one that a config
/// lacks has its default. Throws Error{bad_input} for a folder without a run that has trained, and
/// for a run that is there twice.
StudyResults read_runs(const std::vector<std::string>& folders);

/// A study's folder alone is that study; else as of read_runs().
StudyResults read_study_or_runs(const std::vector<std::string>& folders);

}  // namespace concertina
