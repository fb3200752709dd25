// Faults that a soak makes in a run under way, by name.
// Invariant: a fault touches only processes and files of that run; links and power of hosts are the
// matter of a program of the user's (SoakOptions::host_faults).
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
  std::vector<pid_t> ranks;  // on this machine, also of its emulated hosts
  pid_t launcher = 0;        // 0: there is none
  pid_t supervisor = 0;
  std::string checkpoints{};  // its directory
  /// Makes a fault of some host ("cut", "mend", "power-off", "slow", "fast"); empty: none can be.
  std::function<bool(const std::string& what, std::mt19937_64& random)> host{};
};

struct FaultKind {
  const char* help;
  /// Makes the fault; false: there is nothing yet to make it in, try again soon.
  std::function<bool(const FaultTarget& target, std::mt19937_64& random)> make;
  bool ends_supervisor = false;
  /// What ends the fault some seconds later, of the host that it was made of; null: it is over.
  const char* mended_by = nullptr;
  bool harmless = false;  // no launch is lost by it
};

/// Whether a program makes it that knows of hosts.
bool is_of_hosts(const FaultKind& kind);

std::span<const Entry<FaultKind>> fault_kinds();

}  // namespace concertina
