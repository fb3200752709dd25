// Layouts over a given number of units and leaves, of every kind that the runtime has to run.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "parallel/layout.h"

namespace concertina {

struct NamedLayout {
  std::string name;
  int world = 1;
  Layout layout;
};

/// Stage s on ranks[s], units cut evenly; all microbatches [first, last).
inline Pipeline pipeline_over(const std::vector<int>& ranks, int units, int first, int last) {
  Pipeline pipeline;
  const int stages = static_cast<int>(ranks.size());
  for (int s = 0; s < stages; ++s)
    pipeline.stages.push_back(
        {ranks[static_cast<std::size_t>(s)], units * s / stages, units * (s + 1) / stages});
  pipeline.first_microbatch = first;
  pipeline.last_microbatch = last;
  return pipeline;
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
      {"local neighbours", 2, {{over({0, 0, 1, 1, 0}, 0, m)}}},
      {"interleaved and replicated",
       4,
       {{over({0, 1, 0, 1}, 0, cut(2)), over({2, 3, 2, 3}, cut(2), m)}}},
  };
  return all;
}

}  // namespace concertina
