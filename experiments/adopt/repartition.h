// The layout policy of a run. It receives every step and decides after a freeze or on request.
// Invariants: decisions depend on values that every rank has gathered from all ranks; no decision
// changes the bits of the trained weights.
#pragma once

#include <optional>

#include "core/backend.h"
#include "experiments/adopt/change.h"
#include "experiments/adopt/idle_policies.h"
#include "experiments/predict/measured_costs.h"
#include "parallel/predict/cost_record.h"
#include "parallel/predict/forecast.h"

namespace concertina {

/// Facts that the layout policy may rely on besides what the run measures.
struct Outlook {
  std::function<CacheForecast()> cache{};  // cached outputs; queried at each decision
  int cores = 0;                           // per host, as in ForecastInput
  std::vector<ForeseenFreeze> freezes{};
};

class Repartition final : public ChangePolicy {
 public:
  /// All references must outlive this object.
  Repartition(const RunConfig& config, const Trainer& trainer, Backend& backend, int threads,
              Outlook outlook = {});

  void consider(const RunView& view, Trainer& trainer, Change& change) override;
  void adopted(const Change& change, const Adoption& adoption) override;
  std::vector<RunEvent> closing() override;

  /// The measured times of the run's steps.
  CostRecord& costs() { return costs_; }
  /// Estimates the cost of layout changes from a probe and from the changes so far. Collective.
  MoveRates moves(Trainer& trainer);

  const char* name() const override { return "layout"; }
  /// The initial layout of the run, the batches per step, and the layout that the run changed to,
  /// for a resumed launch with the same world size.
  nlohmann::json progress() const override;
  void restore(const nlohmann::json& progress, Trainer& trainer,
               const std::string& source) override;

 private:
  ForecastInput measure(Trainer& trainer);
  std::vector<LayoutPeriod> ahead(const RunView& view, const Job& job, int frozen) const;
  void learn(const LayoutChoice& next, const Adoption& adoption);
  void probe(Trainer& trainer);
  void report_ranks(bool leads, LayoutDecision& decision);
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
  std::optional<MachineModel> links_;  // includes moves; probed at the first decision
  LayoutStart start_;
  int batches_ = 1;                     // per step
  std::size_t settled_ = 0;             // updates since the last change; saturates
  std::vector<double> seconds_;         // per update since the last change, in this launch
  std::optional<double> predicted_;     // seconds per update
  std::optional<double> wanted_;        // the same, as predicted by this step's decision
  bool moves_ = false;                  // whether that decision changes the layout
  std::vector<std::size_t> different_;  // ranks that are slower or faster than the others
  double rebuild_ = 0;         // seconds for the last change, excluding state moves, on this rank
  double move_factor_ = 1;     // measured time of these moves / time predicted by the probe
  MoveRates predicted_rates_;  // used by the newest prediction
  nlohmann::json layout_;      // the layout that the run changed to (layout_json()), or null
  int world_ = 0;
};

}  // namespace concertina
