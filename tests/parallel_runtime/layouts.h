// Layouts of every kind for the runtime, over a given number of units and leaves.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "parallel/generate/schedule_registry.h"

namespace concertina {

struct NamedLayout {
  std::string name;
  int world = 1;
  Layout layout;
};

/// Stage s is on ranks[s], with units cut evenly; all microbatches [first, last).
inline Pipeline pipeline_over(const std::vector<int>& ranks, int units, int first, int last) {
  Pipeline pipeline;
  const int stages = static_cast<int>(ranks.size());
  for (int s = 0; s < stages; ++s)
    pipeline.stages.push_back({ranks[s], units * s / stages, units * (s + 1) / stages});
  pipeline.first_microbatch = first;
  pipeline.last_microbatch = last;
  return pipeline;
}

/// Returns the usual layout of `schedule` on p ranks, with units cut evenly.
inline Layout folded(const Schedule& schedule, int p, int units, int microbatches, int leaves) {
  const Folding folding(schedule.chunks.default_value, schedule.placement, schedule.rank_step);
  std::vector<UnitRange> ranges;
  for (int s = 0, stages = p * folding.chunks; s < stages; ++s)
    ranges.push_back({units * s / stages, units * (s + 1) / stages});
  return make_layout(ranges, {p, 1}, microbatches, leaves, folding);
}

/// `units` >= 6, `leaves` >= 4; pipelines are cut between leaves.
inline std::vector<NamedLayout> all_layouts(int units, int microbatches, int leaves) {
  const int run = microbatches / leaves, m = microbatches;
  const auto cut = [&](int leaf) { return leaf * run; };
  const auto over = [&](const std::vector<int>& ranks, int first, int last) {
    return pipeline_over(ranks, units, first, last);
  };
  std::vector<NamedLayout> all{
      {"one rank", 1, {{over({0}, 0, m)}}},
      {"one rank, three stages", 1, {{over({0, 0, 0}, 0, m)}}},
      {"pp2", 2, {{over({0, 1}, 0, m)}}},
      {"pp4", 4, {{over({0, 1, 2, 3}, 0, m)}}},
      {"dp2", 2, {{over({0}, 0, cut(leaves / 2)), over({1}, cut(leaves / 2), m)}}},
      {"dp3", 3, {{over({0}, 0, cut(1)), over({1}, cut(1), cut(3)), over({2}, cut(3), m)}}},
      {"2x2", 4, {{over({0, 1}, 0, cut(2)), over({2, 3}, cut(2), m)}}},
      {"3=2+1", 3, {{over({0, 1}, 0, cut(3)), over({2}, cut(3), m)}}},
      {"4=3+1", 4, {{over({3, 1, 0}, 0, cut(leaves - 1)), over({2}, cut(leaves - 1), m)}}},
      {"interleaved", 2, {{over({0, 1, 0, 1}, 0, m)}}},
      {"V", 3, {{over({0, 1, 2, 2, 1, 0}, 0, m)}}},
      {"opposite", 3, {{over({0, 1, 2}, 0, cut(2)), over({2, 1, 0}, cut(2), m)}}},
      {"local neighbors", 2, {{over({0, 0, 1, 1, 0}, 0, m)}}},
      {"interleaved and replicated",
       4,
       {{over({0, 1, 0, 1}, 0, cut(2)), over({2, 3, 2, 3}, cut(2), m)}}},
  };
  return all;
}

/// Returns layouts that `schedule` can run: all of the above, or its own on one to three ranks.
inline std::vector<NamedLayout> layouts_of(const Schedule& schedule, int units, int microbatches,
                                           int leaves) {
  if (schedule.any_layout) return all_layouts(units, microbatches, leaves);
  std::vector<NamedLayout> own;
  for (int p = 1; p <= 3 && p * schedule.chunks.default_value <= units; ++p)
    if (p % schedule.rank_step == 0)
      own.push_back(
          {"its own, pp" + std::to_string(p), p, folded(schedule, p, units, microbatches, leaves)});
  return own;
}

}  // namespace concertina
