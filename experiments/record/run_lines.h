// What the lines of metrics.jsonl and events.jsonl say, whatever version of the program wrote them.
// Invariant: a key that a line lacks, or that is of another type, is a NaN or an empty text.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace concertina {

/// What one line of metrics.jsonl says; NaN where it says null or nothing.
struct MetricsPoint {
  double batches = 1;  // steps that the line is of, done at once
  double step = 0, loss = 0, tokens_per_s = 0, step_ms = 0, bubble = 0, lr = 0, grad_norm = 0;
  std::string time{}, layout{};
  double frozen_units = 0;
};

/// A "validation" line of events.jsonl.
struct ValidationPoint {
  double step = 0, loss = 0;
  std::int64_t tokens = 0, of_tokens = 0;  // 0: a program of before did not say
};

double number_in(const nlohmann::json& line, const char* key);
std::string text_in(const nlohmann::json& line, const char* key);

/// The whole lines of `path` that are objects; none if there is no such file.
std::vector<nlohmann::json> read_lines(const std::string& path);
/// The lines that have a step.
std::vector<MetricsPoint> metrics_of(const std::vector<nlohmann::json>& lines);
std::vector<ValidationPoint> validations_of(const std::vector<nlohmann::json>& events);

}  // namespace concertina
