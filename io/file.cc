#include "io/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/log.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;

bool is_program(const std::string& path) {
  return is_file(path) && access(path.c_str(), X_OK) == 0;
}

std::string advice(int code) {
  constexpr std::pair<int, const char*> kAdvice[] = {
      {ENOSPC, "free space on this file system, or write to another one"},
      {EDQUOT, "free space within your quota, or write to another file system"},
      {EFBIG, "raise the file-size limit (`ulimit -f`)"},
      {EACCES, "choose a path with read and write permission, or change its permissions"},
      {EPERM, "choose a path with read and write permission, or change its permissions"},
      {EIO, "check the disk or its network connection (`dmesg`), or write to another file system"},
      {EROFS, "choose another file system; this one is mounted read-only"},
      {ENOENT, "check the path: a component of it does not exist"},
      {ENOTDIR, "check the path: a component of it is a file, not a directory"},
      {EISDIR, "move the directory at this path elsewhere; a file is expected"},
      {EMFILE, "raise the limit on open files (`ulimit -n`)"},
      {ENFILE, "raise the limit on open files (`ulimit -n`)"}};
  const auto* const found = std::ranges::find(kAdvice, code, &std::pair<int, const char*>::first);
  return found == std::end(kAdvice) ? "" : found->second;
}

std::string parent_of(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

/// The flags of open(2) for each File::Mode, in order: read, create, append, open_or_create.
constexpr int kOpenFlags[] = {O_RDONLY, O_RDWR | O_CREAT | O_EXCL, O_WRONLY | O_CREAT | O_APPEND,
                              O_RDWR | O_CREAT | O_NOFOLLOW};

// Maximum size of one transfer, so that `ssize_t` results are always well defined.
constexpr std::size_t kMaxTransfer = std::size_t{1} << 30;

/// Repeats a call while signals interrupt it: on network file systems, this can affect any call.
template <class Call>
auto retried(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

[[noreturn]] void refuse_file(const std::string& path, const std::string& why) {
  throw_input(fmt::format("cannot read this file: {}", why), path, "move it elsewhere");
}

File open_checked(const std::string& path, int flags, unsigned permissions) {
  // O_NONBLOCK: opening a named pipe must not block until its other end is opened.
  const int descriptor =
      retried([&] { return ::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK, permissions); });
  if (descriptor >= 0) return {descriptor, path};
  const int code = errno;
  const bool reads = (flags & O_ACCMODE) != O_WRONLY;
  if (code == ELOOP && (flags & O_NOFOLLOW) != 0) refuse_file(path, "it is a link");
  if (code == EISDIR && (flags & O_CREAT) == 0) refuse_file(path, "it is a directory");
  if (code == ENXIO && reads) refuse_file(path, "it is a socket or a device");
  errno = code;
  throw_io("open", path);
}

/// Whether `owner` owns the directory of `path` and this directory is not shared like /tmp.
bool is_of_owner_of_directory(const std::string& path, uid_t owner) {
  struct stat directory {};
  return ::stat(parent_of(path).c_str(), &directory) == 0 &&
         (directory.st_mode & (S_ISVTX | S_IWOTH)) == 0 && directory.st_uid == owner;
}

/// Throws as specified for open_regular().
void require_place(const File& file, FilePlace place) {
  const std::string& path = file.path();
  struct stat status {};
  if (::fstat(file.descriptor(), &status) != 0) throw_io("fstat", path);
  if (S_ISDIR(status.st_mode)) refuse_file(path, "it is a directory");
  if (!S_ISREG(status.st_mode)) refuse_file(path, "it is a pipe or a device, not a regular file");
  if (place == FilePlace::owned && !is_own(path))
    refuse_file(path, fmt::format("it belongs to another user (uid {})", status.st_uid));
  if (place != FilePlace::shared && place != FilePlace::secret) return;
  if (status.st_uid != ::geteuid() && !is_of_owner_of_directory(path, status.st_uid))
    refuse_file(path, fmt::format("it belongs to another user (uid {})", status.st_uid));
  const mode_t others = place == FilePlace::secret ? S_IRWXG | S_IRWXO : S_IWGRP | S_IWOTH;
  if ((status.st_mode & others) != 0)
    refuse_file(path, fmt::format("its mode {:o} lets others access it", status.st_mode & 07777));
}

}  // namespace

std::string find_program(const std::string& program) {
  if (program.find('/') != std::string::npos) return is_program(program) ? program : "";
  const char* variable = std::getenv("PATH");
  const std::string path = variable == nullptr ? "/usr/bin:/bin" : variable;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const std::string folder = path.substr(begin, end - begin);
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + program;
    if (is_program(candidate)) return candidate;
    begin = end + 1;
  }
  return {};
}

bool exists_at(const fs::path& path) {
  std::error_code unknown;
  return fs::exists(path, unknown);
}

bool is_file(const fs::path& path) {
  std::error_code unknown;
  return fs::is_regular_file(path, unknown);
}

bool is_folder(const fs::path& path) {
  std::error_code unknown;
  return fs::is_directory(path, unknown);
}

std::string why_not_writable(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  const fs::path parent = fs::path(path).parent_path();
  const std::string directory = parent.empty() ? "." : parent.string();
  if (fs::exists(status) && !fs::is_regular_file(status)) return "it is not a regular file";
  if (!is_folder(directory)) return "its directory does not exist";
  if (access(directory.c_str(), W_OK | X_OK) != 0) return "its directory is not writable";
  return {};
}

std::string read_input_file(const std::string& path, std::uint64_t limit, const std::string& fix) {
  try {
    return read_file(path, limit);
  } catch (const Error& failed) {
    if (failed.system_error() == 0) throw_input(failed.message(), path, fix);
    throw_input(fmt::format("cannot read this file: {}", std::strerror(failed.system_error())),
                path, fix);
  }
}

void warn_once(const std::string& path, const std::string& what) {
  static std::mutex mutex;
  static std::set<std::string> warned;
  const std::lock_guard lock(mutex);
  if (warned.insert(path).second) log::warn("{}: {}", path, what);
}

void throw_io(std::string_view call, const std::string& path) {
  const int code = errno;
  constexpr int kOfPath[] = {EACCES, EPERM, EROFS, ENOTDIR, ENAMETOOLONG, ELOOP, EISDIR};
  const bool of_path =
      std::ranges::find(kOfPath, code) != std::end(kOfPath) || (code == ENOENT && call == "mkdir");
  throw Error(of_path ? Exit::bad_input : Exit::failure,
              fmt::format("{} failed: {}", call, std::strerror(code)), path, advice(code), code);
}

namespace {

/// Throws Error{bad_input} for a Git LFS pointer, left by cloning a repository without git-lfs.
void refuse_pointer(const File& file) {
  constexpr std::string_view kPointer = "version https://git-lfs.github.com/spec/";
  constexpr std::int64_t kMost = 1024;
  std::string begin(kMost, '\0');
  const auto read = ::pread(file.descriptor(), begin.data(), begin.size(), 0);
  if (read > 0 && read < kMost && begin.starts_with(kPointer))
    throw_input("this is a Git LFS pointer, not the actual file", file.path(),
                "install git-lfs and run `git lfs pull` in the repository");
}

}  // namespace

File::File(std::string path, Mode mode, unsigned permissions) : path_(std::move(path)) {
  *this = open_checked(path_, kOpenFlags[static_cast<int>(mode)], permissions);
  if (mode == Mode::open_or_create) require_place(*this, FilePlace::logged);
  if (mode == Mode::read) refuse_pointer(*this);
}

File::~File() {
  if (descriptor_ >= 0 && ::close(descriptor_) != 0)
    log::error("close failed: {}: {}", path_, std::strerror(errno));
}

File::File(File&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}

File& File::operator=(File&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(path_, other.path_);
  return *this;
}

std::uint64_t File::size() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) throw_io("fstat", path_);
  return static_cast<std::uint64_t>(status.st_size);
}

void File::write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(descriptor_, text.data(), std::min(text.size(), kMaxTransfer));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_io("write", path_);
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

void File::append_whole(std::string_view text) {
  const std::uint64_t before = size();
  try {
    write(text);
  } catch (const Error&) {
    if (::ftruncate(descriptor_, static_cast<off_t>(before)) != 0)
      log::warn("{}: the last record is incomplete: {}", path_, std::strerror(errno));
    throw;
  }
}

void File::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(descriptor_, bytes.data(), std::min(bytes.size(), kMaxTransfer),
                               static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_io("pwrite", path_);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
}

void File::read_at(std::uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const std::size_t n = read_some(offset, bytes);
    if (n == 0)
      throw_input(fmt::format("the file ends at byte {}, {} bytes too early", offset, bytes.size()),
                  path_, "restore the file; it was truncated");
    bytes = bytes.subspan(n);
    offset += n;
  }
}

std::size_t File::read_some(std::uint64_t offset, std::span<std::byte> bytes) const {
  const ssize_t n = retried([&] {
    return ::pread(descriptor_, bytes.data(), std::min(bytes.size(), kMaxTransfer),
                   static_cast<off_t>(offset));
  });
  if (n < 0) throw_io("pread", path_);
  return static_cast<std::size_t>(n);
}

void File::reserve(std::uint64_t bytes) {
  if (bytes == 0) return;
  // posix_fallocate() would read and write every block where the file system cannot reserve space.
  if (retried([&] { return ::fallocate(descriptor_, 0, 0, static_cast<off_t>(bytes)); }) == 0)
    return;
  // ext2, NFS before 4.2 and many FUSE file systems: writing will report a full disk.
  if (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL) throw_io("fallocate", path_);
  if (size() < bytes) truncate(bytes);
}

std::pair<std::uint64_t, std::uint64_t> File::identity() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) throw_io("fstat", path_);
  return {status.st_dev, status.st_ino};
}

void File::truncate(std::uint64_t bytes) {
  if (retried([&] { return ::ftruncate(descriptor_, static_cast<off_t>(bytes)); }) != 0)
    throw_io("ftruncate", path_);
}

void File::sync() {
  if (retried([&] { return ::fsync(descriptor_); }) != 0) throw_io("fsync", path_);
}

void File::close() {
  const int descriptor = std::exchange(descriptor_, -1);
  if (descriptor >= 0 && ::close(descriptor) != 0) throw_io("close", path_);
}

File memory_file(const std::string& name) {
  const int descriptor = ::memfd_create("concertina", MFD_CLOEXEC);
  if (descriptor < 0) throw_io("memfd_create", name);
  return {descriptor, name};
}

File unnamed_file(const std::string& directory) {
  int descriptor = retried(
      [&] { return ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR); });
  if (descriptor >= 0) return {descriptor, directory};
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) throw_io("open", directory);
  std::string path = directory + "/concertina-XXXXXX";  // for network file systems
  descriptor = ::mkostemp(path.data(), O_CLOEXEC);
  if (descriptor < 0) throw_io("mkostemp", directory);
  ::unlink(path.c_str());
  return {descriptor, directory};
}

File reserve_room(const std::string& directory, std::uint64_t bytes) {
  const std::string path = directory + "/room.tmp";
  ::unlink(path.c_str());  // left by a killed process
  File file(path, File::Mode::create);
  ::unlink(path.c_str());
  file.reserve(bytes);
  return file;
}

bool is_own(const std::string& path) {
  struct stat status {
  }, directory{};
  return ::stat(path.c_str(), &status) == 0 &&
         (status.st_uid == ::geteuid() || status.st_uid == 0 ||
          (::stat(parent_of(path).c_str(), &directory) == 0 && directory.st_uid == status.st_uid));
}

File open_regular(const std::string& path, FilePlace place, int flags) {
  File file = open_checked(path, flags | (place <= FilePlace::owned ? 0 : O_NOFOLLOW), 0);
  require_place(file, place);
  if ((flags & O_ACCMODE) == O_RDONLY) refuse_pointer(file);
  return file;
}

std::string read_file(const std::string& path, std::uint64_t limit, FilePlace place) {
  const File file = open_regular(path, place);
  const std::uint64_t size = file.size();
  if (size > limit)
    throw_input(fmt::format("the file has {} bytes; at most {} are allowed here", size, limit),
                path, "check that this is the intended file");
  std::string content(size, '\0');
  file.read_at(0, std::as_writable_bytes(std::span(content)));
  return content;
}

void atomic_replace(const std::string& path, std::string_view content, unsigned permissions) {
  const std::string temporary = path + ".tmp";
  if (::unlink(temporary.c_str()) != 0 && errno != ENOENT) throw_io("unlink", temporary);
  try {
    File file(temporary, File::Mode::create, permissions);
    file.write(content);
    file.sync();
    file.close();
    rename_path(temporary, path);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  sync_directory(parent_of(path));
}

void sync_directory(const std::string& directory) {
  File file(directory, File::Mode::read);
  // Some network file systems have nothing to sync for a directory and return EINVAL.
  if (retried([&] { return ::fsync(file.descriptor()); }) != 0 && errno != EINVAL)
    throw_io("fsync", directory);
}

void make_directories(const std::string& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) {
    errno = error.value();
    throw_io("mkdir", directory);
  }
  if (!fs::is_directory(directory, error)) {
    errno = ENOTDIR;
    throw_io("mkdir", directory);
  }
}

void remove_tree(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) {
    errno = error.value();
    throw_io("remove", path);
  }
}

void rename_path(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) throw_io("rename", from + " -> " + to);
}

}  // namespace concertina
