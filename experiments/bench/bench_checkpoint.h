// `concertina bench checkpoint`: saves, loads and snapshots of a state against what the disk and
// the memory do with as many bytes. Invariant: what is measured is what a run does: shards with
// their hashes, until they are durable; reads that are verified; snapshots until they have their
// names.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace concertina {

struct CheckpointBenchOptions {
  std::string directory = ".";
  double bytes = 256e6;  // of the state
  int tensors = 48;      // of equal size, each with two states of an optimizer
  int rounds = 5;
};

/// Times are medians of rounds; in a round each is measured right beside its bound. Keys: bytes,
/// tensors, rounds, directory, and save, load (from the page cache), cold_load (from the disk, as
/// far as the page cache lets go of it), snapshot: each with ms, bound_ms, ratio (of bound to time,
/// median of the rounds'). Bounds: a write of the bytes and fsync, reads of the files, a memcpy. A
/// save is that of a rank: its shard, the manifest and the view. One process.
nlohmann::ordered_json bench_checkpoint(const CheckpointBenchOptions& options);

std::string checkpoint_table(const nlohmann::ordered_json& result);

}  // namespace concertina
