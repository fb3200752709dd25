// metrics.jsonl, events.jsonl and result.json of a run.
// Invariant: a reader sees whole lines, and after a resume each step once.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "io/file.h"

namespace concertina {

/// A line of metrics.jsonl: of one step, or of several that were done at once. A figure that is not
/// finite is written as null (JSON has no NaN).
struct StepMetrics {
  std::int64_t step = 0;  // counted from 1: the steps done
  double loss = 0;        // nats, mean over the valid targets of the global batch
  double lr = 0;
  double grad_norm = 0;                  // before clipping
  double tokens_per_s = 0, step_ms = 0;  // of each step
  double bubble = 0;                     // idle share, mean over ranks
  std::uint64_t peak_bytes = 0;          // largest of any rank
  std::string layout;                    // short form, e.g. "pp2xdp2"
  int frozen_units = 0;                  // leading units that only ran forward
  double mfu = 0;      // share of the devices' peak rate; 0: not known, and no key
  std::string time{};  // when the step ended, utc_text(); the last key of the line
  int batches = 1;     // steps that the line is of, a batch of each; 1: no key
};
nlohmann::ordered_json to_json(const StepMetrics& metrics);

/// A file with one JSON object a line, in write order.
class JsonLines {
 public:
  /// Continues the file after a resume at `last_step` (0: from the start): drops lines whose "step"
  /// is above it, and with a warning lines that are no JSON objects; keeps the rest as it is.
  JsonLines(const std::string& path, std::int64_t last_step);

  /// One line in one write: whoever follows the file never sees half a line, nor does it stay after
  /// an error. A line that cannot be written is written before a later one, where there are not too
  /// many.
  void write(const nlohmann::ordered_json& object);

 private:
  File file_;
  std::string waiting_{};
};

/// Replaces `path` by the object, indented, atomically.
void write_result(const std::string& path, const nlohmann::ordered_json& result);

}  // namespace concertina
