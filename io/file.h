// Files: one owner per descriptor, whole reads and writes, and a durable replace.
// Invariant: every failed call leaves as an Error with the call, the path and what would help.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace concertina {

/// Where `program` is: itself if it has a slash, else on PATH; empty if it cannot be executed.
std::string find_program(const std::string& program);

/// Why no file can be made, or replaced, at `path`: it is a device or a directory, or its directory
/// is not there or read-only; empty if one can.
std::string why_not_writable(const std::string& path);

/// Throws a failure for errno after `call` on `path`, with advice for the usual causes (no space,
/// no permission, file-size limit, ...).
[[noreturn]] void throw_io(std::string_view call, const std::string& path);

/// Owns one open file descriptor.
class File {
 public:
  enum class Mode {
    read,            // must exist
    create,          // must not exist; read and write
    append,          // created if absent; write at the end
    open_or_create,  // a regular file, no link to one; read and write
  };

  File() = default;
  /// `permissions`: of a file that is created, but for those that the umask takes away.
  File(std::string path, Mode mode, unsigned permissions = 0666);
  /// Takes over `descriptor`; `path` is for messages.
  File(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}
  ~File();
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  int descriptor() const { return descriptor_; }
  const std::string& path() const { return path_; }
  std::uint64_t size() const;
  /// The device and the number of the file on it.
  std::pair<std::uint64_t, std::uint64_t> identity() const;

  void write(std::string_view text);
  /// Appends `text`; on an error the file is as long as before.
  void append_whole(std::string_view text);
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  /// All of `bytes`; a file that ends before is an error.
  void read_at(std::uint64_t offset, std::span<std::byte> bytes) const;
  /// Some of the bytes from `offset` on; 0: the file ends there. Returns how many were read.
  std::size_t read_some(std::uint64_t offset, std::span<std::byte> bytes) const;
  /// Makes the file at least `bytes` long, with room for them where the file system can reserve
  /// any: there a full disk is an error now, not in the middle of a write.
  void reserve(std::uint64_t bytes);
  void truncate(std::uint64_t bytes);
  /// Waits until the bytes are on the storage (fsync).
  void sync();
  /// Network file systems report lost writes here; the destructor could only log them.
  void close();

 private:
  int descriptor_ = -1;
  std::string path_;
};

/// A file without a name, in memory; `name` is for messages.
File memory_file(const std::string& name);

/// A file without a name in `directory`, for this user alone: closing it, or a kill, gives its room
/// back. Its path is the directory, for messages.
File unnamed_file(const std::string& directory);

/// Holds `bytes` of the file system of `directory`, in a file without a name: closing it, or a
/// kill, gives them back. Throws where there is no room; where the file system cannot reserve any,
/// it holds nothing.
File reserve_room(const std::string& directory, std::uint64_t bytes);

/// Where a file lies that is read, which decides what it must be besides a regular file.
enum class FilePlace {
  named,   // where the user says: links are followed
  owned,   // the same, and it belongs to whom is_own() accepts
  logged,  // in a run's directory, which may be another user's: it is no link
  shared,  // where others can write: it is no link, belongs to this user (or to the owner of a
           // directory that is not shared like /tmp), and nobody else may write to it
  secret,  // the same, and nobody else may read it either
};
/// Whether `path` belongs to this user, to root, or to the owner of the directory that it is in:
/// what is in a run's directory otherwise was put there by somebody else.
bool is_own(const std::string& path);

/// Opens a regular file, for reading unless `flags` of open(2) say otherwise; never waits. Anything
/// else is an input error.
File open_regular(const std::string& path, FilePlace place, int flags = 0);

/// Returns the whole file. Input errors: as of open_regular(), and more than `limit` bytes.
std::string read_file(const std::string& path, std::uint64_t limit,
                      FilePlace place = FilePlace::named);
/// The same for a file that the user names: whatever cannot be read is an input error with `fix`.
std::string read_input_file(const std::string& path, std::uint64_t limit, const std::string& fix);

/// Logs "`path`: `what`" as a warning, the first time that this process says anything of `path`.
void warn_once(const std::string& path, const std::string& what);

/// Replaces or creates `path` so that a reader, or a machine that lost power, sees the old content
/// or the new one and nothing between: temporary file, fsync, rename, fsync of the directory.
void atomic_replace(const std::string& path, std::string_view content, unsigned permissions = 0666);

/// Makes the names in `directory` durable.
void sync_directory(const std::string& directory);
/// Makes the directory with its parents; it is fine if it is there.
void make_directories(const std::string& directory);
/// Removes the directory with all that is in it; it is fine if it is absent.
void remove_tree(const std::string& path);
void rename_path(const std::string& from, const std::string& to);

}  // namespace concertina
