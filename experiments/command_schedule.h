// `concertina schedule`: schedules as values, without MPI.
#pragma once

#include "experiments/command.h"

namespace concertina {

struct ScheduleOptions {
  std::string schedule;  // a name, or a file with one row of actions a rank
  int ranks = 4, microbatches = 8, chunks = 0;
  std::vector<std::string> costs{"1", "1", "1"};  // see ScheduleCosts
  double memory = 0;                              // search: activations a rank
  std::uint64_t seed = 1;
  std::string write;  // search: the file
  bool compute_only = false, json = false;
};

int run_schedule_list(const ScheduleOptions& options);
int run_schedule_show(const ScheduleOptions& options);
int run_schedule_check(const ScheduleOptions& options);
int run_schedule_simulate(const ScheduleOptions& options);
int run_schedule_search(const ScheduleOptions& options);

Runner add_schedule(CLI::App& app);

}  // namespace concertina
