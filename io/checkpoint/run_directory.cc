#include "io/checkpoint/run_directory.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include <optional>

#include "core/error.h"
#include "io/checkpoint/checkpoint_commit.h"
#include "io/file.h"
#include "io/run_files.h"
#include "io/sha256.h"
#include "io/strict_json.h"

namespace concertina {
namespace {

// Ownership of checkpoint directories. Invariant: a directory with commits of one run is never
// written to by another run, even with the same config, and a run keeps its commits when its
// directory is moved.
/// Identifies a run regardless of its location: `id` is created at its first start.
struct RunIdentity {
  std::string id;         // 32 hex digits
  std::string name;       // run.name, for messages
  std::string directory;  // current absolute path
};

namespace stdfs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kRunId = "/run.id";
constexpr const char* kRunKey = "/run.key";

template <std::size_t kBytes>
std::string random_hex() {
  std::array<unsigned char, kBytes> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw_io("getrandom", "the id of a new run");
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

std::optional<RunIdentity> read_owner(const std::string& path) {
  if (!exists_at(path)) return std::nullopt;
  const Json json = parse_json<Json>(read_file(path, 1 << 16));
  const auto text = [&](const char* key) {
    return json.is_object() && json.contains(key) && json[key].is_string()
               ? json[key].get<std::string>()
               : std::string();
  };
  if (!is_hex(text("id"), 32))
    throw_input("this file does not name the owner of the checkpoints next to it", path,
                "remove it if they belong to this run");
  return RunIdentity{text("id"), text("name"), text("directory")};
}

/// Whether the same run exists in two places because it was copied.
bool is_copy(const RunIdentity& owner, const RunIdentity& run) {
  std::error_code error;
  return !stdfs::equivalent(owner.directory, run.directory, error) && !error &&
         read_run_id(owner.directory) == run.id;
}

/// Returns the identity of the run in `directory`, which must exist; creates run.id and run.key if
/// absent.
RunIdentity run_identity(const std::string& directory) {
  stdfs::path absolute = stdfs::absolute(directory).lexically_normal();
  if (!absolute.has_filename()) absolute = absolute.parent_path();
  std::string id = read_run_id(directory);
  if (id.empty()) {
    id = random_hex<16>();
    atomic_replace(directory + kRunId, id + '\n');
  }
  if (read_run_key(directory).empty())
    atomic_replace(directory + kRunKey, random_hex<32>() + '\n', 0600);
  return {id, absolute.filename().string(), absolute.string()};
}

/// Records `run` as the owner of `checkpoints`, which this process has locked. Throws
/// Error{bad_input} if it contains checkpoints of another run or of another copy of this one. Takes
/// over a directory without checkpoints or without an owner (as in older versions).
void claim_checkpoints(const std::string& checkpoints, const RunIdentity& run) {
  const std::string path = checkpoints + "/owner.json";
  const std::optional<RunIdentity> owner = read_owner(path);
  if (owner && newest_commit(checkpoints)) {
    const std::string other = fmt::format("'{}' ({})", owner->name, owner->directory);
    const auto refuse = [&](const std::string& what, const char* where_so) {
      throw_input(what, checkpoints,
                  fmt::format("use a separate checkpoint.dir for each run; if {}, remove {} and "
                              "start again",
                              where_so, path));
    };
    if (owner->id != run.id)
      refuse("these checkpoints belong to another run, " + other, "they belong to this run");
    if (is_copy(*owner, run))
      refuse(fmt::format("these checkpoints belong to {}, of which this run is a copy", other),
             "only this run continues from them");
  }
  if (owner && owner->id == run.id && owner->directory == run.directory) return;
  const Json json = {{"id", run.id}, {"name", run.name}, {"directory", run.directory}};
  atomic_replace(path, json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n');
}

namespace stdfs = std::filesystem;

constexpr const char* kLock = "run.lock";
constexpr const char* kCheckpointLock = "checkpoints.lock";  // may be in a run's own directory

std::string checked_path(const std::string& root, const std::string& name) {
  const bool plain =
      std::all_of(name.begin(), name.end(), [](unsigned char c) { return c > ' ' && c != '/'; });
  if (name.empty() || name == "." || name == ".." || !plain)
    throw_input(fmt::format("'{}' cannot be the name of a run", name), "run.name",
                "use a plain file name without spaces, such as bible-small");
  return (root.empty() ? "." : root) + "/" + name;
}

/// Whether `concertina run` may create a file with this name before a launch.
bool of_supervisor(const std::string& name) {
  return name == kSupervisorLock || name == kRestartsFile || name == kFaultsFile;
}

/// Requires that a directory without config.toml was left by an interrupted first start: it has the
/// lock file, or contains only temporary files, files of the supervisor and empty directories.
void require_own(const std::string& path) {
  std::error_code error;
  if (stdfs::is_regular_file(path + "/" + kLock, error)) return;
  for (stdfs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    const bool left = it->path().extension() == ".tmp" ||
                      of_supervisor(it->path().filename().string()) ||
                      (it->is_directory(error) && stdfs::is_empty(it->path(), error));
    if (!left)
      throw_input(fmt::format("not a run directory: it contains '{}' but no config.toml",
                              it->path().filename().string()),
                  path, "use another run.name or run.dir, or an empty directory");
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

}  // namespace

std::string read_run_id(const std::string& directory) {
  const std::string path = directory + kRunId;
  if (!is_file(path)) return {};
  std::string text = read_file(path, 4096);
  text.erase(std::find(text.begin(), text.end(), '\n'), text.end());
  return is_hex(text, 32) ? text : std::string();
}

std::string read_run_key(const std::string& directory) {
  const std::string path = directory + kRunKey;
  try {
    std::string text = read_file(path, 4096, FilePlace::secret);
    text.erase(std::find(text.begin(), text.end(), '\n'), text.end());
    if (is_sha256_hex(text)) return text;
    warn_once(path, "not a valid key; ignoring snapshots made with it");
  } catch (const Error& error) {
    if (error.system_error() != ENOENT)
      warn_once(path, "ignoring snapshots made with this key: " + error.message());
  }
  return {};
}

bool RunDirectory::exists(const std::string& root, const std::string& name) {
  return is_file(run_file(checked_path(root, name), kConfigFile));
}

void RunDirectory::require_usable(const std::string& root, const std::string& name) {
  stdfs::path path = stdfs::absolute(checked_path(root, name));
  if (exists_at(path) && !exists(root, name)) require_own(path.string());
  while (!exists_at(path) && path.has_relative_path()) path = path.parent_path();
  const bool directory = is_folder(path);
  if (directory && ::access(path.c_str(), W_OK | X_OK) == 0) return;
  const int code = directory ? errno : ENOTDIR;
  throw Error(Exit::bad_input, fmt::format("cannot write here: {}", std::strerror(code)),
              path.string(), "use another run.dir", code);
}

RunDirectory::RunDirectory(Place place)
    : path_(std::move(place.path)),
      checkpoints_(place.checkpoints.empty() ? run_file(path_, kCheckpointFolder)
                                             : std::move(place.checkpoints)) {}

RunDirectory::~RunDirectory() {
  if (!made_ || existing_) return;
  std::error_code ignored;  // for example if others have put files into a directory
  for (const char* name : {"checkpoints/owner.json", "checkpoints/checkpoints.lock", "checkpoints",
                           "run.id", "run.key", kLock, ""})
    stdfs::remove(stdfs::path(path_) / name, ignored);
}

RunDirectory::RunDirectory(const std::string& root, const std::string& name,
                           const std::string& checkpoints)
    : RunDirectory(Place{checked_path(root, name), checkpoints}) {
  const bool is_new = !exists_at(path_);
  make_directories(path_);
  existing_ = exists(root, name);
  if (!existing_) require_own(path_);
  lock_ = FileLock(path_ + "/" + kLock, "this run directory",
                   "wait until it has exited, or choose another run.name");
  made_ = is_new;
  require_writable(path_);
  make_directories(checkpoints_);
  require_writable(checkpoints_);
  checkpoint_lock_ = FileLock(checkpoints_ + "/" + kCheckpointLock, "this checkpoint.dir",
                              "wait until it has exited, or choose another checkpoint.dir");
  recover_commits(checkpoints_);
  claim_checkpoints(checkpoints_, run_identity(path_));
}

void RunDirectory::write_config(const std::string& toml) {
  atomic_replace(run_file(path_, kConfigFile), toml);
  existing_ = true;
}

}  // namespace concertina
