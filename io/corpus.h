// Data files presented as one byte sequence without copying; up to 512 are kept open.
// Invariant: byte i of the corpus is the same in every process and run that reads the same files,
// because the files that match a pattern are joined in bytewise order of their names.
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

/// Identity and times of a file as the file system reports them. Any write changes `changed_ns`,
/// even one that preserves the size and modification time.
struct FileStamp {
  std::string path;  // absolute
  std::uint64_t size = 0, inode = 0;
  std::int64_t modified_ns = 0, changed_ns = 0;  // since 1970: last change to content; to inode
  bool operator==(const FileStamp&) const = default;
};

/// Throws Error{bad_input} if `start`, the first bytes of a file, look like UTF-16 or UTF-32: they
/// have a byte order mark, or zeros in a regular pattern.
void require_utf8(std::string_view start, const std::string& path);
inline constexpr std::string_view kUtf8Mark = "\xef\xbb\xbf";

/// Throws Error{bad_input}, at `where`, if two of `paths` are the same file or directory.
void require_distinct(const std::vector<std::string>& paths, const std::string& where);

class Corpus {
 public:
  /// `patterns` are files, or globs such as "books/*.txt", joined in this order. `where` is the
  /// config key for errors. Files may be repeated if they are `joined` from several keys. Throws
  /// Error{bad_input} if nothing matches, a match is not a readable regular file, all files are
  /// empty, or, unless `joined`, a file is listed twice, even through a link.
  Corpus(const std::vector<std::string>& patterns, const std::string& where, bool joined = false);

  std::uint64_t size() const { return size_; }
  const std::vector<std::string>& files() const { return names_; }

  /// Reads bytes [begin, begin + out.size()), possibly across files. Throws if a file has been
  /// truncated since it was opened or, if it is not kept open, has changed in any way.
  void read(std::uint64_t begin, std::span<std::byte> out) const;

  /// Quick SHA-256 of the size and the bytes: all of them if there are at most 256 MiB, otherwise
  /// 4096 evenly spaced blocks of 64 KiB.
  std::string fingerprint() const;
  /// SHA-256 of all bytes in blocks of 64 MiB: the digest of the only block, or the hash of all
  /// blocks' digests. Reads the whole text with one thread per available core. `progress` is called
  /// on the calling thread after each block that it reads. See also remembered_sha256().
  std::string whole_sha256(const std::function<void()>& progress = {}) const;
  /// Throws Error{bad_input} if a file appears to be UTF-16 or UTF-32 or, unless `mark`, starts
  /// with a UTF-8 byte order mark, which would become a token.
  void require_utf8(bool mark) const;
  /// Returns the current stamps of the non-empty files.
  std::vector<FileStamp> stamps() const;

 private:
  /// One file, at corpus bytes [begin, begin + size). If it is not kept open, only its stamp is
  /// stored.
  class Part {
   public:
    Part(File file, std::uint64_t begin, bool held);

    std::uint64_t begin() const { return begin_; }
    std::uint64_t end() const { return begin_ + stamp_.size; }
    /// Reads bytes [at, at + out.size()) of the file.
    void read(std::uint64_t at, std::span<std::byte> out) const;
    /// Returns the current stamp of the file.
    FileStamp stamp() const;

   private:
    bool is_held() const { return file_.descriptor() >= 0; }

    File file_;        // closed if it is not kept open
    FileStamp stamp_;  // at the time of opening
    std::uint64_t begin_ = 0;
  };

  std::string block_sha256(std::uint64_t begin, std::uint64_t bytes) const;

  std::vector<std::string> names_;
  std::vector<Part> parts_;  // non-empty files, ascending
  std::uint64_t size_ = 0;
};

}  // namespace concertina
