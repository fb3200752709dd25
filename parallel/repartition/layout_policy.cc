// The table of layout policies, generated from the list in meson.build.
#include "parallel/repartition/layout_policy.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "layout_policy_table.h"
#include "parallel/repartition/grown_batch.h"

namespace concertina {

CONCERTINA_REGISTRY(CONCERTINA_LAYOUT_POLICIES, LayoutPolicy, layout_policy_, layout_policies)

LayoutStart start_of(const Request& asked, const Assignment& assignment) {
  const Layout& layout = assignment.layout;
  return {assignment.world, static_cast<int>(layout.pipelines.front().stages.size()),
          layout.frozen_units, replicas_of(asked, layout)};
}

LayoutChoice choice_of(const LayoutView& view, Request request, Assignment assignment) {
  const double step = view.forecast.step_seconds(assignment);
  const double move = view.forecast.move_seconds(assignment);
  return {std::move(request), std::move(assignment), step, move};
}

std::string describe(const Request& request, const Assignment& assignment) {
  std::vector<std::string> cuts;  // partitions of replicas that differ
  for (const Pipeline& pipeline : assignment.layout.pipelines) {
    std::string one;
    for (const StagePlacement& stage : pipeline.stages)
      one += fmt::format("{}{}", one.empty() ? "" : "|", stage.last_unit - stage.first_unit);
    if (std::ranges::find(cuts, one) == cuts.end()) cuts.push_back(one);
  }
  std::vector<int> shares;
  for (const Pipeline& pipeline : assignment.layout.pipelines)
    shares.push_back(pipeline.microbatches());
  const bool alike = std::ranges::count(shares, shares[0]) == std::ssize(shares);
  const std::ptrdiff_t spare = assignment.world - std::ssize(assignment.working);
  return fmt::format("{} {}{}{}{}", short_form(assignment.layout),
                     request.file ? request.file->path : request.schedule,
                     assignment.layout.pipelines.front().stages.size() > 1
                         ? fmt::format(" ({} units)", fmt::join(cuts, " + "))
                         : "",
                     alike ? "" : fmt::format(", {} microbatches", fmt::join(shares, "+")),
                     spare > 0 ? fmt::format(", {} spare", spare) : "");
}

}  // namespace concertina
