// Short runs of a small model assembled from its parts, on any communicator.
// Invariant: the data of a run is a function of (config, step) only.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "core/model/batch.h"
#include "experiments/run/trainer.h"
#include "parallel/generate/assign.h"

namespace concertina {

/// Samples that a model can learn: random tokens, each repeated three times.
class SyntheticSource final : public BatchSource {
 public:
  SyntheticSource(std::int64_t tokens, int vocabulary)
      : tokens_(tokens), vocabulary_(vocabulary), fields_(text_fields(tokens)) {}
  std::span<const Field> fields() const override { return fields_; }
  void load(std::int64_t step, std::int64_t first, std::int64_t count,
            std::span<const View> views) override;
  std::int64_t valid_targets(std::int64_t /*step*/, std::int64_t samples) const override {
    return samples * tokens_;
  }

 private:
  std::int64_t tokens_;
  int vocabulary_;
  std::vector<Field> fields_;
};

/// 3 layers (8 units), 12 microbatches of 2 samples, 12 leaves, 20 steps, one thread.
RunConfig small_config();
/// Sets `parallel.pp`, `parallel.dp` and `parallel.schedule`.
RunConfig with_grid(RunConfig config, int pp, int dp, const std::string& schedule);
/// Sets `parallel.layout`.
RunConfig with_layout(RunConfig config, Layout layout, const std::string& schedule);

/// Results that must be equal at any layout.
struct Outcome {
  std::string state_sha256;
  double loss = 0, grad_norm = 0;  // of the last step
  bool operator==(const Outcome&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Outcome& outcome);

/// Trains steps (first, last] on one rank of `world`, collective. Starts from the newest checkpoint
/// in `from`, which must be of step `first`, unless it is empty; likewise ends with one in `to`.
struct Span {
  std::int64_t first = 0, last = 20;
  std::string from, to;
};
using MakeBackend = std::function<std::unique_ptr<Backend>(int threads)>;
std::unique_ptr<Backend> cpu_backend(int threads);

/// Before step `step`, the run changes to `request`.
struct LayoutChange {
  std::int64_t step = 0;
  Request request{};
};
struct TrainingHooks {
  std::vector<LayoutChange> changes{};
  std::function<void(Trainer&, std::int64_t step)> before{};  // each step
  std::function<void(double loss)> after{};                   // each step
};
Outcome train_rank(Communicator& world, const RunConfig& config, const Span& span = {},
                   const MakeBackend& make_backend = cpu_backend, const TrainingHooks& hooks = {});

/// Calls with a trainer on one rank of `world`, with initial weights and samples. Collective.
void with_trainer(Communicator& world, const RunConfig& config,
                  const std::function<void(Trainer&, BatchSource&)>& body,
                  const MakeBackend& make_backend = cpu_backend);

/// Does the same on each of `ranks` threads, on the CPU.
void with_threads(int ranks, const RunConfig& config,
                  const std::function<void(Trainer&, BatchSource&)>& body);

/// Calls with a single rank with initial weights, on the CPU.
void with_rank_alone(const RunConfig& config,
                     const std::function<void(Trainer&, BatchSource&)>& body);

/// Returns the loss over microbatches [0, count) of a batch of `source`, on this rank.
double summed_loss(Trainer& trainer, std::int64_t batch, int count, BatchSource& source);

/// Trains on `ranks` threads, which must agree on the outcome.
Outcome train_threads(int ranks, const RunConfig& config, const Span& span = {},
                      const MakeBackend& make_backend = cpu_backend,
                      const TrainingHooks& hooks = {});

/// A config for one layout of this many ranks.
struct RunPlace {
  std::string name;
  int ranks = 1;
  RunConfig config;
};
using GridSchedule = std::tuple<int, int, std::string>;  // pp, dp, schedule
std::vector<RunPlace> grid_places(const RunConfig& config, const std::vector<GridSchedule>& grids);
/// Returns every registered schedule on grids of one to four ranks; searched schedules only on up
/// to two.
std::vector<RunPlace> schedule_places(const RunConfig& config);
/// Returns pipelines of different depths (3 ranks = 2 + 1) and of opposite directions, one whose
/// first rank has both ends of the model, and one of four ranks.
std::vector<RunPlace> uneven_places(const RunConfig& config, const std::string& schedule = "1f1b");
/// Expects that training `span` gives these bits at each place.
void expect_same_bits(const std::vector<RunPlace>& places, const Outcome& expected,
                      const Span& span, const MakeBackend& make_backend = cpu_backend);

}  // namespace concertina
