// The members of a tar file, plain or compressed by gzip or zstd.
// Invariant: members are those of the file in its order, regular files alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/file.h"

namespace concertina {

/// One regular file of a tar. `begin`: where its bytes begin, in the file or in what was unpacked
/// of it.
struct TarMember {
  std::string name;
  std::uint64_t begin = 0, size = 0;
  bool unpacked = false;
};

/// Whether this program was built with libarchive.
bool has_libarchive();

/// The members of the tar that `file` holds. What a compressed one has of the members that `wanted`
/// chooses is appended to `unpacked`; others are listed with size 0 and no bytes.
/// Input errors name `path` and the member after which it stopped: no tar, damaged, cut short,
/// sparse, more than 4 GiB unpacked; or no libarchive.
std::vector<TarMember> list_tar(std::span<const std::byte> file, const std::string& path,
                                bool (*wanted)(std::string_view name), std::string& unpacked);

/// A tar file that is read at random: a plain one stays on disk, mapped; of a compressed one the
/// wanted members are unpacked into memory once.
class TarShard {
 public:
  /// Input errors as of list_tar().
  TarShard(std::string path, bool (*wanted)(std::string_view name));
  ~TarShard();
  TarShard(TarShard&& other) noexcept;
  TarShard& operator=(TarShard&&) = delete;

  const std::string& path() const { return file_.path(); }
  const std::vector<TarMember>& members() const { return members_; }
  /// The bytes of a wanted member, valid while the shard lives. For several threads at once. A file
  /// that was cut short since it was opened is an error.
  std::span<const std::byte> bytes(const TarMember& member) const;

 private:
  File file_;
  std::span<const std::byte> mapped_;
  std::string unpacked_;
  std::vector<TarMember> members_;
};

}  // namespace concertina
