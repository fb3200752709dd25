// Sections of the page on a study.
// Invariant: as of experiments/results/study_report.h; a section without anything to show is empty.
#pragma once

#include <string>
#include <vector>

#include "experiments/results/study_report.h"

namespace concertina {

/// What the trials of a group are called, and which they are (into `page`), in the table's order.
struct PageGroup {
  std::string label;
  Trials trials;  // that are done
};
std::vector<PageGroup> page_groups(const StudyPage& page);

/// Loss and other figures by step, a line per group.
std::string curves_section(const StudyPage& page);
/// A step of each group: computing, and idle by cause.
std::string step_time_section(const StudyPage& page);
/// A line per trial, with links; then what went wrong.
std::string trials_section(const StudyPage& page);
/// Axes and their values; other keys in which the trials' configs differ.
std::string settings_section(const StudyPage& page);
/// Programs and machines.
std::string origin_section(const StudyPage& page);

}  // namespace concertina
