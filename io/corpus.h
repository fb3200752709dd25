// Files of data as one run of bytes, never copied; up to 512 of them are held open and mapped.
// Invariant: byte i of the corpus is the same byte for every process and every run that sees the
// same files: the files that a pattern matches are joined in the order of their names' bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/file.h"

namespace concertina {

/// The facts of a file by its file system. Whoever writes to it, even keeping its size and its time
/// of last change, changes `changed_ns`.
struct FileStamp {
  std::string path;  // absolute
  std::uint64_t size = 0, inode = 0;
  std::int64_t modified_ns = 0, changed_ns = 0;  // since 1970: content; content, owner, names ...
  bool operator==(const FileStamp&) const = default;
};

/// Throws an input error if `start`, the first bytes of a file, are UTF-16 or UTF-32: by a byte
/// order mark, or by zeros in the places of one half of each number.
void require_utf8(std::string_view start, const std::string& path);
inline constexpr std::string_view kUtf8Mark = "\xef\xbb\xbf";

/// Throws an input error, at `where`, if two of `paths` are one file or folder.
void require_distinct(const std::vector<std::string>& paths, const std::string& where);

class Corpus {
 public:
  /// `patterns`: files, or globs such as "books/*.txt", joined in this order. `where` names the
  /// config key in errors. `joined`: the files of several keys, of which two may name one file.
  /// Input errors: no match, a directory, not a regular file, unreadable, nothing but empty files;
  /// unless `joined`, a file that is named twice, also by a link.
  Corpus(const std::vector<std::string>& patterns, const std::string& where, bool joined = false);

  std::uint64_t size() const { return size_; }
  const std::vector<std::string>& files() const { return names_; }

  /// Bytes [begin, begin + out.size()); may cross files. A file that was cut short since it was
  /// opened is an error; one that is not held open also where it was changed in any way.
  void read(std::uint64_t begin, std::span<std::byte> out) const;

  /// SHA-256 over the size and the bytes, all of them up to 256 MiB and 4096 evenly spaced blocks
  /// of 64 KiB beyond: a quick look.
  std::string fingerprint() const;
  /// SHA-256 over all bytes, by blocks of 64 MiB: that of the only block, or of all blocks'
  /// digests. Reads the whole text, with a thread per core that this process may use; `progress` is
  /// called on this thread after each of its blocks. See also remembered_sha256().
  std::string whole_sha256(const std::function<void()>& progress = {}) const;
  /// Throws an input error for a file that begins as UTF-16 or UTF-32 does; unless `mark`, also for
  /// one with the byte order mark of UTF-8, which would become a token.
  void require_utf8(bool mark) const;
  /// The files that are not empty, as they are now.
  std::vector<FileStamp> stamps() const;

 private:
  /// One file: corpus bytes [begin, begin + size). It is mapped, or where it is not held open just
  /// its stamp is kept.
  class Mapping {
   public:
    Mapping(File file, std::uint64_t begin, bool held);
    ~Mapping();
    Mapping(Mapping&& other) noexcept;
    Mapping& operator=(Mapping&&) = delete;

    std::uint64_t begin() const { return begin_; }
    std::uint64_t end() const { return begin_ + stamp_.size; }
    /// Bytes [at, at + out.size()) of the file, from the mapping where there is one.
    void read(std::uint64_t at, std::span<std::byte> out) const;
    /// The same by calls: a file that is cut short meanwhile is an error and no bus error.
    void read_by_calls(std::uint64_t at, std::span<std::byte> out) const;
    /// As the file is now.
    FileStamp stamp() const;

   private:
    File file_;        // closed where it is not held
    FileStamp stamp_;  // when it was opened
    std::uint64_t begin_ = 0;
    const std::byte* data_ = nullptr;
  };

  std::string block_sha256(std::uint64_t begin, std::uint64_t bytes) const;

  std::vector<std::string> names_;
  std::vector<Mapping> mappings_;  // of the files that are not empty, ascending
  std::uint64_t size_ = 0;
};

}  // namespace concertina
