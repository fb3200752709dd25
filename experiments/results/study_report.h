// The page on a study: one HTML file with its table, curves, times, trials and where they are from.
// Invariants: the page needs nothing beside it and is well-formed XML, whatever is in the study;
// all that it shows is in StudyPage, which load_study_page() alone reads.
#pragma once

#include <map>
#include <string>

#include "experiments/results/study_course.h"
#include "experiments/results/study_table.h"

namespace concertina {

/// The run of a trial, as far as the page shows it.
struct PageRun {
  RunLog course;
  std::string config;        // config.toml
  std::string link, report;  // to its directory; to its page, empty where there is none
};

struct StudyPage {
  StudyResults results;
  StudyTable table;
  std::string spec;               // the study's file
  std::map<int, PageRun> runs{};  // by number of the trial; of those that have a run directory
  std::string first{};            // a section before all others
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

/// Loss and other figures by step, a line per group. A section without anything to show is empty.
std::string curves_section(const StudyPage& page);
/// A step of each group: computing, and idle by cause.
std::string step_time_section(const StudyPage& page);

}  // namespace concertina
