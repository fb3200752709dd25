#include "core/process_state.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

namespace concertina {
namespace {

/// Returns the contents of a stat file after the program's name, which may contain any characters.
std::string stat_of(const std::string& folder) {
  std::ifstream file(folder + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t end = text.rfind(')');
  return end == std::string::npos ? "" : text.substr(end + 1);
}

}  // namespace

bool is_stopped(pid_t process) {
  return stat_of(fmt::format("/proc/{}", process)).starts_with(" T");
}

ThreadActivity activity_of(pid_t thread) {
  const std::string folder = fmt::format("/proc/self/task/{}", thread);
  ThreadActivity activity;
  // state, 8 fields, majflt, cmajflt, utime, stime: see proc(5)
  std::istringstream stat(stat_of(folder));
  std::string skipped;
  std::uint64_t children = 0, user = 0, system = 0;
  if (stat >> activity.state) {
    for (int i = 0; i < 8; ++i) stat >> skipped;
    stat >> activity.faults >> children >> user >> system;
  }
  activity.cpu_seconds =
      static_cast<double>(user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  std::ifstream scheduled(folder + "/schedstat");
  double ran = 0, queued = 0;  // ns
  if (scheduled >> ran >> queued) {
    activity.cpu_seconds = 1e-9 * ran;
    activity.queued_seconds = 1e-9 * queued;
  }
  std::ifstream io(folder + "/io");
  std::string key;
  for (std::uint64_t value = 0; io >> key >> value;)
    if (key == "rchar:" || key == "wchar:") activity.io_bytes += value;
  return activity;
}

}  // namespace concertina
