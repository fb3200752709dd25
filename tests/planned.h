// The job and the assignment of a config at a world size, for tests that need both.
#pragma once

#include "experiments/run/planning.h"

namespace concertina {

struct PlannedJob : Assignment {
  Job job;
};

inline PlannedJob planned(const RunConfig& config, int world) {
  const Job job = job_of(config);
  return {assignment_of(config, job, world), job};
}

}  // namespace concertina
