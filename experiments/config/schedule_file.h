// Reads a user's own schedule, which `parallel.schedule` names; parallel/generate/fit_schedule.h
// fits it to a run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "parallel/generate/fit_schedule.h"

namespace concertina {

/// `text` names a file: it has a '/', ends in ".csv", or is no schedule of the registry and a file
/// of that name exists.
bool is_schedule_file(const std::string& text);

/// A longer file is refused: it would have more actions than a plan may have (kMostActions).
inline constexpr std::uint64_t kMostScheduleBytes = std::uint64_t{256} << 20;

/// Throws Error{bad_input} if the file cannot be read or is no schedule. It is not checked yet.
ScheduleFile read_schedule_file(const std::string& path);
/// The same of a `parallel.schedule` that names a file; nothing for a schedule of the registry.
std::optional<ScheduleFile> own_schedule(const std::string& schedule);

}  // namespace concertina
