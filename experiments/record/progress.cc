#include "experiments/record/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/clock.h"
#include "core/step_history.h"
#include "core/text/number_text.h"

namespace concertina {
namespace {

constexpr double kRedrawSeconds = 0.1;

}  // namespace

std::string format_duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  const auto total = static_cast<std::int64_t>(std::min(std::round(seconds), 1e12));
  const std::int64_t minutes = total / 60, hours = minutes / 60;
  if (hours >= 100) return fmt::format("{}d {:02}h", hours / 24, hours % 24);
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes % 60, total % 60);
  return fmt::format("{}:{:02}", minutes, total % 60);
}

std::string format_rate(double per_second) {
  if (!std::isfinite(per_second) || per_second < 0) return "?";
  constexpr const char* kSuffix[] = {"", "k", "M", "G", "T"};
  std::size_t scale = 0;
  // 999.5 would print as "1000", which has four digits.
  while (per_second >= 999.5 && scale + 1 < std::size(kSuffix)) per_second /= 1000, ++scale;
  const int decimals = scale == 0 || per_second >= 99.95 ? 0 : per_second >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f}{}", per_second, decimals, kSuffix[scale]);
}

std::string progress_line(const ProgressMetrics& metrics) {
  return fmt::format("step {}/{}  loss {}  {} tokens/s  bubble {:.0f}%  {}{}ETA {}", metrics.step,
                     metrics.steps, number_text(metrics.loss), format_rate(metrics.tokens_per_s),
                     100 * metrics.bubble, metrics.elastic, metrics.elastic.empty() ? "" : "  ",
                     format_duration(metrics.seconds_left));
}

std::string progress_bar(const ProgressMetrics& metrics, int width) {
  constexpr int kLeastCells = 5, kMostCells = 40;
  const std::string text = progress_line(metrics);
  const auto room = static_cast<std::size_t>(std::max(width, 0));
  const int cells = std::min(kMostCells, width - static_cast<int>(text.size()) - 3);
  if (cells < kLeastCells) return text.substr(0, room);
  const double share = metrics.steps > 0
                           ? static_cast<double>(metrics.step) / static_cast<double>(metrics.steps)
                           : 1;
  const auto full = static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * cells);
  return fmt::format("[{}{}] {}", std::string(full, '#'),
                     std::string(static_cast<std::size_t>(cells) - full, '.'), text);
}

Progress::Progress(std::FILE* stream, std::int64_t every)
    : line_(stream), every_(std::max<std::int64_t>(every, 1)) {}

void Progress::update(const ProgressMetrics& metrics) {
  const bool last = metrics.step >= metrics.steps;
  if (!line_.on_terminal()) {
    if (is_due(metrics.step - metrics.batches, metrics.step, every_) || last)
      say(progress_line(metrics));
    return;
  }
  const double time = now();
  if (!last && time - last_draw_ < kRedrawSeconds) return;
  const std::string bar = progress_bar(metrics, line_.columns());
  last ? say(bar) : line_.draw(bar);
  last_draw_ = time;
}

void Progress::evaluation(std::int64_t done, std::int64_t of, double seconds) {
  if (done >= of) last_draw_ = 0;
  if (done >= of) return clear();
  // `seconds` counts from the start of the evaluation, so the first call draws.
  const double pause = line_.on_terminal() ? kRedrawSeconds : 10;
  if (seconds - last_draw_ < pause && last_draw_ <= seconds) return;
  last_draw_ = seconds;
  const std::string text = fmt::format(
      "evaluating: {} of {} targets  ETA {}", grouped(done), grouped(of),
      format_duration(seconds * static_cast<double>(of - done) / static_cast<double>(done)));
  line_.draw(text);
}

void Eta::add(double step_seconds) {
  constexpr double kWeight = 0.1;
  mean_ = mean_ < 0 ? step_seconds : mean_ + kWeight * (step_seconds - mean_);
}

double Eta::seconds_left(double steps_left) const {
  return mean_ < 0 ? -1 : mean_ * steps_left;
}

}  // namespace concertina
