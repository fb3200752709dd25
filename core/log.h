// Leveled log lines on stderr, prefixed with the rank; stdout is reserved for results.
// Only log.cc includes the underlying library (spdlog), which would add 2 s to compiling each file.
#pragma once

#include <fmt/core.h>

#include <string>

namespace concertina::log {

/// Sets the prefix and level. Ranks other than 0 print only warnings and errors unless `all_ranks`.
void init(int rank, int size, const std::string& level = "info", bool all_ranks = false);

/// Writes out buffered lines.
void flush();

enum class Level { debug, info, warn, error };

/// Writes one line, unless `level` is below the level set by init(). Never throws.
void write(Level level, fmt::string_view format, fmt::format_args arguments) noexcept;

template <class... T>
void debug(fmt::format_string<T...> format, T&&... arguments) {
  write(Level::debug, format, fmt::make_format_args(arguments...));
}
template <class... T>
void info(fmt::format_string<T...> format, T&&... arguments) {
  write(Level::info, format, fmt::make_format_args(arguments...));
}
template <class... T>
void warn(fmt::format_string<T...> format, T&&... arguments) {
  write(Level::warn, format, fmt::make_format_args(arguments...));
}
template <class... T>
void error(fmt::format_string<T...> format, T&&... arguments) {
  write(Level::error, format, fmt::make_format_args(arguments...));
}

}  // namespace concertina::log
