// Measures a change of the layout between two steps of one run, there and back, and its prediction.
// Invariant: every change calls Trainer::adopt(), as in a training run; times are medians over
// rounds of the slowest rank's time.

#include <algorithm>
#include <array>

#include "core/error.h"
#include "core/index.h"
#include "core/step_history.h"
#include "experiments/bench/bench_step.h"
#include "experiments/bench/timed_trainer.h"
#include "experiments/config/config_overrides.h"
#include "experiments/machine/gather.h"
#include "experiments/predict/link_probe.h"
#include "experiments/run/planning.h"
#include "parallel/predict/move_costs.h"
#include "tests/bench/benches.h"

namespace concertina {
namespace change_bench {

constexpr int kWarmChanges = 3;  // each way

/// Changes in one direction: each prediction made just before the change, and the measured time.
class Direction {
 public:
  Direction(TimedTrainer& bench, const Assignment& from, const Assignment& to,
            const std::vector<int>& hosts, std::size_t budget)
      : bench_(bench), to_(to), kinds_(bench.trainer.state().kinds().size()) {
    plan_ = plan_moves(from, to, kinds_, hosts, budget);
  }
  const MovePlan& plan() const { return plan_; }
  std::size_t kinds() const { return kinds_; }
  double step_seconds() const { return median(step_); }
  double rebuild() const { return rebuild_; }

  /// Makes a change that is not measured. Returns how much longer its move took than `machine`
  /// predicts; later predictions use the time of its rebuilding.
  double warm_up(const MachineModel& machine) {
    const double predicted = predict_move(plan_, kinds_, machine).move();
    const double took = change()[1];
    return predicted > 0 ? took / predicted : 1;
  }

  void run(MachineModel machine) {
    machine.moves.rebuild_s = rebuild_;
    const MoveSeconds predicted = predict_move(plan_, kinds_, machine);
    predicted_.push_back(predicted.total());
    predicted_move_.push_back(predicted.move());
    machine.moves.move_factor = 1;  // as before the first change of a run
    probed_.push_back(predict_move(plan_, kinds_, machine).total());
    const auto [change_s, move_s, first_s, second_s] = change();
    change_.push_back(change_s);
    move_.push_back(move_s);
    first_step_.push_back(first_s);
    step_.push_back(second_s);
  }

  /// `per_byte`: seconds on the link; `step`: seconds of the faster layout.
  Json metrics(double per_byte, double step) const {
    const double change = median(change_), move = median(move_);
    const double busiest = busiest_rank(pair_bytes(plan_, kinds_)).most();
    const double link = busiest * per_byte;
    return {{"change_ms", change * 1e3},
            {"move_ms", move * 1e3},
            {"rebuild_ms", (change - move) * 1e3},
            {"first_step_ms", median(first_step_) * 1e3},
            {"change_over_step", change / step},
            {"bytes", plan_.bytes(kinds_)},
            {"busiest_rank_bytes", busiest},
            {"extra_bytes", extra_bytes_},
            {"move_rounds", plan_.rounds.size()},
            {"link_ms", link * 1e3},
            {"change_over_link", link > 0 ? Json(change / link) : Json()},
            {"predicted_ms", median(predicted_) * 1e3},
            {"predicted_move_ms", median(predicted_move_) * 1e3},
            {"predicted_over_measured", median(predicted_) / change},
            {"probe_over_measured", median(probed_) / change}};
  }

 private:
  /// Returns the seconds of a change, its move, and the two steps after it, of the slowest rank.
  std::array<double, 4> change() {
    const Adoption took = bench_.trainer.adopt(to_);
    extra_bytes_ = took.extra_bytes;
    const double first = bench_.step(), second = bench_.step();
    const auto all = largest_values(bench_.trainer.world(),
                                    std::array{took.seconds, took.move_seconds, first, second});
    rebuild_ = all[0] - all[1];
    return {all[0], all[1], all[2], all[3]};
  }

  TimedTrainer& bench_;
  const Assignment& to_;
  std::size_t kinds_;
  MovePlan plan_;
  double rebuild_ = 0;  // of the last change
  std::size_t extra_bytes_ = 0;
  std::vector<double> change_, move_, first_step_, step_, predicted_, predicted_move_, probed_;
};

/// Returns the sender and the receiver with the most bytes between them, preferring ranks on two
/// hosts; {0, 0} if nothing is sent. `hosts` is indexed by rank.
std::pair<int, int> busiest_pair(const PairBytes& bytes, const std::vector<int>& hosts) {
  std::pair<int, int> busiest{0, 0};
  std::pair<bool, double> most{false, 0};
  for (const auto& [ends, here] : bytes) {
    const bool remote = hosts[at(ends.first)] != hosts[at(ends.second)];
    if (std::pair(remote, here) <= most) continue;
    most = {remote, here};
    busiest = ends;
  }
  return busiest;
}

RunConfig other_layout(const RunConfig& config, const Assignment& default_value,
                       const std::string& to) {
  if (!to.empty()) return with_layout_keys(config, to, "--to");
  const bool one_stage = default_value.layout.pipelines.front().stages.size() == 1;
  return with_layout_keys(config, one_stage ? "parallel.dp=1" : "parallel.pp=1", "--to");
}

struct ChangeOptions : ConfigOptions {
  std::string to;       // keys of the other layout; empty: pp = 1, or dp = 1 if pp is 1 already
  int warmup = 2;       // steps before the first change; then rounds without measurement
  int rounds = 5;       // there and back
  int bytes = 1 << 23;  // of a message that probes the link
};

int run(const ChangeOptions& options, MpiEnvironment& mpi) {
  const RunConfig& config = options.config;
  Communicator& world = mpi.world();
  require_ranks(world, "share a layout", "change");
  TimedTrainer bench(config, world);
  const Assignment from = bench.trainer.assignment();
  const Assignment to =
      assignment_of(other_layout(config, from, options.to), bench.trainer.job(), world.size());
  if (from.layout == to.layout && from.plan.rows == to.plan.rows)
    throw_input("both layouts are the same", "--to", "keys of another layout");
  const std::vector<int> hosts = host_of_ranks(world);
  const auto budget = static_cast<std::size_t>(config.parallel.move_memory.bytes);
  Direction there(bench, from, to, hosts, budget), back(bench, to, from, hosts, budget);
  const auto pair = busiest_pair(pair_bytes(there.plan(), there.kinds()), hosts);

  for (int i = 0; i < options.warmup; ++i) bench.step();
  MachineModel machine = probe_links(world, hosts, options.bytes, pair);
  probe_move(world, bench.trainer.tensors(), bench.trainer.tensor_memory(), hosts, from,
             machine.moves);
  std::vector<double> factors;
  for (int i = 0; i < kWarmChanges; ++i)
    for (Direction* direction : {&there, &back}) factors.push_back(direction->warm_up(machine));
  machine.moves.move_factor = median(factors);
  for (int round = 0; round < options.rounds; ++round)
    for (Direction* direction : {&there, &back}) direction->run(machine);

  const bool remote = hosts[at(pair.first)] != hosts[at(pair.second)];
  const double per_byte = seconds_per_byte(remote ? machine.remote : machine.local);
  const double from_step = back.step_seconds(), to_step = there.step_seconds();
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
  result["there"] = there.metrics(per_byte, step);
  result["back"] = back.metrics(per_byte, step);
  machine.moves.rebuild_s = std::max(there.rebuild(), back.rebuild());
  result["machine"] = to_json(machine);
  return print_result(result);
}

void declare(CLI::App& app, ChangeOptions& options) {
  app.add_option("--to", options.to,
                 "the other layout: keys of [parallel] on top of the config, \"parallel.pp=1\"");
  add_number(app, "--rounds", options.rounds, "measured changes there and back");
  add_number(app, "--warmup", options.warmup, "steps before the first change",
             CLI::NonNegativeNumber);
  add_number(app, "--bytes", options.bytes, "size of a message that probes the link",
             CLI::Range(1, 1 << 30));
  options.defaults = bench_model();
  std::erase(options.defaults, "numerics.leaves=1");  // replicas need more
}

}  // namespace change_bench

Command bench_change() {
  return make_command<change_bench::ChangeOptions>(
      "a change of the layout between two steps, there and back, and its prediction",
      change_bench::declare, change_bench::run);
}

}  // namespace concertina
