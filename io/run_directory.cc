#include "io/run_directory.h"

#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>

#include "core/error.h"
#include "core/log.h"

namespace concertina {
namespace {

namespace stdfs = std::filesystem;

std::string checked_path(const std::string& root, const std::string& name) {
  const bool plain =
      std::all_of(name.begin(), name.end(), [](unsigned char c) { return c > ' ' && c != '/'; });
  if (name.empty() || name == "." || name == ".." || !plain)
    throw_input(fmt::format("'{}' cannot be the name of a run", name), "run.name",
                "a plain file name without spaces, such as bible-small");
  return (root.empty() ? "." : root) + "/" + name;
}

/// A directory without config.toml may hold what an interrupted start left, and nothing else.
void require_empty(const std::string& path) {
  std::error_code error;
  for (stdfs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    const bool left = it->path().extension() == ".tmp" ||
                      (it->is_directory(error) && stdfs::is_empty(it->path(), error));
    if (!left)
      throw_input(fmt::format("this directory is no run: it has '{}' and no config.toml",
                              it->path().filename().string()),
                  path, "another run.name or run.dir, or an empty directory");
  }
  if (error) {
    errno = error.value();
    throw_io("list", path);
  }
}

void require_writable(const std::string& path) {
  const std::string probe = path + "/probe.tmp";
  ::unlink(probe.c_str());
  File(probe, File::Mode::create).close();
  ::unlink(probe.c_str());
}

/// A path at which this user cannot make a run is a wrong path; a full or broken disk is not.
void refuse_unwritable(const std::function<void()>& prepare) {
  try {
    prepare();
  } catch (const Error& error) {
    const int code = error.system_error();
    if (code == 0 || code == ENOSPC || code == EDQUOT || code == EIO) throw;
    throw Error(Exit::bad_input, error.message(), error.where(), error.fix());
  }
}

File lock(const std::string& path) {
  File file(path, File::Mode::read);
  if (::flock(file.descriptor(), LOCK_EX | LOCK_NB) == 0) return file;
  if (errno == EWOULDBLOCK)
    throw_input("another process is using this run directory", path,
                "wait until it has ended, or choose another run.name");
  log::warn("{}: cannot be locked here: two runs in it would not notice each other", path);
  return file;
}

}  // namespace

bool RunDirectory::exists(const std::string& root, const std::string& name) {
  std::error_code error;
  return stdfs::is_regular_file(checked_path(root, name) + "/config.toml", error);
}

RunDirectory::RunDirectory(const std::string& root, const std::string& name,
                           const std::string& checkpoints)
    : path_(checked_path(root, name)),
      checkpoints_(checkpoints.empty() ? path_ + "/checkpoints" : checkpoints) {
  refuse_unwritable([&] { make_directories(path_); });
  existing_ = exists(root, name);
  if (!existing_) require_empty(path_);
  refuse_unwritable([&] {
    lock_ = lock(path_);
    require_writable(path_);
    make_directories(checkpoints_);
    require_writable(checkpoints_);
  });
}

void RunDirectory::write_config(const std::string& toml) {
  atomic_replace(config(), toml);
  existing_ = true;
}

std::string RunDirectory::read_config() const {
  return read_file(config(), 1 << 20);
}

}  // namespace concertina
