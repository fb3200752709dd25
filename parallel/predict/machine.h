// A machine as predictions know it: rates and links.
// Invariant: plain values, no clock; what is not known takes no time, but for the rate of products,
// which a prediction from FLOPs needs. Files of it: experiments/predict/machine_file.h.
#pragma once

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "parallel/simulate/costs.h"

namespace concertina {

/// The range of a number of seconds or bytes and of a rate, wherever a user writes one: on the
/// command line, in a machine file, in costs.json. The product or quotient of any two figures,
/// summed over all actions of a plan (kMostActions), is finite. So no prediction from figures
/// overflows, and none gets stuck.
inline constexpr double kLeastFigure = 1e-30, kMostFigure = 1e18;
inline constexpr const char* kFigures = "0, or a number from 1e-30 to 1e18";

/// False for NaN and infinity, too.
inline constexpr bool is_figure(double value) {
  return value == 0 || (value >= kLeastFigure && value <= kMostFigure);
}

/// The times of a change of the layout: of its bytes (between ranks of one host, and within a
/// rank), and of the rest.
struct MoveRates {
  double exchange_s_per_byte = 0;  // between two ranks, both ways at once; 0: by their link
  double copy_s_per_byte = 0;      // within a rank's memory
  double block_s_per_byte = 0;     // memory that is new to a rank: written for the first time
  double move_factor = 1;          // what moves took over what all these and the links say
  double rebuild_s = 0;            // all of a change but the move of the state
  bool operator==(const MoveRates&) const = default;
};

/// One device of the machine; 0: not known, and what it stands for takes no time or memory.
struct DeviceFigures {
  double memory = 0;              // bytes
  double reserved_bytes = 0;      // of them: driver, libraries, what the allocator cannot use
  double peak_flops_per_s = 0;    // of the data sheet, for MFU and HFU
  double memory_bytes_per_s = 0;  // reading and writing: norms, dropout, softmax, the update
  double layer_s = 0;  // of each pass through a layer, however small: launching its kernels
  bool operator==(const DeviceFigures&) const = default;
};

struct MachineModel {
  double flops_per_s = 0;  // of the products of one rank; 0: not known
  double load_s = 0;       // a step: reading its samples
  double norm_s_per_element = 0, update_s_per_element = 0;  // of an owner's part
  double post_s = 0;                                        // of a SEND or RECV
  double combine_s_per_byte = 0;                            // adding gradients that arrive
  MoveRates moves;
  double cache_read_s_per_byte =
      0;  // reading what frozen units made of a sample, all ranks at once
  DeviceFigures device;
  int ranks_per_host = 0;  // 0: all on one host
  int nics_per_host = 0;   // that share remote.bandwidth equally; 0 and 1: one for all ranks
  LinkCosts local, remote;
  std::map<std::pair<int, int>, LinkCosts> pairs;  // (from, to) that differ from these
  /// "SOFTWARE: what was measured, and how far predictions were off", for a person; empty: nothing
  /// was ever compared.
  std::vector<std::string> compared;
  std::vector<double> factors;  // of ranks (rank_factor()); 0 and those left out: not known
  bool operator==(const MachineModel&) const = default;
};

/// How many times as long `rank` takes for its units and its update as the others would; 1 where
/// that is not known.
double rank_factor(const MachineModel& machine, int rank);

/// Seconds of so many bytes or FLOPs; 0 where the rate is not known.
inline double over(double amount, double rate) {
  return rate > 0 && std::isfinite(rate) ? amount / rate : 0;
}

/// Bytes a second between devices of one host: in shared memory, the receiver's copy.
double local_rate(const MachineModel& machine);
/// Seconds of an update, of each element of an owner's part: by the memory's rate, as AdamW reads
/// and writes, where nothing better is known.
double update_seconds(const MachineModel& machine);

/// Whether any message between ranks is known to take time.
bool has_links(const MachineModel& machine);

/// `machine` with the links of `other`, its ranks on as many hosts, and its moves if it has any.
MachineModel with_links(MachineModel machine, const MachineModel& other);

/// The host of each of `ranks` ranks; empty: all are on one.
std::vector<int> hosts_of(const MachineModel& machine, int ranks);

/// Adds what a message takes on `machine`, between `ranks` ranks.
void add_links(const MachineModel& machine, int ranks, Costs& costs);

}  // namespace concertina
