// Trains the same steps in many layouts, changing between them, and reports which results differ.
// Invariant: every layout starts from the same state, which was moved from the previous layout and
// reset, so that training, moving and resetting are all tested.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "experiments/run/trainer.h"

namespace concertina {

/// An assignment of a job's work to ranks.
struct VerifyCase {
  std::string name;  // "pp2xdp2 zb-h1", with ", 1 spare" if there are spares
  Assignment assignment;
};

/// Every layout of the registered schedules on up to `world` ranks: all grids, two pipelines of
/// different depths, spare ranks; each distinct plan once. `base` comes first.
std::vector<VerifyCase> verify_cases(const Job& job, const Assignment& base,
                                     const std::string& schedule);

/// The values that differed from those of the first case.
struct VerifyResult {
  std::string name;
  bool moved = true;                   // the change to this layout kept every bit
  std::int64_t first_step = 0;         // first step after which something differed; 0: none
  std::vector<std::string> buckets{};  // units and shared tensors that differed at that step
  std::string bits{};                  // digests of all buckets, loss and norm at that step
  bool same() const { return moved && first_step == 0; }
};

/// The largest number of `results` that differ from the first case at the same step, but are
/// bit-identical to each other. If these are most of them, the first case is the outlier.
std::size_t differ_alike(const std::vector<VerifyResult>& results);

/// Trains `steps` steps in each of `cases`, then does a run that changes layouts before every step.
/// `trainer` must be started and initialized. `see` receives each result as soon as it is known;
/// the last one is named "all layouts in sequence". Collective; the same on every rank.
std::vector<VerifyResult> verify(Trainer& trainer, const std::vector<VerifyCase>& cases,
                                 std::int64_t steps, BatchSource& source,
                                 const std::function<void(const VerifyResult&)>& see);

}  // namespace concertina
