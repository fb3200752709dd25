#include "experiments/study/study_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/number_text.h"
#include "experiments/record/progress.h"

namespace concertina {

StudyProgress::StudyProgress(std::FILE* stream, std::string metric)
    : stream_(stream),
      metric_(std::move(metric)),
      terminal_(isatty(fileno(stream)) == 1),
      began_(now()) {}

void StudyProgress::started(const TrialRecord& trial) {
  if (terminal_) return;  // the bottom line says how many run
  fmt::memory_buffer line;
  fmt::format_to(std::back_inserter(line), "trial {} started: {}\n", trial.number,
                 settings_text(trial.settings));
  std::fwrite(line.data(), 1, line.size(), stream_);
}

void StudyProgress::ended(const TrialRecord& trial, double seconds) {
  clear();
  ++ended_;
  std::string figure;
  for (const std::string& name : {metric_, std::string("validation_loss"), std::string("loss")})
    if (const Cell cell = cell_of(trial, name); std::holds_alternative<double>(cell)) {
      figure = fmt::format(", {} {}", name, number_text(std::get<double>(cell)));
      break;
    }
  const std::string line = fmt::format(
      "trial {} {} in {}{}: {}\n{}", trial.number, name_of(trial.state), format_duration(seconds),
      figure, settings_text(trial.settings), trial.error.empty() ? "" : "  " + trial.error + "\n");
  std::fwrite(line.data(), 1, line.size(), stream_);
  std::fflush(stream_);
}

double StudyProgress::seconds_left(int running, std::optional<int> left) const {
  if (ended_ == 0 || !left) return -1;
  return (now() - began_) / ended_ * (*left + 0.5 * running);
}

void StudyProgress::update(int running, std::optional<int> left) {
  if (!terminal_ || now() < last_draw_ + 0.5) return;
  clear();
  last_draw_ = now();
  const std::string line =
      fmt::format("{} ended, {} running, {} left, ETA {}", ended_, running,
                  left ? std::to_string(*left) : "?", format_duration(seconds_left(running, left)));
  std::fwrite(line.data(), 1, line.size(), stream_);
  std::fflush(stream_);
  drawn_ = true;
}

void StudyProgress::clear() {
  if (!drawn_) return;
  std::fputs("\r\x1b[K", stream_);
  drawn_ = false;
}

}  // namespace concertina
