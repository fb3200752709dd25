#include "experiments/machine/output.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "core/log.h"
#include "io/file.h"
#include "parallel/comm/mpi_environment.h"

namespace concertina {

void print_once(const std::string& text) {
  if (launcher_rank() != 0) return;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) throw lost_output();
  flush_output();
}

void flush_output() {
  if (std::ferror(stdout) != 0 || std::fflush(stdout) != 0) throw lost_output();
}

Error lost_output() {
  return {Exit::failure, "cannot write the output", "stdout",
          "redirect the output to a place with free space"};
}

int terminal_columns(std::FILE* stream) {
  constexpr int kDefault = 80;
  winsize size{};
  return ioctl(fileno(stream), TIOCGWINSZ, &size) != 0 || size.ws_col == 0 ? kDefault : size.ws_col;
}

StatusLine::StatusLine(std::FILE* stream)
    : stream_(stream), terminal_(isatty(fileno(stream)) == 1) {}

void StatusLine::put(const std::string& text) {
  std::fputs(text.c_str(), stream_);
  std::fflush(stream_);
  std::clearerr(stream_);
}

void StatusLine::draw(const std::string& text) {
  if (!terminal_) return say(text);
  put("\r\x1b[K" + text.substr(0, static_cast<std::size_t>(columns())));
  drawn_ = true;
}

void StatusLine::clear() {
  if (drawn_) put("\r\x1b[K");
  drawn_ = false;
}

void StatusLine::say(const std::string& text) {
  clear();
  put(text + '\n');
}

std::string wrapped(const std::string& text, int columns) {
  const auto most = static_cast<std::size_t>(std::max(columns, 20));
  const std::size_t description = std::min<std::size_t>(30, most / 3);
  std::string result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line); result += line + "\n") {
    const std::size_t indent = line.starts_with("  ") ? description : 0;
    while (line.size() > most) {
      std::size_t end = line.rfind(' ', most);
      if (end == std::string::npos || end <= indent) end = line.find(' ', most);
      if (end == std::string::npos) break;
      result += line.substr(0, line.find_last_not_of(' ', end) + 1) + "\n";
      line = std::string(indent, ' ') + line.substr(end + 1);
    }
  }
  return result;
}

std::string json_line(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

void append_line(const std::string& path, const nlohmann::ordered_json& json) {
  try {
    File(path, File::Mode::append).append_whole(json_line(json));
  } catch (const Error& error) {
    log::warn("cannot write a record: {}: {}", error.message(), error.where());
  }
}

}  // namespace concertina
