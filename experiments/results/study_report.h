// The page on a study: one HTML file with its table, curves, times, trials and where they are from.
// Invariants: the page needs nothing beside it and is well-formed XML, whatever is in the study;
// all that it shows is in StudyPage, which load_study_page() alone reads.
#pragma once

#include <map>
#include <string>

#include "experiments/results/study_course.h"
#include "experiments/results/study_table.h"

namespace concertina {

struct StudyPage {
  StudyResults results;
  StudyTable table;
  std::string spec;                      // the study's file
  std::map<int, TrialCourse> courses{};  // by number of the trial
  std::map<int, std::string> configs{};  // config.toml, likewise
  std::map<int, std::string> reports{};  // where the page of the trial's run is, as a link
  std::map<int, std::string> runs{};     // where its run directory is, likewise
};

/// `path`: of the page; links are relative to its directory. Throws as make_table() does.
StudyPage load_study_page(const StudyResults& results, const TableOptions& options,
                          const std::string& path);

std::string study_page(const StudyPage& page);

/// A row of the table: what it is called, and its trials that are done (into `page`).
struct PageGroup {
  std::string label;
  Trials trials{};
};
std::vector<PageGroup> page_groups(const StudyPage& page);

/// A section without anything to show is empty. Loss and other figures by step, a line per group:
std::string curves_section(const StudyPage& page);
/// A step of each group: computing, and idle by cause.
std::string step_time_section(const StudyPage& page);

}  // namespace concertina
