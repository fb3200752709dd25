// Readers of the files that a run writes to its directory. These may belong to another user, be
// written during reading, or be something else with the same name: what cannot be read is skipped
// with one warning. Invariant: reading never blocks and uses at most kMostLineBytes or
// kMostTextBytes of memory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "io/file.h"
#include "io/strict_json.h"

namespace concertina {

/// Maximum size of a log in bytes.
inline constexpr std::uint64_t kMostLogBytes = std::uint64_t{4} << 30;

/// Receives a line without its line ending; `whole`: whether the line had one.
using SeeLine = std::function<void(std::string_view line, bool whole)>;

/// Calls `see` for the lines of `path` from byte `from` on, and sets `from` to the end of the last
/// complete line. Throws like open_regular(), and for files above 4 GiB or lines above 64 MiB.
void each_line(const std::string& path, std::uint64_t& from, const SeeLine& see);
/// Like each_line(), but skips a file that is absent or cannot be read.
void each_log_line(const std::string& path, std::uint64_t& from, const SeeLine& see);
/// Like each_log_line(), but only for lines that are JSON objects.
void each_log_object(const std::string& path, std::uint64_t& from,
                     const std::function<void(nlohmann::json object, bool whole)>& see);

/// Returns the text of a file of at most 64 MiB; empty if the file is absent or skipped.
std::string read_log_text(const std::string& path);
/// Returns the value of a JSON file; null if the file is absent or skipped.
template <class Json = nlohmann::json>
Json read_log_json(const std::string& path) {
  const std::string text = read_log_text(path);
  Json json = parse_json<Json>(text);
  if (!json.is_discarded()) return json;
  if (!text.empty()) warn_once(path, "skipped: invalid JSON, or nested more than 100 levels deep");
  return nullptr;
}

}  // namespace concertina
