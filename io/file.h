// Files: an owner per descriptor, complete reads and writes, and durable replacement. Invariant:
// every failed call throws an Error naming the call, the path and a remedy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace concertina {

/// Returns the path of `program`, searched for on PATH unless it has a slash; empty if not found.
std::string find_program(const std::string& program);

/// Whether anything, a regular file or a directory is at `path`; false if that cannot be
/// determined.
bool exists_at(const std::filesystem::path& path);
bool is_file(const std::filesystem::path& path);
bool is_folder(const std::filesystem::path& path);

/// Returns why `path` cannot be created or replaced: it is a device or a directory, or its
/// directory is missing or read-only. Returns an empty string if it can.
std::string why_not_writable(const std::string& path);

/// Throws for the errno of `call` on `path`, with advice for common causes (no space, file-size
/// limit, ...): Error{bad_input} if another path helps (no permission, ...), else Error{failure}.
[[noreturn]] void throw_io(std::string_view call, const std::string& path);

/// Owns one open file descriptor.
class File {
 public:
  enum class Mode {
    read,            // must exist
    create,          // must not exist; read and write
    append,          // created if absent; write at the end
    open_or_create,  // a regular file, not a link; read and write
  };

  File() = default;
  /// `permissions` of a newly created file are subject to the umask.
  File(std::string path, Mode mode, unsigned permissions = 0666);
  /// Takes ownership of `descriptor`; `path` is for messages.
  File(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}
  ~File();
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  int descriptor() const { return descriptor_; }
  const std::string& path() const { return path_; }
  std::uint64_t size() const;
  /// Returns the device and inode numbers.
  std::pair<std::uint64_t, std::uint64_t> identity() const;

  void write(std::string_view text);
  /// Appends `text`; on error the file is truncated to its previous length.
  void append_whole(std::string_view text);
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  /// Reads exactly bytes.size() bytes; throws if the file ends before that.
  void read_at(std::uint64_t offset, std::span<std::byte> bytes) const;
  /// Reads up to bytes.size() bytes at `offset` and returns how many it read; 0: end of file.
  std::size_t read_some(std::uint64_t offset, std::span<std::byte> bytes) const;
  /// Makes the file at least `bytes` long and reserves space if the file system supports it, so
  /// that a full disk is reported here and not in the middle of a write.
  void reserve(std::uint64_t bytes);
  void truncate(std::uint64_t bytes);
  /// Waits until the data is on stable storage (fsync).
  void sync();
  /// Closes the file. Network file systems report lost writes here; the destructor only logs them.
  void close();

 private:
  int descriptor_ = -1;
  std::string path_;
};

/// Creates an anonymous file in memory; `name` is for messages.
File memory_file(const std::string& name);

/// Creates an unnamed file in `directory` that only this user can access; its space is freed when
/// it is closed or the process dies. Its path, for messages, is the directory.
File unnamed_file(const std::string& directory);

/// Reserves `bytes` on the file system of `directory` until the returned unnamed file is closed or
/// the process dies. Throws if there is not enough space. Reserves nothing if the file system does
/// not support it.
File reserve_room(const std::string& directory, std::uint64_t bytes);

/// Where a file to be read is located. It must be a regular file; other checks depend on the place.
enum class FilePlace {
  named,   // a path given by the user; links are followed
  owned,   // like `named`, and is_own() must be true
  logged,  // in a run directory, possibly of another user: must not be a link
  shared,  // where others can write: it must not be a link, must belong to this user (or to the
           // owner of a directory that is not shared like /tmp) and be writable only by them
  secret,  // like `shared`, and readable by nobody else
};
/// Whether `path` belongs to this user, to root, or to the owner of its directory. Other files in a
/// run directory were put there by someone else.
bool is_own(const std::string& path);

/// Opens a regular file, for reading unless `flags` of open(2) say otherwise, without ever
/// blocking. Throws Error{bad_input} for anything that is not a regular file.
File open_regular(const std::string& path, FilePlace place, int flags = 0);

/// Returns the whole file. Throws like open_regular(), and if the file exceeds `limit` bytes.
std::string read_file(const std::string& path, std::uint64_t limit,
                      FilePlace place = FilePlace::named);
/// Like read_file() for a file named by the user: any failure throws Error{bad_input} with `fix`.
std::string read_input_file(const std::string& path, std::uint64_t limit, const std::string& fix);

/// Logs "`path`: `what`" as a warning unless this process has already warned about `path`.
void warn_once(const std::string& path, const std::string& what);

/// Replaces or creates `path` so that a reader, even after a power loss, finds either the old or
/// the new content: temporary file, fsync, rename, fsync of the directory.
void atomic_replace(const std::string& path, std::string_view content, unsigned permissions = 0666);

/// Makes the directory entries of `directory` durable.
void sync_directory(const std::string& directory);
/// Creates the directory and its parents if absent.
void make_directories(const std::string& directory);
/// Removes the directory and its content if it exists.
void remove_tree(const std::string& path);
void rename_path(const std::string& from, const std::string& to);

}  // namespace concertina
