// Measures the exchange of gradients and the gathering of weights between replicas of one rank
// each, without training.
// Invariant: the messages are those of a training step with pp = 1 and as many leaves as ranks.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/arena.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/index.h"
#include "core/step_history.h"
#include "experiments/machine/gather.h"
#include "experiments/predict/report_parts.h"
#include "parallel/generate/assign.h"
#include "parallel/predict/move_costs.h"
#include "parallel/runtime/gradient_exchange.h"
#include "parallel/runtime/weight_gather.h"
#include "parallel/simulate/simulate.h"
#include "tests/bench/benches.h"

namespace concertina {
namespace exchange_bench {

struct ExchangeOptions : CommandOptions {
  double bytes = 16e6;  // of all gradients of a replica
  int buckets = 12;     // of equal size
  int rounds = 5;       // measured, after `warmup`
  int warmup = 1;
  double bound = 1.5;  // of the time over a ring's time, else it fails; 0: never
  double off = 15;     // largest error of the prediction, percent
  std::string links;   // a machine file, instead of probing the links
  std::string exchange = "all-to-all";
};

/// Equal units with one tensor each, on as many replicas as there are ranks.
struct ExchangeProblem {
  ExchangeProblem(const std::vector<int>& hosts, const ExchangeOptions& options)
      : job{.model = model(options),
            .microbatches = static_cast<int>(hosts.size()),
            .leaves = static_cast<int>(hosts.size())},
        assignment(assign(job, {.world = static_cast<int>(hosts.size()),
                                .pp = 1,
                                .partition = "uniform",
                                .exchange = {options.exchange, hosts}})) {}

  static ModelSpec model(const ExchangeOptions& options) {
    const auto elements = static_cast<std::int64_t>(options.bytes / sizeof(float) /
                                                    static_cast<double>(options.buckets));
    ModelSpec model;
    for (int unit = 0; unit < options.buckets; ++unit)
      model.units.push_back({fmt::format("{:05}", unit),
                             {{"weight", {std::max<std::int64_t>(1, elements)}, false, {}, ""}},
                             {}});
    return model;
  }
  double bytes() const {
    double sum = 0;
    for (const Bucket& bucket : assignment.buckets)
      sum += static_cast<double>(bucket.elements * sizeof(float));
    return sum;
  }

  Job job;
  Assignment assignment;
};

/// The exchange of one rank and its memory.
class ExchangingRank {
 public:
  ExchangingRank(const ExchangeProblem& problem, Communicator& world)
      : problem_(problem),
        rank_(world.rank()),
        backend_(make_cpu_backend(1)),
        exchange_(problem.job, problem.assignment, rank_),
        groups_(world, problem.assignment),
        arena_(exchange_.sum_bytes() + exchange_.staging_bytes() +
               align_up(static_cast<std::size_t>(problem.bytes())) +
               problem.assignment.buckets.size() * 64) {
    exchange_.attach(arena_);
    exchange_.connect(groups_, *backend_);
    std::vector<View> weights;
    for (const Bucket& bucket : problem.assignment.buckets)
      weights.push_back(arena_.take(bucket.elements, DType::f32, "weights"));
    weights_.emplace(problem.assignment, rank_, weights, groups_);
    for (int b = 0; b < buckets(); ++b) {
      const View gradient = exchange_.begin(b, b, rank_).gradient;
      std::fill_n(gradient.f32(), gradient.count, static_cast<float>(rank_ + 1));
    }
  }

  /// Simulates a backward pass that takes no time.
  void reduce() {
    for (int b = buckets(); b-- > 0;) exchange_.end(b, b, rank_);
    exchange_.finish();
  }
  void gather() {
    for (int b = 0; b < buckets(); ++b) weights_->start(at(b));
    weights_->wait();
  }

 private:
  int buckets() const { return static_cast<int>(problem_.assignment.buckets.size()); }

  const ExchangeProblem& problem_;
  int rank_;
  std::unique_ptr<Backend> backend_;
  GradientExchange exchange_;
  Groups groups_;
  Arena arena_;
  std::optional<WeightGather> weights_;
};

/// Seconds of both halves of a round, on the slowest rank.
struct Halves {
  double reduce = 0, gather = 0;
};

Halves measure_halves(const ExchangeProblem& problem, Communicator& world,
                      const ExchangeOptions& options) {
  ExchangingRank subject(problem, world);
  std::vector<double> reduce, gather;
  for (int round = 0; round < options.warmup + options.rounds; ++round) {
    const auto timed = [&](const auto& half) {
      world.barrier();
      const double start = now();
      half();
      return now() - start;
    };
    const std::array seconds{timed([&] { subject.reduce(); }), timed([&] { subject.gather(); })};
    const auto slowest = largest_values(world, seconds);
    if (round < options.warmup) continue;
    reduce.push_back(slowest[0]);
    gather.push_back(slowest[1]);
  }
  return {median(std::move(reduce)), median(std::move(gather))};
}

double predict_seconds(const ExchangeProblem& problem, const MachineModel& machine) {
  const int ranks = rank_count(problem.assignment.layout);
  Costs costs = unit_costs(problem.assignment.layout);
  for (StageCosts& stage : costs.stages) stage = {.forward = 0, .input = 0, .weight = 0};
  costs.combine = machine.combine_s_per_byte;
  costs.leaves = ranks;
  costs.exchange_scheme = problem.assignment.exchange.scheme;
  add_links(machine, ranks, costs);
  std::vector<int> all;
  for (int rank = 0; rank < ranks; ++rank) all.push_back(rank);
  for (std::size_t b = problem.assignment.buckets.size(); b-- > 0;) {
    BucketCosts& bucket = costs.buckets.emplace_back();
    bucket.ranks = bucket.stages = all;
    bucket.early.assign(at(ranks), 0.0);
    for (const int rank : all) bucket.pieces.push_back({{0, {rank, rank + 1}}});
    bucket.updated.assign(at(ranks), 0.0);
    bucket.bytes = static_cast<double>(problem.assignment.buckets[b].elements * sizeof(float));
  }
  return simulate(problem.assignment.plan, problem.assignment.layout, costs).makespan;
}

/// Returns the seconds of a ring all-reduce of `bytes` over `link` between `ranks` ranks if only
/// its bandwidth matters: 2 (ranks - 1) / ranks bytes in and out of each rank.
double ring_seconds(double bytes, int ranks, const LinkCosts& link) {
  return 2.0 * (ranks - 1) / ranks * bytes * seconds_per_byte(link);
}

int run(const ExchangeOptions& options, MpiEnvironment& mpi) {
  Communicator& world = mpi.world();
  require_ranks(world, "exchange gradients", "exchange");
  const std::vector<int> hosts = host_of_ranks(world);
  const ExchangeProblem problem(hosts, options);
  const MachineModel machine =
      options.links.empty() ? probe_links(world, hosts, static_cast<std::size_t>(options.bytes))
                            : read_machine_file(options.links);
  const int host_count = *std::max_element(hosts.begin(), hosts.end()) + 1;
  const Halves halves = measure_halves(problem, world, options);
  const double measured = halves.reduce + halves.gather,
               predicted = predict_seconds(problem, machine),
               bound = ring_seconds(problem.bytes(), world.size(),
                                    host_count > 1 ? machine.remote : machine.local);
  const bool ok = options.bound == 0 || (measured <= options.bound * bound &&
                                         std::abs(predicted / measured - 1) * 100 <= options.off);
  return print_result({{"ranks", world.size()},
                       {"hosts", host_count},
                       {"exchange", options.exchange},
                       {"buckets", options.buckets},
                       {"bytes", problem.bytes()},
                       {"reduce_ms", halves.reduce * 1e3},
                       {"gather_ms", halves.gather * 1e3},
                       {"measured_ms", measured * 1e3},
                       {"ring_bound_ms", bound * 1e3},
                       {"predicted_ms", predicted * 1e3},
                       {"measured_over_bound", measured / bound},
                       {"predicted_over_bound", predicted / bound},
                       {"predicted_over_measured", predicted / measured},
                       {"machine", to_json(machine)},
                       {"ok", ok}});
}

void declare(CLI::App& app, ExchangeOptions& options) {
  add_number(app, "--bytes", options.bytes, "gradients of a replica, in bytes",
             CLI::Range(64.0, 1e12));
  add_number(app, "--buckets", options.buckets, "buckets that they are exchanged in",
             CLI::Range(1, 10000));
  add_number(app, "--rounds", options.rounds, "measured rounds");
  add_number(app, "--warmup", options.warmup, "rounds before them", CLI::NonNegativeNumber);
  add_number(app, "--bound", options.bound, "multiple of a ring's bound that fails (0: none)",
             CLI::NonNegativeNumber);
  add_number(app, "--off", options.off, "percent by which the prediction may be off");
  app.add_option("--links", options.links, "a machine file, in place of probing the links");
  app.add_option("--exchange", options.exchange, "the scheme, as parallel.exchange names it")
      ->capture_default_str();
}

}  // namespace exchange_bench

Command bench_exchange() {
  return make_command<exchange_bench::ExchangeOptions>(
      "gradients and weights between replicas, measured, predicted and as a ring's bound",
      exchange_bench::declare, exchange_bench::run);
}

}  // namespace concertina
