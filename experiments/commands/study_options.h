// What the commands on a study's results have in common: which trials, in which groups.
#pragma once

#include "experiments/commands/command.h"
#include "experiments/results/study_table.h"

namespace concertina {

struct GroupOptions {
  std::string directory;  // of the study
  TableOptions table;
  std::string test = "t", correction = "holm";
};
void add_group_options(CLI::App& app, GroupOptions& options);
TableOptions table_options(const GroupOptions& options);

}  // namespace concertina
