// The loss of each row of a step's microbatches, for those whose last stage is on this rank.
// Invariant: rows stay on the device until all of them are read at once, so that the host can issue
// kernels far ahead; a microbatch's sum is made in fp64 by the host, row after row.
#pragma once

#include <vector>

#include "core/arena.h"
#include "core/memory.h"
#include "parallel/runtime/local_stages.h"

namespace concertina {

class RowLosses {
 public:
  /// `stages`: of this rank.
  RowLosses(const std::vector<LocalStage>& stages, int microbatches);

  /// The bytes that attach() takes.
  std::size_t bytes() const { return align_up(slots_ * rows_ * sizeof(float)); }
  /// `arena`: of `memory`, which outlives it.
  void attach(Arena& arena, Memory& memory);

  /// Forgets the last step's.
  void begin();
  /// Copies Stage::row_loss() of a microbatch, without a wait.
  void keep(int microbatch, View rows);
  /// Waits for the kernels issued so far.
  void read();
  /// The losses by microbatch, after read(); 0 for those that were not kept.
  const std::vector<double>& sums() const { return sums_; }

 private:
  View rows_of(int microbatch, View all) const {
    return all.slice(slot_[static_cast<std::size_t>(microbatch)] * rows_, rows_);
  }

  std::size_t slots_ = 0, rows_ = 0;  // microbatches with their last stage here, rows of each
  std::vector<std::size_t> slot_;     // by microbatch
  std::vector<int> kept_;             // microbatches
  std::vector<double> sums_;
  View all_;
  Memory* memory_ = nullptr;
  std::vector<std::byte> host_;
};

}  // namespace concertina
