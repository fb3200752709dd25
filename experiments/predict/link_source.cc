#include "experiments/predict/link_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "parallel/plan/plan_index.h"

namespace concertina {
namespace {

/// Ranks that send each other activations, or gradients of the same stage.
std::set<std::pair<int, int>> exchanges(const Layout& layout) {
  std::set<std::pair<int, int>> pairs;
  const auto add = [&](int a, int b) {
    if (a != b) pairs.insert({{a, b}, {b, a}});
  };
  const std::vector<Pipeline>& pipelines = layout.pipelines;
  for (std::size_t p = 0; p < pipelines.size(); ++p) {
    const std::vector<StagePlacement>& stages = pipelines[p].stages;
    for (std::size_t s = 1; s < stages.size(); ++s) add(stages[s - 1].rank, stages[s].rank);
    if (p == 0) continue;
    const std::vector<StagePlacement>& others = pipelines[p - 1].stages;
    for (std::size_t s = 0; s < std::min(stages.size(), others.size()); ++s)
      add(others[s].rank, stages[s].rank);
  }
  return pairs;
}

std::string links_text(const LinkSource& source, bool free, const Costs& costs) {
  if (free && source.name.empty())
    return "none given: transfers are free; give --links machine.toml";
  if (free && source.run)
    return "not measured in this run: transfers are free; give --links machine.toml";
  if (free) return fmt::format("{} has none for some of these ranks: free there", source.name);
  const int hosts =
      costs.hosts.empty() ? 1 : *std::max_element(costs.hosts.begin(), costs.hosts.end()) + 1;
  return fmt::format("from {}, all ranks on {}", source.name,
                     hosts == 1 ? "one host" : fmt::format("{} hosts", hosts));
}

/// A machine may have more ranks than a plan; one who wrote a pair by hand may have counted from 1.
std::string unused_pairs_text(int ranks, const Costs& costs) {
  const auto unused = std::ranges::count_if(costs.pairs, [&](const auto& pair) {
    return std::max(pair.first.first, pair.first.second) >= ranks;
  });
  if (unused == 0) return {};
  return fmt::format("; {} of {} pairs have ranks other than 0 to {} and are not used", unused,
                     costs.pairs.size(), ranks - 1);
}

}  // namespace

nlohmann::ordered_json links_json(const LinkSource& source, const Layout& layout,
                                  const Costs& costs) {
  const auto pairs = exchanges(layout);
  const bool free = std::any_of(pairs.begin(), pairs.end(), [&](const auto& pair) {
    return costs.link(pair.first, pair.second) == LinkCosts{};
  });
  nlohmann::ordered_json json;
  json["from"] = nullptr;
  if (!source.name.empty()) json["from"] = source.name;
  json["free"] = free;
  json["text"] = pairs.empty() ? "none needed" : links_text(source, free, costs);
  json["text"] = json["text"].get<std::string>() + unused_pairs_text(rank_count(layout), costs);
  return json;
}

}  // namespace concertina
