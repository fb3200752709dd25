#include "experiments/predict/schedule_search_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "experiments/predict/report_parts.h"

namespace concertina {
namespace {

using Json = nlohmann::ordered_json;

Json tries_json(const std::vector<ScheduleTry>& tries) {
  Json json = Json::array();
  for (const ScheduleTry& one : tries)
    json.push_back({{"schedule", one.schedule},
                    {"chunks", one.chunks},
                    {"makespan", one.makespan},
                    {"span", one.span},
                    {"share", one.share},
                    {"weights", one.weights},
                    {"within", one.within}});
  return json;
}

/// The end of a table line, with a note if ranks keep weights twice.
std::string weights_note(const Json& one, bool opposite) {
  if (one["weights"].get<double>() <= 1) return "\n";
  return opposite ? "  keeps weights twice\n"
                  : "  keeps weights twice: omitted without --opposite\n";
}

}  // namespace

SearchedSchedule search_schedule(const ScheduleSearch& options, const ScheduleCosts& costs) {
  FoundSchedule found = search_schedule(
      options, SearchCosts{[&](const Layout& layout, const Plan& plan, double share, int leaves) {
                             return costs.of(layout, plan, share, leaves);
                           },
                           costs.units(), costs.rows()});
  const Timeline& timeline = found.timeline;
  Json report = {{"objective", options.objective == Objective::step ? "step" : "span"},
                 {"makespan", timeline.makespan},
                 {"span", found.span},
                 {"bubble",
                  {{"mean", timeline.mean_bubble},
                   {"ranks", timeline.bubble},
                   {"definitions", definitions_json(found.plan, timeline)}}},
                 {"peak_activations",
                  {{"microbatch_stages", timeline.peak_activations}, {"share", found.share}}},
                 {"chunks", found.chunks},
                 {"weights", found.weights},
                 {"from", found.from},
                 {"links", costs.links(found.layout, found.costs)},
                 {"max_chunks", found.max_chunks},
                 {"opposite", options.opposite},
                 {"stopped", found.stopped},
                 {"named", tries_json(found.tries)}};
  return {std::move(found.plan), std::move(found.layout), std::move(report)};
}

std::string search_table(const Json& report) {
  const bool opposite = report["opposite"].get<bool>();
  const char* length = report["objective"] == "step" ? "makespan" : "span";
  std::string text =
      fmt::format("links: {}\n{:<20} {:>6} {:>10} {:>10} {:>12} {:>7}\n", report["links"]["text"],
                  "schedule", "chunks", "makespan", "span", "activations", "tried");
  const auto line = [](const std::string& name, const Json& one, const Json& share,
                       const std::string& tried) {
    return fmt::format("{:<20} {:>6} {:>10g} {:>10g} {:>12g} {:>7}", name, one["chunks"],
                       one["makespan"], one["span"], share, tried);
  };
  // Selects the best number of chunks per schedule: the fastest, if possible within the bound.
  const auto rank = [&](const Json& one) {
    return std::pair(!one["within"].get<bool>(), one[length].get<double>());
  };
  const Json& named = report["named"];
  for (auto first = named.begin(); first != named.end();) {
    const auto last = std::find_if(first, named.end(), [&](const Json& one) {
      return one["schedule"] != (*first)["schedule"];
    });
    const Json &best = *std::ranges::min_element(first, last, {}, rank),
               &least = (*first)["chunks"], &most = (*std::prev(last))["chunks"];
    text += line(best["schedule"], best, best["share"],
                 least == most ? least.dump() : fmt::format("{}..{}", least, most)) +
            (best["within"].get<bool>() ? "" : "  too many") + weights_note(best, opposite);
    first = last;
  }
  text += line(fmt::format("found ({})", report["from"]), report,
               report["peak_activations"]["share"], "") +
          weights_note(report, opposite);
  if (report["stopped"].get<bool>())
    text += "stopped by a signal: this is the best schedule so far\n";
  for (const auto& [name, one] : report["bubble"]["definitions"].items())
    text += fmt::format("bubble {:<12} {:>8.4f}  {}\n", name, one["value"], one["formula"]);
  return text;
}

}  // namespace concertina
