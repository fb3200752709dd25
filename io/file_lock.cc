#include "io/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include <optional>
#include <sstream>
#include <utility>

#include "core/error.h"
#include "core/host_name.h"
#include "core/log.h"
#include "io/strict_json.h"

namespace concertina {
namespace {

enum class Answer { taken, held, refused };

Answer by_flock(int descriptor) {
  int result = 0;
  do {
    result = ::flock(descriptor, LOCK_EX | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  if (result == 0) return Answer::taken;
  return errno == EWOULDBLOCK ? Answer::held : Answer::refused;
}

Answer by_fcntl(int descriptor) {
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  if (::fcntl(descriptor, F_OFD_SETLK, &whole) == 0) return Answer::taken;
  return errno == EAGAIN || errno == EACCES ? Answer::held : Answer::refused;
}

std::string first_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

/// Returns the start time of process `pid` on this host; empty if it does not exist or is a zombie.
std::string start_of(long pid) {
  const std::string stat = first_line(fmt::format("/proc/{}/stat", pid));
  // The name, in parentheses, may contain anything; the 20th field after it is the start time.
  const std::size_t end = stat.rfind(')');
  if (end == std::string::npos) return {};
  std::istringstream fields(stat.substr(end + 1));
  std::string field;
  if (fields >> field; field == "Z" || field == "X") return {};
  for (int i = 1; i < 20; ++i) fields >> field;
  return field;
}

nlohmann::json to_json(const ProcessId& process) {
  return {{"host", process.host},
          {"boot", process.boot},
          {"pid", process.pid},
          {"started", process.started}};
}

/// Returns nothing if `text` is incomplete or was written by another program.
std::optional<ProcessId> parse_process(const std::string& text) {
  const nlohmann::json json = parse_json(text);
  if (!json.is_object()) return std::nullopt;
  try {
    return ProcessId{json.at("host"), json.at("boot"), json.at("pid"), json.at("started")};
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

std::string read_or_empty(const std::string& path) {
  try {
    return read_file(path, 4096, FilePlace::shared);
  } catch (const Error&) {
    return {};
  }
}

/// Whether `process` is known to have exited, as far as this host can tell.
bool has_ended(const ProcessId& process) {
  const ProcessId me = this_process();
  if (process.host != me.host) return false;
  return process.boot != me.boot || start_of(process.pid) != process.started;
}

[[noreturn]] void throw_held(const std::string& what, const std::string& path,
                             const std::string& holder, const std::string& fix) {
  const auto process = parse_process(holder);
  const std::string who =
      process ? fmt::format("process {} on {}", process->pid, process->host) : "another process";
  throw_input(fmt::format("{} is using {}", who, what), path, fix);
}

/// Removes the file `made` of an exited process. Returns false if another process has already
/// replaced that file.
bool take_away(const std::string& made, const std::string& content) {
  const ProcessId me = this_process();
  const std::string aside = fmt::format("{}.{}.{}.tmp", made, me.host, me.pid);
  if (std::rename(made.c_str(), aside.c_str()) != 0) return errno == ENOENT;
  const bool same = read_or_empty(aside) == content;
  // Restores another process's new file, unless there is yet another one.
  const bool back = same || ::link(aside.c_str(), made.c_str()) == 0 || errno == EEXIST;
  if (!back) throw_io("link", made);
  ::unlink(aside.c_str());
  return same;
}

/// Fallback for file systems without locks: only one process can create `made`.
void make_exclusively(const std::string& made, const std::string& what, const std::string& fix) {
  for (int attempt = 0; attempt < 3; ++attempt) {
    try {
      File file(made, File::Mode::create, 0644);
      file.write(to_json(this_process()).dump() + '\n');
      file.sync();
      return;
    } catch (const Error& error) {
      if (error.system_error() != EEXIST) throw;
    }
    const std::string content = read_or_empty(made);
    const auto holder = parse_process(content);
    if (!holder || !has_ended(*holder))
      throw_held(what, made, content,
                 fmt::format("{}; if that process has exited, remove {}", fix, made));
    log::warn("{}: taking over the lock of process {}, which has exited", made, holder->pid);
    take_away(made, content);
  }
  throw_held(what, made, read_or_empty(made), fix);
}

}  // namespace

ProcessId this_process() {
  return {host_name(), first_line("/proc/sys/kernel/random/boot_id"), ::getpid(),
          start_of(::getpid())};
}

FileLock::FileLock(const std::string& path, const std::string& what, const std::string& fix)
    : file_(path, File::Mode::open_or_create) {
  Answer answer = by_flock(file_.descriptor());
  if (answer == Answer::refused) answer = by_fcntl(file_.descriptor());
  if (answer == Answer::held) throw_held(what, path, read_or_empty(path), fix);
  if (answer == Answer::refused) {
    log::debug("{}: this file system does not support locks ({})", path, std::strerror(errno));
    make_exclusively(path + ".held", what, fix);
    made_ = path + ".held";
    return;
  }
  // Lets later processes name the holder in their error messages; the lock works without it.
  const std::string me = to_json(this_process()).dump() + '\n';
  try {
    file_.truncate(0);
    file_.write_at(0, std::as_bytes(std::span(me)));
  } catch (const Error& error) {
    log::debug("{}", error.what());
  }
}

FileLock::~FileLock() {
  if (!made_.empty() && ::unlink(made_.c_str()) != 0 && errno != ENOENT)
    log::error("unlink failed: {}: {}", made_, std::strerror(errno));
}

FileLock::FileLock(FileLock&& other) noexcept
    : file_(std::move(other.file_)), made_(std::exchange(other.made_, {})) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(made_, other.made_);
  return *this;
}

}  // namespace concertina
