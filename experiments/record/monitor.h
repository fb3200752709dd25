// The human-readable output of a training run: metrics.jsonl, events.jsonl, TensorBoard, progress.
// Invariant: only rank 0 has a Monitor, and errors here never change a result or stop a run: a file
// that cannot be written causes one warning and is retried with the next line.
#pragma once

#include <functional>
#include <optional>
#include <set>

#include "experiments/config/config.h"
#include "experiments/evaluate/evaluate.h"
#include "experiments/record/progress.h"
#include "io/metrics.h"
#include "io/tensorboard.h"

namespace concertina {

/// "step 20/200  held-out loss 2.3457, accuracy 81.25%, over 4,096 of 44,044 targets".
std::string held_out_line(std::int64_t step, std::int64_t steps, const Validation& result);

class Monitor {
 public:
  /// Continues the files of `directory` after step `last_step`.
  Monitor(const RunConfig& config, const std::string& directory, std::int64_t last_step);

  /// `evaluations`: the duration of upcoming evaluations, measured in steps.
  void step(const StepMetrics& metrics, double evaluations = 0);
  /// See Progress::evaluation().
  void evaluation(std::int64_t done, std::int64_t of, double seconds) {
    progress_.evaluation(done, of, seconds);
  }
  /// `final`: at the end of the run. If the evaluation covers different text from earlier
  /// evaluations, it is not added to their curve in TensorBoard.
  void validation(std::int64_t step, const Validation& result, bool final);
  /// Writes a line to events.jsonl: what happened and what it cost.
  void event(std::int64_t step, EventKind kind, const nlohmann::ordered_json& details);
  /// Prints a line between step lines.
  void say(const std::string& line) { progress_.say(line); }
  /// Removes the progress bar; call it before anything else writes to the terminal.
  void clear() { progress_.clear(); }

 private:
  std::string elastic_text(const StepMetrics& metrics);
  void attempt(const std::string& what, const std::function<void()>& write);

  const ModelSpec model_;
  const bool freezes_;                     // as the run resumes
  const std::int64_t batch_;               // samples per step
  std::string first_layout_;               // of this launch
  std::int64_t steps_, curve_tokens_ = 0;  // per evaluation before the end
  std::optional<JsonLines> metrics_, events_;
  std::optional<TensorBoardWriter> tensorboard_;
  std::set<std::string> failed_;
  Progress progress_;
  Eta eta_;
};

}  // namespace concertina
