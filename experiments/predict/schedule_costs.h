// The costs of `schedule --costs`: seconds for every stage, or of each, or what the units of a run
// took; and `--links` or `--latency`, what messages take.
// Invariant: pure but for reading the files; a run's model is cut over a layout's stages as `train`
// would cut it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/predict/measured_costs.h"
#include "experiments/predict/report_parts.h"

namespace concertina {

struct LinkOptions {
  std::string links{};  // a machine file or a run; empty: those of the run that has the costs
  std::optional<double> boundary_bytes{};  // of a message, where no run's model says it
  /// In place of links: seconds that every message between ranks takes, occupying nobody
  /// (Costs::latency_alone).
  std::optional<double> latency{};
};

class ScheduleCosts {
 public:
  /// `words`: three numbers F, I and W, or one path: of a run (see read_costs()), or of a file with
  /// a row per stage of a pipeline (see read_stage_costs()). Throws Error{bad_input} if it takes
  /// something else to know what stages and messages take.
  explicit ScheduleCosts(const std::vector<std::string>& words, const LinkOptions& links = {});

  bool measured() const { return source_.has_value(); }
  /// The units of the run's model: no layout can have more stages. It is empty where there is no
  /// model.
  std::optional<int> units() const;
  /// The rows of a file of costs: each pipeline of a layout has as many stages. It is empty where
  /// there is no such file.
  std::optional<int> rows() const;
  /// `share`: what part of the three numbers a stage takes. `leaves` of the gradient sum; 0: as
  /// many as the layout's pipelines need, or the default. Throws Error{bad_input} if a pipeline has
  /// not as many stages as the file has rows.
  Costs of(const Layout& layout, const Plan& plan, double share = 1, int leaves = 0) const;
  /// See links_json(). `costs`: what of() said.
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
  std::vector<StageCosts> rows_;      // by stage of a pipeline; empty: all are `stage_`
  std::optional<CostSource> source_;  // a run
  MachineModel machine_;
  LinkSource links_;
  double boundary_bytes_ = 0;
  std::optional<double> latency_;
};

}  // namespace concertina
