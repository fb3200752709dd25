#include "experiments/bench_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "core/profile_backend.h"
#include "core/rng.h"
#include "experiments/gather.h"
#include "experiments/rank_engine.h"
#include "parallel/simulate.h"

namespace concertina {
namespace {

using Json = nlohmann::ordered_json;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Uniform random tokens: the same work as any text.
class RandomTokens final : public BatchSource {
 public:
  RandomTokens(std::int64_t tokens, int vocabulary) : tokens_(tokens), vocabulary_(vocabulary) {}
  void load(std::int64_t step, std::int64_t first, std::int64_t count, View tokens,
            View targets) override {
    const Rng rng(1, Purpose::sample);
    const auto token = [&](std::int64_t sample, std::int64_t i) {
      return static_cast<std::int32_t>(rng.words(static_cast<std::uint32_t>(step),
                                                 static_cast<std::uint32_t>(sample), 0,
                                                 static_cast<std::uint32_t>(i))[0] %
                                       static_cast<std::uint32_t>(vocabulary_));
    };
    for (std::int64_t s = 0; s < count; ++s)
      for (std::int64_t i = 0; i < tokens_; ++i) {
        if (!tokens.empty()) tokens.i32()[s * tokens_ + i] = token(first + s, i);
        if (!targets.empty()) targets.i32()[s * tokens_ + i] = token(first + s, i + 1);
      }
  }
  std::int64_t tokens_per_sample() const override { return tokens_; }

 private:
  std::int64_t tokens_;
  int vocabulary_;
};

/// An engine with the clock on its kernels.
struct Subject {
  Subject(const RunConfig& config, int world, int rank)
      : run(make_run_plan(config, world)),
        backend(make_cpu_backend(std::max(1, config.run.threads))),
        profiled(make_profile_backend(*backend, profile)),
        engine(run, config, rank, *profiled),
        tokens(config.model.context, config.model.vocab) {}

  void start(Communicator& world) {
    engine.start(world);
    engine.initialize();
  }
  double step() {
    engine.world().barrier();
    const double start = now();
    engine.train(++steps, tokens);
    engine.world().barrier();
    return now() - start;
  }

  RunPlan run;
  std::unique_ptr<Backend> backend;
  Profile profile;
  std::unique_ptr<Backend> profiled;
  RankEngine engine;
  RandomTokens tokens;
  std::int64_t steps = 0;
};

/// Seconds of one call of `product` alone: the least of the medians of short bursts.
template <class F>
double time_alone(F&& product) {
  product();
  std::vector<double> times;
  for (int i = 0; i < 9; ++i) {
    const double start = now();
    product();
    times.push_back(now() - start);
  }
  return median(times);
}

/// The products of a step by themselves: seconds, and the best rate of any, FLOP/s.
struct Alone {
  double seconds = 0, best_rate = 0, flops = 0;
};

void add_alone(Alone& sum, const KernelTime& kernel, double steps, double seconds) {
  if (kernel.calls == 0) return;
  const double calls = static_cast<double>(kernel.calls) / steps;
  sum.seconds += calls * seconds;
  sum.flops += kernel.flops / steps;
  sum.best_rate =
      std::max(sum.best_rate, kernel.flops / static_cast<double>(kernel.calls) / seconds);
}

/// Every shape of the profile on buffers of its own, with nothing fused behind it.
Alone products_alone(const Profile& profile, int threads, double steps) {
  const std::unique_ptr<Backend> backend = make_cpu_backend(threads);
  Alone sum;
  for (const auto& [shape, times] : profile.products) {
    const std::unique_ptr<Linear> linear = backend->linear(shape);
    const auto count = [](std::int64_t a, std::int64_t b) {
      return static_cast<std::size_t>(a * b);
    };
    const std::size_t x = count(shape.rows, shape.in), y = count(shape.rows, shape.out),
                      w = count(shape.in, shape.out);
    Arena arena(sizeof(float) * (2 * x + 2 * y + 2 * w) + linear->packed_bytes() +
                backend->workspace_bytes() + 1024);
    const auto view = [&](std::size_t n) {
      const View v = arena.take(n, DType::f32, "bench");
      for (std::size_t i = 0; i < n; ++i) v.f32()[i] = static_cast<float>(i % 97) * 0.01F - 0.5F;
      return v;
    };
    const View in = view(x), dx = view(x), out = view(y), dy = view(y), weight = view(w),
               dw = view(w);
    void* packed = arena.take(linear->packed_bytes(), "packed");
    backend->set_workspace(arena.take(backend->workspace_bytes(), "workspace"));
    linear->pack(weight, packed);
    add_alone(sum, times.forward, steps,
              time_alone([&] { linear->forward(in, packed, {}, {}, out); }));
    add_alone(sum, times.input, steps,
              time_alone([&] { linear->backward_input(dy, packed, {}, dx); }));
    add_alone(sum, times.weight, steps,
              time_alone([&] { linear->backward_weight(in, dy, dw, {}, true); }));
  }
  return sum;
}

/// Attention's products count at the best rate of any product here: no shape of theirs could be
/// faster by itself.
Alone with_attention(Alone sum, const Profile& profile, double steps) {
  for (const char* name : {"attention forward", "attention backward"}) {
    const auto kernel = profile.kernels.find(name);
    if (kernel == profile.kernels.end()) continue;
    sum.flops += kernel->second.flops / steps;
    sum.seconds += kernel->second.flops / steps / sum.best_rate;
  }
  return sum;
}

/// Seconds of one rank, by kind of action, in its last step.
std::map<std::string, double> phases_of(const Executor& executor) {
  std::map<std::string, double> phases;
  for (std::size_t i = 0; i < executor.row().size(); ++i) {
    const ActionTime& time = executor.times()[i];
    const Kind kind = executor.row()[i].kind;
    const char* name = kind == Kind::F      ? "forward"
                       : kind == Kind::STEP ? "update"
                       : is_compute(kind)   ? "backward"
                                            : "transfers";
    phases[name] += time.end - time.start;
  }
  return phases;
}

/// Mean F and backward seconds of each stage and STEP of each rank, from all ranks.
class StageTimes {
 public:
  explicit StageTimes(int stages) : sums_(static_cast<std::size_t>(stages) * 4 + 1) {}
  void add(const Executor& executor) {
    for (std::size_t i = 0; i < executor.row().size(); ++i) {
      const Action& action = executor.row()[i];
      const double seconds = executor.times()[i].end - executor.times()[i].start;
      const std::size_t at = static_cast<std::size_t>(action.stage) * 4;
      if (action.kind == Kind::F) add(at, seconds);
      if (action.kind == Kind::B) add(at + 2, seconds);
      if (action.kind == Kind::STEP) sums_.back() += seconds, ++steps_;
    }
  }
  /// Sums over `world`: each stage is on one rank; STEP is the mean.
  Costs costs(Communicator& world, const Layout& layout) {
    sums_.back() /= std::max(1, steps_);
    const std::vector<double> all = gather_values(world, sums_);
    std::vector<double> sums(sums_.size());
    for (std::size_t i = 0; i < all.size(); ++i) sums[i % sums.size()] += all[i];
    Costs costs = unit_costs(layout);
    for (std::size_t s = 0; s < costs.stages.size(); ++s) {
      costs.stages[s].forward = sums[4 * s] / std::max(1.0, sums[4 * s + 1]);
      costs.stages[s].input = sums[4 * s + 2] / std::max(1.0, sums[4 * s + 3]);
      costs.stages[s].weight = 0;
    }
    costs.step = sums.back() / world.size();
    return costs;
  }

 private:
  void add(std::size_t at, double seconds) {
    sums_[at] += seconds;
    sums_[at + 1] += 1;
  }
  std::vector<double> sums_;  // a stage: F seconds, F count, B seconds, B count; last: STEP
  int steps_ = 0;
};

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

}  // namespace

Json bench_step(const RunConfig& config, Communicator& world, const BenchOptions& options) {
  Subject subject(config, world.size(), world.rank());
  subject.start(world);
  RunConfig alone_config = config;
  alone_config.parallel = {};
  std::unique_ptr<Communicator> self = world.split(world.rank() == 0 ? 0 : -1, 0);
  std::unique_ptr<Subject> single;
  if (world.size() > 1 && self != nullptr) {
    single = std::make_unique<Subject>(alone_config, 1, 0);
    single->start(*self);
  }
  std::vector<double> times, single_times;
  StageTimes stage_times(subject.run.layout.stage_count());
  for (int i = 0; i < options.warmup + options.steps; ++i) {
    if (i == options.warmup) subject.profile.reset();
    if (single != nullptr) {
      const double seconds = single->step();
      if (i >= options.warmup) single_times.push_back(seconds);
    }
    const double seconds = subject.step();
    if (i < options.warmup) continue;
    times.push_back(seconds);
    stage_times.add(subject.engine.executor());
  }

  const double steps = options.steps, step = largest(world, median(times));
  const double tokens = static_cast<double>(config.batch.global) * config.model.context;
  const Alone alone =
      with_attention(products_alone(subject.profile, std::max(1, config.run.threads), steps),
                     subject.profile, steps);
  Json result = {
      {"layout", short_form(subject.run.layout)},
      {"schedule", config.parallel.schedule},
      {"ranks", world.size()},
      {"threads", std::max(1, config.run.threads)},
      {"microbatches", config.batch.microbatches},
      {"leaves", subject.run.leaves},
      {"backend", subject.backend->describe()},
      {"step_ms", step * 1e3},
      {"tokens_per_s", tokens / step},
      {"gemm_flops", alone.flops},
      {"gemm_ms", alone.seconds * 1e3},
      {"gemm_limit", largest(world, alone.seconds) / step},
      {"peak_bytes", largest(world, static_cast<double>(subject.engine.arena().peak()))}};
  if (world.size() > 1) {
    const double rate = single_times.empty() ? 0 : tokens / median(single_times);
    const double single_rate = largest(world, rate);
    const double bound =
        simulate(subject.run.plan, subject.run.layout, stage_times.costs(world, subject.run.layout))
            .makespan;
    result["single_tokens_per_s"] = single_rate;
    result["scaling"] = tokens / step / (single_rate * world.size());
    result["bound_ms"] = bound * 1e3;
    result["schedule_efficiency"] = bound / step;
  }
  for (const auto& [name, seconds] : phases_of(subject.engine.executor()))
    result["phases"][name + "_ms"] = seconds * 1e3;
  result["kernels"] = breakdown(subject.profile, steps);
  return result;
}

std::string bench_step_table(const Json& result) {
  std::string text;
  for (const auto& [key, value] : result.items()) {
    if (value.is_object()) continue;
    text += value.is_number_float() ? fmt::format("{:<22} {:.6g}\n", key, value.get<double>())
                                    : fmt::format("{:<22} {}\n", key, value.dump());
  }
  text += fmt::format("\n{:<30} {:>10} {:>8} {:>9}\n", "rank 0, a step", "ms", "calls", "GFLOP/s");
  for (const auto& [name, kernel] : result["kernels"].items())
    text += fmt::format("{:<30} {:>10.2f} {:>8.0f} {:>9}\n", name, kernel["ms"].get<double>(),
                        kernel["calls"].get<double>(),
                        kernel.contains("gflops_per_s")
                            ? fmt::format("{:.1f}", kernel["gflops_per_s"].get<double>())
                            : "");
  return text;
}

}  // namespace concertina
