// Presents existing runs as results of a study, so that tables, plots and pages work for any run.
// Invariant: only reads. An unfinished run appears with its completed steps and is marked in its
// name.
#pragma once

#include <string>
#include <vector>

#include "experiments/study/results.h"

namespace concertina {

/// Reads the runs in `folders`: run directories, folders of studies, or folders that contain these.
/// Each run is a trial; the axes are the keys that differ between configs. A config that lacks a
/// key counts as having its default. Throws Error{bad_input} for a folder without a trained run and
/// for a run that is listed twice.
StudyResults read_runs(const std::vector<std::string>& folders);

/// Reads a study if its folder is the only one, otherwise calls read_runs().
StudyResults read_study_or_runs(const std::vector<std::string>& folders);

}  // namespace concertina
