// The costs given by `schedule --costs` (seconds for each stage or for all, or the measured units
// of a run) and, for messages, by `--links` or `--latency`. Invariant: pure except for reading the
// files; a run's model is partitioned over a layout's stages as in `train`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/predict/measured_costs.h"
#include "experiments/predict/report_parts.h"

namespace concertina {

struct LinkOptions {
  std::string links{};  // a machine file or a run; empty: the links of the run in --costs
  std::optional<double> boundary_bytes{};  // per message (default: as in a run's model)
  /// Seconds per message, which occupies no rank (Costs::latency_alone); replaces links.
  std::optional<double> latency{};
};

class ScheduleCosts {
 public:
  /// `words`: three numbers F, I and W, or the path of a run (see read_costs()) or of a file with a
  /// row per stage of a pipeline (see read_stage_costs()). Throws Error{bad_input} if these do not
  /// determine the times of stages and messages.
  explicit ScheduleCosts(const std::vector<std::string>& words, const LinkOptions& links = {});

  bool measured() const { return source_.has_value(); }
  /// Number of units of the run's model, an upper bound for stages; nullopt without a model.
  std::optional<int> units() const;
  /// Number of rows of a cost file, one per stage of a pipeline; nullopt without a file.
  std::optional<int> rows() const;
  /// `share`: the fraction of the three numbers that a stage takes. `leaves`: the number of leaves
  /// in the gradient sum; 0: as many as the layout's pipelines need, or the default. Throws
  /// Error{bad_input} if a pipeline does not have one stage per row of the file.
  Costs of(const Layout& layout, const Plan& plan, double share = 1, int leaves = 0) const;
  /// See links_json(). `costs`: the result of of().
  nlohmann::ordered_json links(const Layout& layout, const Costs& costs) const;

 private:
  void read_run(const std::string& path);
  void read_stage(const std::vector<std::string>& words);
  void read_links(const LinkOptions& options);
  void read_latency(const LinkOptions& options);
  Costs given_costs(const Layout& layout, double share) const;
  Costs measured_costs(const Layout& layout, const Plan& plan, int leaves) const;

  StageCosts stage_;
  std::string file_;                  // of `rows_`
  std::vector<StageCosts> rows_;      // per stage of a pipeline; empty: all are `stage_`
  std::optional<CostSource> source_;  // a run
  MachineModel machine_;
  LinkSource links_;
  double boundary_bytes_ = 0;
  std::optional<double> latency_;
};

}  // namespace concertina
