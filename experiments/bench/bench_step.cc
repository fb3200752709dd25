#include "experiments/bench/bench_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <type_traits>

#include "core/arena.h"
#include "core/cpu/whole_product.h"
#include "core/profile_backend.h"
#include "core/step_history.h"
#include "experiments/bench/timed_trainer.h"
#include "experiments/machine/gather.h"
#include "experiments/predict/measured_costs.h"
#include "experiments/predict/report_parts.h"
#include "experiments/run/devices.h"
#include "experiments/run/planning.h"
#include "io/metrics.h"

namespace concertina {
namespace {

// Measures a training step's matrix products alone, a lower bound on the step's duration.
// Invariant: shapes and counts come from a profile; buffers are separate, and nothing is fused with
// a product. On a CPU, each product is measured both in our tiles and as one oneDNN call, because
// tiles that are too small would otherwise go unnoticed.
class ProductsAlone {
 public:
  /// `profile` covers `steps` steps. `backend` is used only for these products. `threads` is used
  /// for oneDNN's products of whole matrices; 0 skips them.
  ProductsAlone(const Profile& profile, std::unique_ptr<Backend> backend, double steps,
                int threads);

  /// Multiplications and additions that a step's products actually execute.
  double flops() const;
  /// Total durations of a step's products.
  struct Seconds {
    double best = 0;   // each with the faster of a single oneDNN call (fp32) and our tiles
    double tiles = 0;  // with our tiles
  };
  /// Uses the minimum of a few runs of each product. Attention products are assumed to run at the
  /// best rate of all measured products, which attention's shapes cannot exceed.
  Seconds measure();

 private:
  struct Case {
    LinearShape shape;
    std::shared_ptr<Linear> linear;
    std::unique_ptr<cpu::WholeProducts> whole;  // may be null
    std::array<double, 3> calls{};              // per step: forward, input and weight gradient
    View in, dx, out, dy, weight, dw;
    void* packed = nullptr;
    std::size_t x() const { return static_cast<std::size_t>(shape.rows * shape.in); }
    std::size_t y() const { return static_cast<std::size_t>(shape.rows * shape.out); }
    std::size_t w() const { return static_cast<std::size_t>(shape.in * shape.out); }
    double flops() const { return 2.0 * static_cast<double>(x()) * static_cast<double>(shape.out); }
  };

  void attach(Case& one);

  std::unique_ptr<Backend> backend_;
  std::vector<Case> cases_;
  double attention_flops_ = 0;
  Arena arena_;
};

double calls(const KernelTime& kernel, double steps) {
  return static_cast<double>(kernel.calls) / steps;
}

ProductsAlone::ProductsAlone(const Profile& profile, std::unique_ptr<Backend> backend, double steps,
                             int threads)
    : backend_(std::move(backend)) {
  std::size_t bytes = 0;
  for (const auto& [shape, times] : profile.products) {
    Case& one = cases_.emplace_back();
    one.linear = backend_->linear(shape);
    if (threads > 0) one.whole = cpu::make_whole_products(shape, threads);
    one.shape = shape;
    one.calls = {calls(times.forward, steps), calls(times.input, steps),
                 calls(times.weight, steps)};
    bytes += 2 * ((one.x() + one.y()) * size_of(shape.compute) + one.w() * sizeof(float)) +
             one.linear->packed_bytes() + 8 * kAlignment;
  }
  for (const char* name : {"attention forward", "attention backward"})
    if (const auto kernel = profile.kernels.find(name); kernel != profile.kernels.end())
      attention_flops_ += kernel->second.flops / steps;
  arena_.reserve(bytes + backend_->workspace_bytes() + kAlignment, backend_->memory());
  for (Case& one : cases_) attach(one);
  backend_->set_workspace(arena_.take(backend_->workspace_bytes(), "workspace"));
  for (Case& one : cases_)
    backend_->run(PackWeights{.map = *one.linear, .weight = one.weight, .packed = one.packed});
}

double ProductsAlone::flops() const {
  double sum = attention_flops_;
  for (const Case& one : cases_) sum += one.flops() * (one.calls[0] + one.calls[1] + one.calls[2]);
  return sum;
}

ProductsAlone::Seconds ProductsAlone::measure() {
  Seconds seconds;
  double best_rate = 1;
  const auto least = [&](auto&& product) {
    double time = 1e9;
    for (int i = 0; i < 4; ++i) time = std::min(time, kernel_seconds(backend_->clock(), product));
    return time;
  };
  const auto add = [&](const Case& one, double calls, auto&& tiled, auto&& whole) {
    if (calls == 0) return;
    const double tiles = least(tiled), best = one.whole ? std::min(tiles, least(whole)) : tiles;
    seconds.tiles += calls * tiles;
    seconds.best += calls * best;
    best_rate = std::max(best_rate, one.flops() / best);
  };
  for (Case& one : cases_) {
    Linear& linear = *one.linear;
    add(
        one, one.calls[0],
        [&] {
          backend_->run(
              LinearForward{.map = linear, .x = one.in, .packed = one.packed, .y = one.out});
        },
        [&] { one.whole->forward(one.in, one.out); });
    add(
        one, one.calls[1],
        [&] {
          backend_->run(
              LinearInput{.map = linear, .dy = one.dy, .packed = one.packed, .dx = one.dx});
        },
        [&] { one.whole->backward_input(one.dy, one.dx); });
    add(
        one, one.calls[2],
        [&] {
          backend_->run(LinearWeight{
              .map = linear, .x = one.in, .dy = one.dy, .dweight = one.dw, .accumulate = true});
        },
        [&] { one.whole->backward_weight(one.in, one.dy, one.dw); });
  }
  const double attention = attention_flops_ / best_rate;
  return {seconds.best + attention, seconds.tiles + attention};
}

void ProductsAlone::attach(Case& one) {
  const auto fill = [](auto* values, std::size_t n) {
    using T = std::remove_pointer_t<decltype(values)>;
    for (std::size_t i = 0; i < n; ++i)
      values[i] = rounded<T>(static_cast<float>(i % 97) * 0.01F - 0.5F);
  };
  const auto view = [&](std::size_t n, DType type) {
    const View v = arena_.take(n, type, "bench");
    HostMirror values(backend_->memory(), v);
    if (type == DType::bf16)
      fill(values.host().as<Bf16>(), n);
    else
      fill(values.host().f32(), n);
    values.upload();
    return v;
  };
  const DType type = one.shape.compute;
  one.in = view(one.x(), type), one.dx = view(one.x(), type);
  one.out = view(one.y(), type), one.dy = view(one.y(), type);
  one.weight = view(one.w(), DType::f32), one.dw = view(one.w(), DType::f32);
  one.packed = arena_.take(one.linear->packed_bytes(), "packed");
}

using Json = nlohmann::ordered_json;

/// The seconds that one rank's last step spent on each kind of action.
std::map<std::string, double> phases_of(const TimedTrainer& bench) {
  std::map<std::string, double> phases;
  for (std::size_t i = 0; i < bench.row().size(); ++i) {
    const Kind kind = bench.row()[i].kind;
    if (kind == Kind::STEP) continue;
    const char* name = kind == Kind::F ? "forward" : is_compute(kind) ? "backward" : "transfers";
    phases[name] += bench.record().actions[i].busy;
  }
  phases["update"] = step_seconds(bench.row(), bench.record());
  return phases;
}

/// The bound computed from the durations of the last step. Collective.
double schedule_bound(const TimedTrainer& bench, Communicator& world) {
  StageMeans mine(bench.trainer.layout()), all(bench.trainer.layout());
  mine.add(bench.row(), bench.record());
  all.add(gather_values(world, mine.values()));
  const double step = step_seconds(bench.row(), bench.record());
  return schedule_bound(bench.trainer.assignment().plan, bench.trainer.layout(), all,
                        gather_values(world, std::span(&step, 1)));
}

double largest(Communicator& world, double mine) {
  const std::vector<double> all = gather_values(world, std::span(&mine, 1));
  return *std::max_element(all.begin(), all.end());
}

Json breakdown(const Profile& profile, double steps) {
  Json kernels = Json::object();
  for (const auto& [name, kernel] : profile.kernels) {
    if (kernel.calls == 0) continue;
    Json one = {{"ms", kernel.seconds / steps * 1e3},
                {"calls", static_cast<double>(kernel.calls) / steps}};
    if (kernel.flops > 0) one["gflops_per_s"] = kernel.flops / kernel.seconds * 1e-9;
    kernels[std::string(name)] = one;
  }
  return kernels;
}

/// The times of all measured rounds, in seconds. A round runs each of the compared variants once.
struct Rounds {
  std::vector<double> step, products, tiles, bound, single;
  std::vector<double> issued;  // without graphs, if the step uses any
  double flops = 0;            // of this rank's products in a step

  static double ratio(const std::vector<double>& a, const std::vector<double>& b) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < a.size(); ++i) ratios.push_back(a[i] / b[i]);
    return ratios.empty() ? 0 : median(ratios);
  }
};

/// A trainer for the whole batch on rank 0; null on other ranks and with only one rank.
std::unique_ptr<TimedTrainer> single_rank(const RunConfig& config, Communicator& world,
                                          std::unique_ptr<Communicator>& self) {
  if (world.size() == 1) return nullptr;
  self = world.split(world.rank() == 0 ? 0 : -1, 0);
  if (self == nullptr) return nullptr;
  RunConfig alone = config;
  alone.parallel = {};
  return std::make_unique<TimedTrainer>(alone, *self);
}

Rounds measure(TimedTrainer& bench, TimedTrainer* single, Communicator& world,
               const BenchOptions& options) {
  Rounds rounds;
  for (int i = 0; i < options.warmup; ++i) {
    if (single != nullptr) single->step();
    bench.profile.reset();
    bench.profiled_step();
    if (!bench.times_in_passing()) bench.step();  // as in the measurement; may record a graph
  }
  ProductsAlone products(bench.profile, make_backend(bench.config, bench.threads, world), 1,
                         bench.config.run.device == "cuda" ? 0 : bench.threads);
  products.measure();
  bench.profile.reset();
  for (int i = 0; i < options.steps; ++i) {
    if (single != nullptr) rounds.single.push_back(single->step());
    world.barrier();
    const ProductsAlone::Seconds alone = products.measure();
    rounds.products.push_back(largest(world, alone.best));
    rounds.tiles.push_back(largest(world, alone.tiles));
    if (!bench.times_in_passing()) {
      bench.profiled_step();
      if (bench.config.run.graphs) rounds.issued.push_back(largest(world, bench.issued_step()));
    }
    rounds.step.push_back(largest(world, bench.step()));
    rounds.bound.push_back(schedule_bound(bench, world));
  }
  rounds.flops = products.flops();
  return rounds;
}

}  // namespace

Json bench_step(const RunConfig& config, Communicator& world, const BenchOptions& options) {
  TimedTrainer bench(config, world);
  std::unique_ptr<Communicator> self;
  const std::unique_ptr<TimedTrainer> single = single_rank(config, world, self);
  const Rounds rounds = measure(bench, single.get(), world, options);
  if (!options.costs.empty()) {
    const MeasuredCosts costs = measure_costs(bench.trainer, *bench.backend, bench.threads);
    if (world.rank() == 0) write_result(options.costs, to_json(costs));
  }
  const auto tokens = static_cast<double>(tokens_of_step(config));
  const double step = median(rounds.step);
  Json result = {{"layout", short_form(bench.trainer.layout())},
                 {"schedule", config.parallel.schedule},
                 {"ranks", world.size()},
                 {"threads", bench.threads},
                 {"microbatches", config.batch.microbatches},
                 {"leaves", bench.trainer.job().leaves},
                 {"backend", bench.backend->describe()},
                 {"step_ms", step * 1e3},
                 {"tokens_per_s", tokens / step},
                 {"gemm_flops", rounds.flops},
                 {"gemm_ms", median(rounds.products) * 1e3},
                 {"gemm_limit", Rounds::ratio(rounds.products, rounds.step)},
                 {"tiles_ms", median(rounds.tiles) * 1e3},
                 {"tiles_limit", Rounds::ratio(rounds.tiles, rounds.step)},
                 {"peak_bytes", largest(world, static_cast<double>(bench.trainer.peak_bytes()))}};
  if (!rounds.issued.empty()) {
    result["issued_ms"] = median(rounds.issued) * 1e3;
    result["graph_speedup"] = Rounds::ratio(rounds.issued, rounds.step);
  }
  if (world.size() > 1) {
    const double single_step = largest(world, rounds.single.empty() ? 0 : median(rounds.single));
    const double speedup = largest(world, Rounds::ratio(rounds.single, rounds.step));
    result["single_tokens_per_s"] = tokens / single_step;
    result["scaling"] = speedup / world.size();
    result["bound_ms"] = median(rounds.bound) * 1e3;
    result["schedule_efficiency"] = Rounds::ratio(rounds.bound, rounds.step);
  }
  for (const auto& [name, seconds] : phases_of(bench))
    result["phases"][name + "_ms"] = seconds * 1e3;
  result["kernels"] = breakdown(bench.profile, options.steps);
  return result;
}

std::vector<std::string> bench_model() {
  return {"model.layers=6",       "model.width=384",   "model.heads=6",
          "model.context=256",    "model.vocab=256",   "batch.global=16",
          "batch.microbatches=4", "numerics.leaves=1", "run.threads=1"};
}

std::string bench_step_table(const Json& result) {
  std::string text;
  for (const auto& [key, value] : result.items()) {
    if (value.is_object()) continue;
    text += value.is_number_float() ? fmt::format("{:<22} {:.6g}\n", key, value)
                                    : fmt::format("{:<22} {}\n", key, value);
  }
  text +=
      fmt::format("\n{:<30} {:>10} {:>8} {:>9}\n", "rank 0, per step", "ms", "calls", "GFLOP/s");
  for (const auto& [name, kernel] : result["kernels"].items())
    text += fmt::format("{:<30} {:>10.2f} {:>8.0f} {:>9.1f}\n", name, kernel["ms"], kernel["calls"],
                        kernel.value("gflops_per_s", Json()));
  return text;
}

}  // namespace concertina
