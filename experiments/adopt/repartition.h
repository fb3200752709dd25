// The layout policy of a run, fed step by step and asked after a freeze and on demand.
// Invariants: what it decides follows from figures of all ranks, the same on each; whatever it
// decides, what is trained keeps its bits.
#pragma once

#include <optional>

#include "core/backend.h"
#include "experiments/adopt/change.h"
#include "experiments/adopt/idle_policies.h"
#include "experiments/predict/measured_costs.h"
#include "parallel/predict/cost_record.h"
#include "parallel/predict/forecast.h"

namespace concertina {

/// What the layout policy may count on besides what the run measures.
struct Outlook {
  std::function<CacheForecast()> cache{};  // read in place of computed, asked at each decision
  int cores = 0;                           // of each host, as ForecastInput has them
  std::vector<ForeseenFreeze> freezes{};
};

class Repartition final : public ChangePolicy {
 public:
  /// All outlive it.
  Repartition(const RunConfig& config, const Trainer& trainer, Backend& backend, int threads,
              Outlook outlook = {});

  void consider(const RunView& view, Trainer& trainer, Change& change) override;
  void adopted(const Change& change, const Adoption& adoption) override;
  std::vector<RunEvent> closing() override;

  /// Takes up the times of the run's steps so far.
  CostRecord& costs() { return costs_; }
  /// Measures changes of the layout, by a probe and by the changes so far. Collective.
  MoveRates moves(Trainer& trainer);

  const char* name() const override { return "layout"; }
  /// The layout that the run began with, the batches that a step does at once; and the layout that
  /// was changed to, for a resumed launch in a world of as many ranks.
  nlohmann::json progress() const override;
  void restore(const nlohmann::json& progress, Trainer& trainer,
               const std::string& source) override;

 private:
  ForecastInput measure(Trainer& trainer);
  std::vector<LayoutPeriod> ahead(const RunView& view, const Job& job, int frozen) const;
  void learn(const LayoutChoice& next, const Adoption& adoption);
  void probe(Trainer& trainer);
  void tell_of_ranks(bool leads, LayoutDecision& decision);
  std::vector<double> memory_limits(Trainer& trainer);
  void record(const LayoutDecision& decision, std::int64_t steps_left, const Trainer& trainer,
              Change& change);
  void resume(std::optional<Request> stored, int batches, Trainer& trainer);
  std::optional<RunEvent> outcome();

  const RunConfig& config_;
  const LayoutPolicy& policy_;
  const LayoutOptions options_;
  Backend& backend_;
  const int threads_;
  const Outlook outlook_;
  CostRecord costs_;
  std::optional<MachineModel> links_;  // and moves: probed at the first decision
  LayoutStart start_;
  int batches_ = 1;                  // that a step does at once
  std::size_t settled_ = 0;          // updates since the last change, as far as they count
  std::vector<double> seconds_;      // of those of this launch
  std::optional<double> predicted_;  // seconds of such a step
  std::optional<double> wanted_;     // the same of what the decision of this step wants
  bool moves_ = false;               // and whether that is another layout
  std::vector<std::size_t> unlike_;  // ranks that take longer or less long than the others
  double rebuild_ = 0;               // seconds of the last change but for the state's move, here
  double move_factor_ = 1;           // what that move took over what the probe says
  MoveRates predicted_rates_;        // of the newest prediction
  nlohmann::json layout_;            // that was changed to (layout_json()); null: none
  int world_ = 0;
};

}  // namespace concertina
