#include "parallel/generate/one_replica.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "parallel/generate/expand.h"
#include "parallel/plan/fit_layout.h"
#include "parallel/plan/reduction_tree.h"
#include "parallel/plan/schedule.h"

namespace concertina {

void require_room(std::int64_t stages, std::int64_t microbatches, double free_bytes) {
  const auto actions = static_cast<double>(most_actions(stages, microbatches));
  const double bytes = actions * kActionBytes;
  constexpr double kGibiByte = 1024.0 * 1024 * 1024;
  if (actions <= static_cast<double>(kMostActions) && bytes <= free_bytes) return;
  throw_input(fmt::format("the schedule can have {:.0f} actions, and proving them takes {:.1f} "
                          "GiB; the limit is {} "
                          "actions and {:.1f} GiB on this machine",
                          actions, bytes / kGibiByte, kMostActions,
                          std::min(free_bytes, static_cast<double>(kMostActions * kActionBytes)) /
                              kGibiByte),
              "command line", "fewer ranks, microbatches or chunks");
}

int leaves_of(std::optional<int> asked, int microbatches) {
  if (!asked) return default_leaves(microbatches);
  if (microbatches % *asked != 0)
    throw_input(fmt::format("{} leaves do not evenly divide {} microbatches", *asked, microbatches),
                "--leaves", fmt::format("a divisor of {}", microbatches));
  return *asked;
}

OneReplica one_replica(int ranks, int microbatches, std::optional<int> asked,
                       const Folding& folding) {
  int leaves = leaves_of(asked, microbatches);
  if (leaves < folding.pipelines() && !asked) leaves = microbatches;
  const int stages = ranks * folding.chunks;
  const Grid grid =
      fit({.world = ranks, .units = stages, .microbatches = microbatches, .leaves = leaves}, ranks,
          1, folding);
  return {make_layout(single_units(stages), grid, microbatches, leaves, folding), leaves};
}

}  // namespace concertina
