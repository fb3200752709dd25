// Faults that a soak makes in a run under way, by name.
// Invariant: a fault touches only processes and files of that run; hosts and disks are the matter
// of programs of the user's (SoakOptions::host_faults, disk_faults).
#pragma once

#include <sys/types.h>
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
};

/// What makes a fault.
enum class FaultMaker { soak, hosts, disk };  // this program, --host-faults, --disk-faults

struct FaultKind {
  const char* help;
  FaultMaker maker = FaultMaker::soak;
  /// Makes the fault where the soak does that itself; false: there is nothing yet to make it in.
  bool (*make)(const FaultTarget& target, std::mt19937_64& random) = nullptr;
  /// The words for the fault, and for what ends it some seconds later, where a program makes it.
  const char *made_by = nullptr, *mended_by = nullptr;
  bool ends_supervisor = false;
  bool harmless = false;  // no launch is lost by it
};

std::span<const Entry<FaultKind>> fault_kinds();

}  // namespace concertina
