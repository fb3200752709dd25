// Faults that a soak makes in a run under way, by name.
// Invariant: a fault touches only processes and files of that run.
#pragma once

#include <sys/types.h>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "core/registry.h"

namespace concertina {

/// The run that a fault is made in, as it is now.
struct FaultTarget {
  std::vector<pid_t> ranks;  // of this host
  pid_t launcher = 0;        // 0: there is none
  pid_t supervisor = 0;
  std::string checkpoints{};  // its directory
};

struct FaultKind {
  const char* help;
  /// Makes the fault; false: there is nothing yet to make it in, try again soon.
  std::function<bool(const FaultTarget& target, std::mt19937_64& random)> make;
  bool ends_supervisor = false;
};

std::span<const Entry<FaultKind>> fault_kinds();

}  // namespace concertina
