#include "experiments/predict/plan_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "core/text/number_text.h"
#include "experiments/config/config_overrides.h"
#include "experiments/predict/measured_costs.h"
#include "experiments/predict/report_parts.h"
#include "experiments/run/planning.h"
#include "experiments/run/trainer.h"
#include "parallel/predict/move_costs.h"

namespace concertina {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kPairsShown = 8;

struct ChangeEnd {
  RunConfig config;
  Assignment assignment;
};

ChangeEnd end_of(const RunConfig& config, const Job& job, int world, const std::string& keys,
                 const std::string& option) {
  const RunConfig own = keys.empty() ? config : with_layout_keys(config, keys, option);
  return {own, assignment_of(own, job, world, "--world {}")};
}

Json layout_json(const ChangeEnd& end) {
  return {{"layout", short_form(end.assignment.layout)},
          {"schedule", end.config.parallel.schedule},
          {"frozen_units", end.assignment.frozen_units()},
          {"spare", end.assignment.world - static_cast<int>(end.assignment.working.size())}};
}

Json pairs_json(const PairBytes& bytes) {
  std::vector<std::pair<std::pair<int, int>, double>> pairs(bytes.begin(), bytes.end());
  std::ranges::stable_sort(pairs, std::greater(), [](const auto& pair) { return pair.second; });
  if (pairs.size() > kPairsShown) pairs.resize(kPairsShown);
  Json json = Json::array();
  for (const auto& [ranks, count] : pairs)
    json.push_back({{"from", ranks.first}, {"to", ranks.second}, {"bytes", count}});
  return json;
}

}  // namespace

Json move_report(const RunConfig& config, const PlanOptions& options, const std::string& from,
                 const std::string& to) {
  MachineModel machine;
  if (!options.costs.empty()) machine = read_costs(options.costs).machine;
  if (!options.links.empty()) machine = with_links(machine, read_costs(options.links).machine);
  const Job job = job_of(config);
  const ChangeEnd before = end_of(config, job, options.world, from, "--from"),
                  after = end_of(config, job, options.world, to, "--to");
  const std::size_t kinds = state_kinds(job, *optimizer_of(config)).size();
  const MovePlan plan =
      plan_moves(before.assignment, after.assignment, kinds, hosts_of(machine, options.world),
                 static_cast<std::size_t>(config.parallel.move_memory.bytes));
  const auto largest_state = [&](const ChangeEnd& end) {
    std::size_t most = 0;
    for (const int rank : end.assignment.working)
      most = std::max(most, state_bytes(end.assignment, rank, kinds).total());
    return most;
  };
  const PairBytes bytes = pair_bytes(plan, kinds);
  const RankBytes busiest = busiest_rank(bytes);
  Json report{{"from", layout_json(before)},
              {"to", layout_json(after)},
              {"world", options.world},
              {"moved_bytes", plan.bytes(kinds)},
              {"state_bytes", {largest_state(before), largest_state(after)}},
              {"extra_bytes", std::ranges::max(plan.extra_bytes)},
              {"rounds", plan.rounds.size()},
              {"pairs", pairs_json(bytes)},
              {"busiest_rank",
               {{"rank", busiest.rank}, {"out_bytes", busiest.out}, {"in_bytes", busiest.in}}}};
  if (!options.costs.empty() || !options.links.empty()) {
    const MoveSeconds seconds = predict_move(plan, kinds, machine);
    report["seconds"] = {{"links", seconds.links},
                         {"copies", seconds.copies},
                         {"blocks", seconds.blocks},
                         {"rebuild", seconds.rebuild},
                         {"total", seconds.total()}};
  }
  return report;
}

std::string move_text(const Json& report) {
  const auto mib = [](const Json& bytes) { return bytes.get<double>() / (1 << 20); };
  const auto end = [&](const char* key) {
    const Json& one = report[key];
    return fmt::format("{} {}{}", one["layout"], one["schedule"],
                       one["spare"] > 0 ? fmt::format(", {} spare", one["spare"]) : "");
  };
  std::string text = fmt::format(
      "{} -> {} on {}\n{:.2f} MiB sent between ranks, in {}\nstate of the largest rank: {:.2f} "
      "MiB before, {:.2f} MiB after; {:.2f} MiB more during the move\n",
      end("from"), end("to"), counted(report["world"], "rank"), mib(report["moved_bytes"]),
      counted(report["rounds"], "round"), mib(report["state_bytes"][0]),
      mib(report["state_bytes"][1]), mib(report["extra_bytes"]));
  for (const Json& pair : report["pairs"])
    text += fmt::format("  rank {} -> rank {}: {:.2f} MiB\n", pair["from"], pair["to"],
                        mib(pair["bytes"]));
  const Json& busiest = report["busiest_rank"];
  text += fmt::format("busiest: rank {}, {:.2f} MiB out, {:.2f} MiB in\n", busiest["rank"],
                      mib(busiest["out_bytes"]), mib(busiest["in_bytes"]));
  if (!report.contains("seconds"))
    return text + "links are unknown: use --links machine.toml to predict the time\n";
  const auto ms = [&](const char* key) { return report["seconds"][key].get<double>() * 1e3; };
  return text + fmt::format(
                    "{:.1f} ms predicted: links {:.1f}, copies {:.1f}, new memory {:.1f}, "
                    "rebuilding {:.1f}\n",
                    ms("total"), ms("links"), ms("copies"), ms("blocks"), ms("rebuild"));
}

}  // namespace concertina
