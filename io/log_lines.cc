#include "io/log_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "core/error.h"

namespace concertina {
namespace {

constexpr std::uint64_t kMostTextBytes = 64 << 20, kMostLineBytes = 64 << 20;

/// Ignores an absent file, and skips one that cannot be read.
void read_or_skip(const std::string& path, const std::function<void()>& read) try {
  read();
} catch (const Error& error) {
  if (error.system_error() != ENOENT && error.system_error() != ENOTDIR)
    warn_once(path, "skipped: " + error.message());
}

[[noreturn]] void throw_too_long(const std::string& path, const char* what, std::uint64_t most) {
  throw_input(fmt::format("{} has more than the {} bytes allowed here", what, most), path,
              "use the unmodified file from the run");
}

}  // namespace

void each_line(const std::string& path, std::uint64_t& from, const SeeLine& see) {
  const File file = open_regular(path, FilePlace::logged);
  const std::uint64_t size = file.size();
  if (size > kMostLogBytes) throw_too_long(path, "the file", kMostLogBytes);
  std::string chunk(64 << 10, '\0'), line;
  while (from + line.size() < size) {
    const std::uint64_t at = from + line.size();
    const auto room = std::as_writable_bytes(std::span(chunk));
    const std::size_t n = file.read_some(at, room.first(std::min(room.size(), size - at)));
    if (n == 0) break;  // truncated while being read
    std::string_view rest(chunk.data(), n);
    for (std::size_t end; (end = rest.find('\n')) != std::string_view::npos;
         rest.remove_prefix(end + 1)) {
      line.append(rest.substr(0, end));
      from += line.size() + 1;
      see(line, true);
      line.clear();
    }
    if (line.size() + rest.size() > kMostLineBytes) throw_too_long(path, "a line", kMostLineBytes);
    line.append(rest);
  }
  if (!line.empty()) see(line, false);
}

void each_log_line(const std::string& path, std::uint64_t& from, const SeeLine& see) {
  read_or_skip(path, [&] { each_line(path, from, see); });
}

void each_log_object(const std::string& path, std::uint64_t& from,
                     const std::function<void(nlohmann::json object, bool whole)>& see) {
  each_log_line(path, from, [&](std::string_view line, bool whole) {
    nlohmann::json json = parse_json(line);
    if (json.is_object())
      see(std::move(json), whole);
    else if (nested_deeper(line, kDeepestJson))
      warn_once(path, "skipped a line nested more than 100 levels deep");
  });
}

std::string read_log_text(const std::string& path) {
  std::string text;
  read_or_skip(path, [&] { text = read_file(path, kMostTextBytes, FilePlace::logged); });
  return text;
}

}  // namespace concertina
