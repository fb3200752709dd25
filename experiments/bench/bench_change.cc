#include "experiments/bench/bench_change.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.h"
#include "core/step_history.h"
#include "experiments/bench/timed_trainer.h"
#include "experiments/config/config_overrides.h"
#include "experiments/costs/link_probe.h"
#include "experiments/costs/memory_probe.h"
#include "experiments/costs/move_costs.h"
#include "experiments/run/gather.h"
#include "experiments/run/host_ranks.h"
#include "experiments/run/planning.h"

namespace concertina {
namespace {

using Json = nlohmann::ordered_json;

/// Seconds of changes in one direction and of the steps after them.
struct ChangeTimes {
  std::vector<double> change, move, first_step, step;
  std::size_t extra_bytes = 0;

  void record(TimedTrainer& bench, const Assignment& to) {
    Communicator& world = bench.trainer.world();
    const Adoption took = bench.trainer.adopt(to);
    extra_bytes = took.extra_bytes;
    const double first = bench.step(), second = bench.step();
    const auto all =
        largest_values(world, std::array{took.seconds, took.move_seconds, first, second});
    change.push_back(all[0]);
    move.push_back(all[1]);
    first_step.push_back(all[2]);
    step.push_back(all[3]);
  }
};

/// Seconds of a change in which nothing moves: the slowest rank's median of some.
double measure_rebuild(TimedTrainer& bench, const Assignment& same) {
  constexpr int kTimes = 3;
  std::vector<double> seconds;
  for (int i = 0; i < kTimes; ++i) {
    const Adoption took = bench.trainer.adopt(same);
    seconds.push_back(largest_values(bench.trainer.world(), std::array{took.seconds})[0]);
    bench.step();
  }
  return median(std::move(seconds));
}

/// Links by class, and the one between the ranks of `pair`, which is also that of its class.
MachineModel measure_machine(Communicator& world, const std::vector<int>& hosts,
                             std::pair<int, int> pair, std::size_t bytes) {
  MachineModel machine;
  machine.ranks_per_host = ranks_per_host(hosts);
  const LinkClasses classes = probe_classes(world, hosts, bytes);
  machine.local = classes.local;
  machine.remote = classes.remote;
  const auto [a, b] = pair;
  if (a != b) {
    const bool remote = hosts[static_cast<std::size_t>(a)] != hosts[static_cast<std::size_t>(b)];
    (remote ? machine.remote : machine.local) = probe_link(world, a, b, bytes, remote);
  }
  probe_memory(world, machine);
  return machine_from_json(gather_json(world, to_json(machine))[0], "the probe of rank 0");
}

Json direction_json(const ChangeTimes& times, const MovePlan& plan, std::size_t kinds,
                    const MachineModel& machine, double per_byte, double step) {
  const double change = median(times.change), move = median(times.move);
  const double busiest = busiest_rank(pair_bytes(plan, kinds)).most(), link = busiest * per_byte;
  const MoveSeconds predicted = predict_move(plan, kinds, machine);
  return {{"change_ms", change * 1e3},
          {"move_ms", move * 1e3},
          {"rebuild_ms", (change - move) * 1e3},
          {"first_step_ms", median(times.first_step) * 1e3},
          {"change_over_step", change / step},
          {"bytes", plan.bytes(kinds)},
          {"busiest_rank_bytes", busiest},
          {"extra_bytes", times.extra_bytes},
          {"move_rounds", plan.rounds.size()},
          {"link_ms", link * 1e3},
          {"change_over_link", link > 0 ? Json(change / link) : Json()},
          {"predicted_ms", predicted.total() * 1e3},
          {"predicted_move_ms", predicted.move() * 1e3},
          {"predicted_over_measured", predicted.total() / change}};
}

RunConfig other_layout(const RunConfig& config, const Assignment& usual, const std::string& to) {
  if (!to.empty()) return with_layout_keys(config, to, "--to");
  const bool one_stage = usual.layout.pipelines.front().stages.size() == 1;
  return with_layout_keys(config, one_stage ? "parallel.dp=1" : "parallel.pp=1", "--to");
}

}  // namespace

Json bench_change(const RunConfig& config, Communicator& world, const ChangeBenchOptions& options) {
  if (world.size() == 1)
    throw_input("one rank has nobody to share a layout with", "this launch",
                "mpirun -n 2 concertina bench change");
  TimedTrainer bench(config, world);
  const Assignment from = bench.trainer.assignment();
  const Assignment to =
      assignment_of(other_layout(config, from, options.to), bench.trainer.job(), world.size());
  if (from.layout == to.layout && from.plan.rows == to.plan.rows)
    throw_input("both layouts are the same", "--to", "keys of another layout");
  const std::vector<int> hosts = host_of_ranks(world);
  const std::size_t kinds = bench.trainer.state().kinds().size();
  const auto budget = static_cast<std::size_t>(config.parallel.move_memory.bytes);
  const std::array plans{plan_moves(from, to, kinds, hosts, budget),
                         plan_moves(to, from, kinds, hosts, budget)};
  const auto pair = busiest_pair(pair_bytes(plans[0], kinds), hosts);

  for (int i = 0; i < options.warmup; ++i) bench.step();
  std::array<double, 2> rebuild{};  // of either layout
  rebuild[1] = measure_rebuild(bench, from);
  ChangeTimes().record(bench, to);
  rebuild[0] = measure_rebuild(bench, to);
  ChangeTimes().record(bench, from);
  MachineModel machine =
      measure_machine(world, hosts, pair, static_cast<std::size_t>(options.bytes));
  ChangeTimes there, back;
  for (int round = 0; round < options.rounds; ++round) {
    there.record(bench, to);
    back.record(bench, from);
  }

  const bool remote = pair.first != pair.second && hosts[static_cast<std::size_t>(pair.first)] !=
                                                       hosts[static_cast<std::size_t>(pair.second)];
  const double per_byte = seconds_per_byte(remote ? machine.remote : machine.local);
  const double from_step = median(back.step), to_step = median(there.step);
  const double step = std::min(from_step, to_step);
  Json result = {{"ranks", world.size()},
                 {"hosts", *std::ranges::max_element(hosts) + 1},
                 {"backend", bench.backend->describe()},
                 {"rounds", options.rounds},
                 {"from", short_form(from.layout)},
                 {"to", short_form(to.layout)},
                 {"from_step_ms", from_step * 1e3},
                 {"to_step_ms", to_step * 1e3},
                 {"link",
                  {{"from", pair.first},
                   {"to", pair.second},
                   {"bytes_per_s", per_byte > 0 ? 1 / per_byte : 0}}}};
  machine.rebuild_s = rebuild[0];
  result["there"] = direction_json(there, plans[0], kinds, machine, per_byte, step);
  machine.rebuild_s = rebuild[1];
  result["back"] = direction_json(back, plans[1], kinds, machine, per_byte, step);
  machine.rebuild_s = *std::ranges::max_element(rebuild);
  result["machine"] = to_json(machine);
  return result;
}

std::string change_table(const Json& result) {
  const Json &there = result["there"], &back = result["back"], &link = result["link"];
  std::string text = fmt::format(
      "{} <-> {} on {} ranks of {} host{}, {} rounds\nstep {:.2f} ms at {}, {:.2f} ms at {}\n"
      "link {} -> {}: {:.4g} MB/s\n{:<28}{:>14}{:>14}\n",
      result["from"].get<std::string>(), result["to"].get<std::string>(),
      result["ranks"].get<int>(), result["hosts"].get<int>(),
      result["hosts"].get<int>() == 1 ? "" : "s", result["rounds"].get<int>(),
      result["from_step_ms"].get<double>(), result["from"].get<std::string>(),
      result["to_step_ms"].get<double>(), result["to"].get<std::string>(), link["from"].get<int>(),
      link["to"].get<int>(), link["bytes_per_s"].get<double>() * 1e-6, "", "there", "back");
  for (const auto& [key, value] : there.items()) {
    const auto cell = [&](const Json& one) {
      return one.is_number_float() ? fmt::format("{:.4g}", one.get<double>()) : one.dump();
    };
    text += fmt::format("{:<28}{:>14}{:>14}\n", key, cell(value), cell(back[key]));
  }
  return text;
}

}  // namespace concertina
