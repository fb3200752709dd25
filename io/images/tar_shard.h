// The members of a tar file, plain or compressed with gzip or zstd. Invariant: members are regular
// files, in tar order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/file.h"

namespace concertina {

/// One regular file in a tar. `begin` is its offset in the tar or in the unpacked data.
struct TarMember {
  std::string name;
  std::uint64_t begin = 0, size = 0;
  bool unpacked = false;
};

/// Whether this build has libarchive.
bool has_libarchive();

/// Lists the members of the tar in `file`. If it is compressed, the content of members selected by
/// `wanted` is appended to `unpacked`; others have size 0. Throws Error{bad_input} with `path` and
/// the last member if this is not a tar, is damaged, truncated or sparse, or unpacks to more than
/// 4 GiB, or if libarchive is missing.
std::vector<TarMember> list_tar(std::span<const std::byte> file, const std::string& path,
                                bool (*wanted)(std::string_view name), std::string& unpacked);

/// Deleter of a mapped file of this size.
struct Unmap {
  std::uint64_t bytes = 0;
  void operator()(const std::byte* data) const;
};

/// Random access to a tar file: a plain one is mapped, and the wanted members of a compressed one
/// are unpacked into memory once.
class TarShard {
 public:
  /// Throws like list_tar().
  TarShard(std::string path, bool (*wanted)(std::string_view name));

  const std::string& path() const { return file_.path(); }
  const std::vector<TarMember>& members() const { return members_; }
  /// Returns the bytes of a wanted member, valid while the shard exists. Thread-safe. Throws if the
  /// file has been truncated since it was opened.
  std::span<const std::byte> bytes(const TarMember& member) const;

 private:
  File file_;
  std::unique_ptr<const std::byte, Unmap> mapped_;
  std::string unpacked_;
  std::vector<TarMember> members_;
};

}  // namespace concertina
