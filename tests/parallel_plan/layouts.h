// Layouts shared by the tests of plans.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "parallel/generate/schedule_registry.h"

namespace concertina {

/// One pipeline of p stages on p ranks, with one unit each.
inline Layout straight(int p, int m) {
  Pipeline pipeline;
  for (int s = 0; s < p; ++s) pipeline.stages.push_back({s, s, s + 1});
  pipeline.last_microbatch = m;
  return {{pipeline}};
}

/// One pipeline over `ranks`, with one unit per stage.
inline Layout over(const std::vector<int>& ranks, int m) {
  Layout layout = straight(static_cast<int>(ranks.size()), m);
  for (std::size_t s = 0; s < ranks.size(); ++s) layout.pipelines[0].stages[s].rank = ranks[s];
  return layout;
}

/// dp replicas of p ranks, folded for `schedule`, with a unit per stage and a microbatch per leaf.
inline Layout folded(const Entry<Schedule>& schedule, int p, int m, int chunks = 0, int dp = 1) {
  const Folding folding = folding_of(schedule, chunks);
  return make_layout(single_units(p * folding.chunks), {p, dp}, m, m, folding);
}

/// 3 = 2 + 1: pipelines with different depths.
inline Layout two_and_one() {
  return {{Pipeline{{{0, 0, 2}, {1, 2, 4}}, 0, 4}, Pipeline{{{2, 0, 4}}, 4, 6}}};
}

/// Two pipelines in opposite directions on the same ranks.
inline Layout opposite(int p, int m) {
  Layout layout = straight(p, m);
  Pipeline back = layout.pipelines[0];
  for (int s = 0; s < p; ++s) back.stages[s].rank = p - 1 - s;
  back.first_microbatch = m;
  back.last_microbatch = 2 * m;
  layout.pipelines.push_back(back);
  return layout;
}

/// Layouts other than one pipeline with one stage per rank.
inline std::vector<std::pair<std::string, Layout>> odd_layouts() {
  return {{"2+1", two_and_one()},
          {"opposite", opposite(4, 5)},
          {"replicas", make_layout({{0, 1}, {1, 3}, {3, 4}}, {3, 4}, 16, 8)},
          {"interleaved", make_layout({{0, 1}, {1, 2}, {2, 3}, {3, 4}}, {2, 2}, 8, 8, 2)},
          {"V", over({0, 1, 2, 2, 1, 0}, 7)},
          {"local neighbors", over({0, 0, 1, 1, 0}, 5)},
          {"one rank", over({0, 0, 0}, 3)}};
}

}  // namespace concertina
