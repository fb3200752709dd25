// Trains the same steps at many layouts, changing between them, and says which bits differ where.
// Invariant: every layout starts from the same state, to which the one before it has been moved and
// reset, so that training, moving and resetting are all on trial.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "experiments/run/trainer.h"

namespace concertina {

/// A way to share the work of a job.
struct VerifyCase {
  std::string name;  // "pp2xdp2 zb-h1", ", 1 spare" where some ranks are
  Assignment assignment;
};

/// Every layout that the schedules of the registry have on up to `world` ranks: all grids, two
/// pipelines of different depth, spare ranks; each different plan once. `usual` comes first.
std::vector<VerifyCase> verify_cases(const Job& job, const Assignment& usual,
                                     const std::string& schedule);

/// The values that differed from the first case.
struct VerifyResult {
  std::string name;
  bool moved = true;                   // the change to this layout kept every bit
  std::int64_t first_step = 0;         // after which something differed; 0: nothing did
  std::vector<std::string> buckets{};  // units and shared tensors that differed then
  std::string bits{};                  // digests of all of them, loss and norm then
  bool same() const { return moved && first_step == 0; }
};

/// How many of `results` differed at one step and to the same bits as each other: where they are
/// most, what they were held against, the first case, is the odd one.
std::size_t differ_alike(const std::vector<VerifyResult>& results);

/// Trains `steps` steps at each of `cases`, then one run that changes its layout before every step.
/// `trainer` is started and initialized; `see` gets each result as soon as it is known, the last
/// one named "all of them, one after the other". Collective; the same on every rank.
std::vector<VerifyResult> verify(Trainer& trainer, const std::vector<VerifyCase>& cases,
                                 std::int64_t steps, BatchSource& source,
                                 const std::function<void(const VerifyResult&)>& see);

}  // namespace concertina
