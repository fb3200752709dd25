#include "experiments/config/schedule_file.h"

#include <algorithm>

#include "core/error.h"
#include "io/file.h"
#include "parallel/generate/schedule_registry.h"
#include "parallel/plan/infer_layout.h"
#include "parallel/plan/schedule.h"

namespace concertina {

bool is_schedule_file(const std::string& text) {
  const std::vector<std::string_view> names = names_of(schedules());
  const bool is_name = std::ranges::find(names, text) != names.end();
  return text.find('/') != std::string::npos || text.ends_with(".csv") ||
         (!is_name && !text.empty() && is_file(text));
}

ScheduleFile read_schedule_file(const std::string& path) {
  constexpr const char* kScheduleFileHint =
      "a text file with one line of actions per rank, as `schedule show` prints it";
  if (!exists_at(path)) throw_input("schedule file not found", path, kScheduleFileHint);
  const std::string text = read_input_file(path, kMostScheduleBytes, kScheduleFileHint);
  if (text.empty()) throw_input("the schedule file is empty", path, kScheduleFileHint);
  ScheduleFile result{path, parse_plan(text, path), {}};
  result.layout = infer_layout(result.plan, path);
  return result;
}

std::optional<ScheduleFile> own_schedule(const std::string& schedule) {
  return is_schedule_file(schedule) ? std::optional(read_schedule_file(schedule)) : std::nullopt;
}

}  // namespace concertina
