// The files that a run writes into its directory, which may be another user's, be written
// meanwhile, or be something else under the same name: what cannot be read is skipped with one
// warning. Invariant: reading never waits, and takes no more memory than kMostLineBytes or
// kMostTextBytes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "io/file.h"
#include "io/strict_json.h"

namespace concertina {

/// Bytes of a log that are read.
inline constexpr std::uint64_t kMostLogBytes = std::uint64_t{4} << 30;

/// A line without its end, and whether that is there.
using SeeLine = std::function<void(std::string_view line, bool whole)>;

/// Calls `see` with the lines of `path` from byte `from` on, which becomes the end of the last
/// whole line. Input errors: as of open_regular(); more than 4 GiB, or 64 MiB in a line.
void each_line(const std::string& path, std::uint64_t& from, const SeeLine& see);
/// The same; a file that is absent has no lines, and one that cannot be read is skipped.
void each_log_line(const std::string& path, std::uint64_t& from, const SeeLine& see);
/// The same for the lines that are JSON objects.
void each_log_object(const std::string& path, std::uint64_t& from,
                     const std::function<void(nlohmann::json object, bool whole)>& see);

/// The text of a file of at most 64 MiB; empty if it is absent or skipped.
std::string read_log_text(const std::string& path);
/// The value of a JSON file; null if that is absent or skipped.
template <class Json = nlohmann::json>
Json read_log_json(const std::string& path) {
  const std::string text = read_log_text(path);
  Json json = parse_json<Json>(text);
  if (!json.is_discarded()) return json;
  if (!text.empty()) warn_once(path, "skipped: this is no JSON, or nested deeper than 100");
  return nullptr;
}

}  // namespace concertina
