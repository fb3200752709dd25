// Options that several commands on studies have: which trials, in which groups; what launches them.
#pragma once

#include "experiments/commands/command.h"
#include "experiments/results/study_table.h"

namespace concertina {

struct GroupOptions : CommandOptions {
  std::string directory;  // of the study
  TableOptions table;
  std::string test = "t", correction = "holm";
};
void add_group_options(CLI::App& app, GroupOptions& options);
TableOptions table_options(const GroupOptions& options);

/// --launcher of those that Slurm starts trials with.
void add_launcher_option(CLI::App& app, std::string& launcher);

}  // namespace concertina
