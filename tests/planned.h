// A config's job and assignment at a world size, for tests that look at both.
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
