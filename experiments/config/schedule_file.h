// Reads the user-defined schedule file that `parallel.schedule` names.
// parallel/generate/fit_schedule.h fits it to a run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "parallel/generate/fit_schedule.h"

namespace concertina {

/// Whether `text` names a file: it contains a '/', ends in ".csv", or is not a registered schedule
/// but the name of an existing file.
bool is_schedule_file(const std::string& text);

/// Maximum file size; a larger file would have more actions than a plan may have (kMostActions).
inline constexpr std::uint64_t kMostScheduleBytes = std::uint64_t{256} << 20;

/// Throws Error{bad_input} if the file cannot be read or parsed. Does not validate the schedule.
ScheduleFile read_schedule_file(const std::string& path);
/// Reads the file if `parallel.schedule` names one; returns nothing for a registered schedule.
std::optional<ScheduleFile> own_schedule(const std::string& schedule);

}  // namespace concertina
