// Model of a machine for predictions: rates and links.
// Invariant: plain values, no clock; unknown values take no time, except the rate of products,
// which a prediction from FLOPs needs. Stored in machine files
// (experiments/predict/machine_file.h).
#pragma once

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "parallel/simulate/costs.h"

namespace concertina {

/// The valid range of seconds, bytes and rates entered by a user: on the command line, in a machine
/// file, or in costs.json. The product or quotient of any two values, summed over all actions of a
/// plan (kMostActions), is finite, so predictions neither overflow nor get stuck.
inline constexpr double kSmallestValue = 1e-30, kLargestValue = 1e18;
inline constexpr const char* kValueRange = "0, or a number from 1e-30 to 1e18";

/// False for NaN and infinity.
inline constexpr bool is_valid_value(double value) {
  return value == 0 || (value >= kSmallestValue && value <= kLargestValue);
}

/// Times of the parts of a layout change: moving bytes (between ranks of one host, and within a
/// rank) and the rest.
struct MoveRates {
  double exchange_s_per_byte = 0;  // between two ranks, both directions at once; 0: use the link
  double copy_s_per_byte = 0;      // within a rank's memory
  double block_s_per_byte = 0;     // first write to newly allocated memory
  double move_factor = 1;          // ratio of measured to predicted move duration
  double rebuild_s = 0;            // everything in a change except the move of the state
  bool operator==(const MoveRates&) const = default;
};

/// One device of the machine; 0 means unknown and counts as no time or memory.
struct DeviceSpecs {
  double memory = 0;              // bytes
  double reserved_bytes = 0;      // part of `memory`: driver, libraries, allocator overhead
  double peak_flops_per_s = 0;    // from the data sheet, for MFU and HFU
  double memory_bytes_per_s = 0;  // reading and writing: norms, dropout, softmax, the update
  double layer_s = 0;             // kernel launches per pass through a layer, regardless of size
  bool operator==(const DeviceSpecs&) const = default;
};

struct MachineModel {
  double flops_per_s = 0;                                   // products on one rank; 0: unknown
  double load_s = 0;                                        // reading the samples of a step
  double norm_s_per_element = 0, update_s_per_element = 0;  // per element of an owner's part
  double post_s = 0;                                        // per SEND or RECV
  double combine_s_per_byte = 0;                            // adding received gradients
  MoveRates moves;
  double cache_read_s_per_byte = 0;  // reading the outputs of frozen units, all ranks at once
  DeviceSpecs device;
  int ranks_per_host = 0;  // 0: all on one host
  int nics_per_host = 0;   // share remote.bandwidth equally; 0 and 1: one for all ranks
  LinkCosts local, remote;
  std::map<std::pair<int, int>, LinkCosts> pairs;  // (from, to) that differ from `local`, `remote`
  /// Lines "SOFTWARE: what was measured, and the error of predictions" for the user; empty if
  /// nothing was compared.
  std::vector<std::string> compared;
  std::vector<double> factors;  // by rank (rank_factor()); 0 or missing: unknown
  bool operator==(const MachineModel&) const = default;
};

/// Duration of the units and the update on `rank` relative to the others; 1 if unknown.
double rank_factor(const MachineModel& machine, int rank);

/// Seconds for this many bytes or FLOPs; 0 if the rate is unknown.
inline double over(double amount, double rate) {
  return rate > 0 && std::isfinite(rate) ? amount / rate : 0;
}

/// Bytes per second between devices of one host; for shared memory, the receiver's copy.
double local_rate(const MachineModel& machine);
/// Seconds that an update takes per element of an owner's part. By default derived from the memory
/// bandwidth and the traffic of AdamW.
double update_seconds(const MachineModel& machine);

/// Whether the duration of any message between ranks is known.
bool has_links(const MachineModel& machine);

/// `machine` with the links, the ranks per host and, if there are any, the move rates of `other`.
MachineModel with_links(MachineModel machine, const MachineModel& other);

/// The host of each of `ranks` ranks; empty: all are on one host.
std::vector<int> hosts_of(const MachineModel& machine, int ranks);

/// Adds to `costs` how long messages between `ranks` ranks take on `machine`.
void add_links(const MachineModel& machine, int ranks, Costs& costs);

}  // namespace concertina
