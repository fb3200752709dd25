// What a prediction knows of a machine: rates and links. The "machine file" is its TOML form, as
// `bench links` writes it and people write it by hand; costs.json holds one in JSON.
// Invariant: read(write(machine)) == machine; a key that is left out is free (0 seconds, infinite
// bandwidth), but for the rate of products, which a prediction from FLOPs needs.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "parallel/simulate/costs.h"

namespace concertina {

/// What a change of the layout takes: of its bytes (of ranks of one host, and within a rank), and
/// of the rest.
struct MoveRates {
  double exchange_s_per_byte = 0;  // between two ranks, both ways at once; 0: by their link
  double copy_s_per_byte = 0;      // within a rank's memory
  double block_s_per_byte = 0;     // memory that is new to a rank: written for the first time
  double move_factor = 1;          // what moves took over what all these and the links say
  double rebuild_s = 0;            // all of a change but the move of the state
  bool operator==(const MoveRates&) const = default;
};

/// One device of the machine, as `plan search` needs it; 0: not known, and what it stands for
/// takes no time or memory.
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
  bool operator==(const MachineModel&) const = default;
};

/// Errors name `source`.
MachineModel machine_from_json(const nlohmann::json& json, const std::string& source);
nlohmann::ordered_json to_json(const MachineModel& machine);

MachineModel read_machine_file(const std::string& path);
std::string machine_toml(const MachineModel& machine);

}  // namespace concertina
