#include "experiments/supervise/layout_for.h"

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "experiments/predict/search_report.h"
#include "experiments/run/planning.h"

namespace concertina {
namespace {

/// Layouts are compared on one machine, so any machine's rates will do.
constexpr const char* kMachine = "laptop";
/// Maximum number of actions to simulate; this takes a fraction of a second.
constexpr double kSearchActions = 2e6;

bool fits(const RunConfig& config, int ranks) {
  try {
    assignment_of(config, job_of(config), ranks);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// The fastest layout for exactly `ranks` ranks, as "parallel.pp=3 parallel.dp=1 ..."; empty if no
/// layout keeps the leaves.
std::string planned_keys(const RunConfig& config, int ranks) {
  const double memory =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  const LayoutSearchOptions options{
      .world = ranks,
      .machine = kMachine,
      .device_memory = fmt::format("{:.0f}MiB", memory / (1 << 20) / ranks),
      .budget = kSearchActions,
      .microbatch = {config.batch.global / config.batch.microbatches}};
  try {
    const nlohmann::ordered_json report = search_report(config, options);
    for (const nlohmann::ordered_json& layout : report["layouts"]) {
      const auto keys = layout["keys"].get<std::string>();
      if (layout["runs_here"].get<bool>() && keys.find("numerics.leaves") == std::string::npos)
        return keys;
    }
  } catch (const Error&) {  // none fits
  }
  return {};
}

}  // namespace

std::optional<FittingLayout> layout_for(const RunConfig& config, int most) {
  for (int ranks = most; ranks > 0; --ranks) {
    if (fits(config, ranks)) return FittingLayout{ranks};
    const std::string keys = planned_keys(config, ranks);
    if (keys.empty()) continue;
    FittingLayout layout{ranks};
    if (!config.parallel.layout.pipelines.empty())
      layout.arguments = {"--set", "parallel.layout=[]"};
    for (std::size_t at = 0; at < keys.size();) {
      const std::size_t space = std::min(keys.find(' ', at), keys.size());
      layout.arguments.insert(layout.arguments.end(), {"--set", keys.substr(at, space - at)});
      at = space + 1;
    }
    return layout;
  }
  return std::nullopt;
}

}  // namespace concertina
