// Levelled log lines to stderr, prefixed with the rank; stdout stays free for results.
#pragma once

#include <spdlog/spdlog.h>

#include <string>

namespace concertina::log {

/// Sets prefix and level. Ranks other than 0 print warnings and errors only, unless `all_ranks`.
void init(int rank, int size, const std::string& level = "info", bool all_ranks = false);

using spdlog::debug;
using spdlog::error;
using spdlog::info;
using spdlog::warn;

}  // namespace concertina::log
