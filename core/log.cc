#include "core/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>

namespace concertina::log {

// https://no-color.org: set, and not empty.
static spdlog::color_mode color_mode() {
  const char* no_color = std::getenv("NO_COLOR");
  return no_color != nullptr && *no_color != '\0' ? spdlog::color_mode::never
                                                  : spdlog::color_mode::automatic;
}

void init(int rank, int size, const std::string& level, bool all_ranks) {
  auto logger = std::make_shared<spdlog::logger>(
      "concertina", std::make_shared<spdlog::sinks::stderr_color_sink_mt>(color_mode()));
  const std::string prefix = size > 1 ? fmt::format("[rank {}] ", rank) : std::string();
  logger->set_pattern("%H:%M:%S %^%l%$ " + prefix + "%v");
  auto wanted = spdlog::level::from_str(level);
  if (rank != 0 && !all_ranks && wanted < spdlog::level::warn) wanted = spdlog::level::warn;
  logger->set_level(wanted);
  spdlog::set_default_logger(std::move(logger));
}

void flush() {
  spdlog::default_logger_raw()->flush();
}

static_assert(static_cast<int>(Level::error) + SPDLOG_LEVEL_DEBUG == SPDLOG_LEVEL_ERROR);

void write(Level level, fmt::string_view format, fmt::format_args arguments) noexcept {
  try {
    spdlog::logger& logger = *spdlog::default_logger_raw();
    const auto as =
        static_cast<spdlog::level::level_enum>(static_cast<int>(level) + SPDLOG_LEVEL_DEBUG);
    if (logger.should_log(as)) logger.log(as, fmt::vformat(format, arguments));
  } catch (const std::exception&) {  // out of memory: drop the line and continue
  }
}

}  // namespace concertina::log
