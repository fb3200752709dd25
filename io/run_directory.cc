#include "io/run_directory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>

#include "core/error.h"
#include "io/checkpoint_commit.h"
#include "io/checkpoint_owner.h"
#include "io/file.h"
#include "io/run_files.h"

namespace concertina {
namespace {

namespace stdfs = std::filesystem;

constexpr const char* kLock = "run.lock";
constexpr const char* kCheckpointLock = "checkpoints.lock";  // may lie in a run's own directory

std::string checked_path(const std::string& root, const std::string& name) {
  const bool plain =
      std::all_of(name.begin(), name.end(), [](unsigned char c) { return c > ' ' && c != '/'; });
  if (name.empty() || name == "." || name == ".." || !plain)
    throw_input(fmt::format("'{}' cannot be the name of a run", name), "run.name",
                "a plain file name without spaces, such as bible-small");
  return (root.empty() ? "." : root) + "/" + name;
}

/// A directory without config.toml may hold what an interrupted first start left: its lock file,
/// which it makes before anything else, and then whatever; before that temporary files.
void require_own(const std::string& path) {
  std::error_code error;
  if (stdfs::is_regular_file(path + "/" + kLock, error)) return;
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

}  // namespace

bool RunDirectory::exists(const std::string& root, const std::string& name) {
  std::error_code error;
  return stdfs::is_regular_file(run_file(checked_path(root, name), kConfigFile), error);
}

void RunDirectory::require_usable(const std::string& root, const std::string& name) {
  stdfs::path path = stdfs::absolute(checked_path(root, name));
  std::error_code error;
  if (stdfs::exists(path, error) && !exists(root, name)) require_own(path.string());
  while (!stdfs::exists(path, error) && path.has_relative_path()) path = path.parent_path();
  const bool directory = stdfs::is_directory(path, error);
  if (directory && ::access(path.c_str(), W_OK | X_OK) == 0) return;
  const int code = directory ? errno : ENOTDIR;
  throw Error(Exit::bad_input, fmt::format("nothing can be written here: {}", std::strerror(code)),
              path.string(), "another run.dir", code);
}

RunDirectory::RunDirectory(const std::string& root, const std::string& name,
                           const std::string& checkpoints)
    : path_(checked_path(root, name)),
      checkpoints_(checkpoints.empty() ? run_file(path_, kCheckpointFolder) : checkpoints) {
  refuse_unwritable([&] { make_directories(path_); });
  existing_ = exists(root, name);
  if (!existing_) require_own(path_);
  refuse_unwritable([&] {
    lock_ = FileLock(path_ + "/" + kLock, "this run directory",
                     "wait until it has ended, or choose another run.name");
    require_writable(path_);
    make_directories(checkpoints_);
    require_writable(checkpoints_);
    checkpoint_lock_ = FileLock(checkpoints_ + "/" + kCheckpointLock, "this checkpoint.dir",
                                "wait until it has ended, or choose another checkpoint.dir");
  });
  recover_commits(checkpoints_);
  claim_checkpoints(checkpoints_, run_identity(path_));
}

void RunDirectory::write_config(const std::string& toml) {
  atomic_replace(run_file(path_, kConfigFile), toml);
  existing_ = true;
}

}  // namespace concertina
