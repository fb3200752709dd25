#include "experiments/predict/report_parts.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "parallel/plan/plan_index.h"
#include "parallel/simulate/bubble_definitions.h"

namespace concertina {
namespace {

/// Pairs of ranks that send each other activations, or gradients of the same stage.
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
    return "none given: transfers are free; use --links machine.toml";
  if (free && source.run)
    return "not measured in this run: transfers are free; use --links machine.toml";
  if (free)
    return fmt::format("{} has no links for some of these ranks, whose transfers are free",
                       source.name);
  const int hosts =
      costs.hosts.empty() ? 1 : *std::max_element(costs.hosts.begin(), costs.hosts.end()) + 1;
  return fmt::format("from {}, all ranks on {}", source.name,
                     hosts == 1 ? "one host" : fmt::format("{} hosts", hosts));
}

/// A machine may have more ranks than a plan, and a user may have counted ranks from 1.
std::string unused_pairs_text(int ranks, const Costs& costs) {
  const auto unused = std::ranges::count_if(costs.pairs, [&](const auto& pair) {
    return std::max(pair.first.first, pair.first.second) >= ranks;
  });
  if (unused == 0) return {};
  return fmt::format("; {} of {} pairs have ranks other than 0 to {} and are not used", unused,
                     costs.pairs.size(), ranks - 1);
}

}  // namespace

std::string list_text(const std::vector<int>& numbers) {
  const int stride = numbers.size() > 1 ? numbers[1] - numbers[0] : 1;
  bool even = true;
  for (std::size_t i = 1; i < numbers.size(); ++i)
    even = even && numbers[i] - numbers[i - 1] == stride;
  if (even && stride == 1 && numbers.size() > 2)
    return fmt::format("{}-{}", numbers.front(), numbers.back());
  if (numbers.size() <= 4) return fmt::format("{}", fmt::join(numbers, ","));
  if (even) return fmt::format("{},{},...,{}", numbers[0], numbers[1], numbers.back());
  return fmt::format("{},{},... ({})", numbers[0], numbers[1], numbers.size());
}

void RankLines::add(int rank, const std::string& line) {
  const auto [entry, fresh] = index_.try_emplace(line, lines_.size());
  if (fresh) {
    lines_.push_back(&entry->first);
    ranks_.emplace_back();
  }
  ranks_[entry->second].push_back(rank);
}

std::string RankLines::text() const {
  std::string all;
  for (std::size_t i = 0; i < lines_.size(); ++i)
    all += fmt::format("{:<16}{}\n", list_text(ranks_[i]), *lines_[i]);
  return all;
}

nlohmann::ordered_json links_json(const LinkSource& source, const Layout& layout,
                                  const Costs& costs) {
  const auto pairs = exchanges(layout);
  const bool free = std::any_of(pairs.begin(), pairs.end(), [&](const auto& pair) {
    return costs.link(pair.first, pair.second) == LinkCosts{};
  });
  using Json = nlohmann::ordered_json;
  return {{"from", source.name.empty() ? Json() : Json(source.name)},
          {"free", free},
          {"text", (pairs.empty() ? "none needed" : links_text(source, free, costs)) +
                       unused_pairs_text(rank_count(layout), costs)}};
}

nlohmann::ordered_json definitions_json(const Plan& plan, const Timeline& timeline) {
  nlohmann::ordered_json json;
  for (const BubbleDefinition& one : bubble_definitions())
    json[one.name] = {
        {"value", one.value(plan, timeline)}, {"formula", one.formula}, {"source", one.source}};
  return json;
}

}  // namespace concertina
