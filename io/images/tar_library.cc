// Reads tar files with libarchive.
#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "core/error.h"
#include "io/images/tar_shard.h"

namespace concertina {
namespace {

constexpr std::uint64_t kMostUnpacked = std::uint64_t{4} << 30;
constexpr std::size_t kEndMark = 1024;  // two blocks of zeros (POSIX.1-2001, pax)

/// A libarchive reader for one file in memory.
class TarReader {
 public:
  TarReader(std::span<const std::byte> file, const std::string& path)
      : file_(file), path_(path), archive_(::archive_read_new(), &::archive_read_free) {
    archive* const reader = archive_.get();
    if (reader == nullptr) throw_failure("libarchive failed to start", path, "free memory");
    ::archive_read_support_filter_gzip(reader);
    ::archive_read_support_filter_zstd(reader);
    ::archive_read_support_format_tar(reader);
    // Do not stop at a block of zeros in the middle: what follows is read or rejected.
    ::archive_read_set_options(reader, "tar:read_concatenated_archives");
    check(::archive_read_open_memory(reader, file.data(), file.size()));
  }

  /// Returns the next entry, or null at the end.
  archive_entry* next() {
    archive_entry* entry = nullptr;
    const int code = ::archive_read_next_header(archive_.get(), &entry);
    if (code == ARCHIVE_EOF) return nullptr;
    check(code);
    const char* name = ::archive_entry_pathname(entry);
    if (name == nullptr) name = ::archive_entry_pathname_utf8(entry);
    if (name == nullptr) refuse("unreadable member name");
    name_ = name;
    return entry;
  }

  const std::string& name() const { return name_; }
  bool compressed() const { return ::archive_filter_count(archive_.get()) > 1; }

  /// Returns the location of the bytes of the entry. Bytes that are not in the file itself are
  /// appended to `unpacked`.
  TarMember member(std::uint64_t size, std::string& unpacked) {
    TarMember member{name_, unpacked.size(), 0, true};
    const void* block = nullptr;
    std::size_t bytes = 0;
    la_int64_t offset = 0;
    while (true) {
      const int code = ::archive_read_data_block(archive_.get(), &block, &bytes, &offset);
      if (code == ARCHIVE_EOF) break;
      check(code);
      if (bytes == 0) continue;
      if (offset < 0 || static_cast<std::uint64_t>(offset) != member.size)
        refuse("a sparse member has holes");
      append(static_cast<const std::byte*>(block), bytes, member, unpacked);
    }
    if (member.size != size)
      refuse(fmt::format("expected a member of {} bytes, got {}", size, member.size));
    return member;
  }

  [[noreturn]] void refuse(const std::string& why) const {
    throw_input(fmt::format("cannot read the tar file: {}", why),
                name_.empty() ? path_ : fmt::format("{}: member '{}'", path_, name_),
                "use an undamaged tar file, plain or compressed with gzip or zstd");
  }

 private:
  void check(int code) const {
    if (code == ARCHIVE_OK || code == ARCHIVE_WARN) return;
    const char* why = ::archive_error_string(archive_.get());
    refuse(why != nullptr ? why : "it is damaged");
  }

  /// libarchive returns uncompressed data in place: in the mapped file.
  void append(const std::byte* block, std::size_t bytes, TarMember& member,
              std::string& unpacked) const {
    const auto base = reinterpret_cast<std::uintptr_t>(file_.data());
    const auto at = reinterpret_cast<std::uintptr_t>(block);
    const bool mapped = at >= base && at - base <= file_.size() - std::min(bytes, file_.size());
    if (mapped && member.size == 0) {
      member.begin = at - base;
      member.unpacked = false;
    }
    if (!member.unpacked) {
      if (!mapped || at - base != member.begin + member.size) refuse("a member is fragmented");
    } else {
      if (bytes > kMostUnpacked - unpacked.size())
        refuse("more than 4 GiB unpacked; decompress the tar, since a plain one is read in place");
      unpacked.append(reinterpret_cast<const char*>(block), bytes);
    }
    member.size += bytes;
  }

  std::span<const std::byte> file_;
  const std::string& path_;
  std::unique_ptr<archive, int (*)(archive*)> archive_;
  std::string name_;
};

bool ends_as_tar(std::span<const std::byte> file) {
  return file.size() >= kEndMark &&
         std::ranges::all_of(file.last(kEndMark), [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace

bool has_libarchive() {
  return true;
}

std::vector<TarMember> list_tar(std::span<const std::byte> file, const std::string& path,
                                bool (*wanted)(std::string_view name), std::string& unpacked) {
  TarReader reader(file, path);
  std::vector<TarMember> members;
  while (archive_entry* entry = reader.next()) {
    if (::archive_entry_filetype(entry) != AE_IFREG || ::archive_entry_hardlink(entry) != nullptr)
      continue;
    if (wanted(reader.name()))
      members.push_back(
          reader.member(static_cast<std::uint64_t>(::archive_entry_size(entry)), unpacked));
    else
      members.push_back({reader.name(), 0, 0, true});
  }
  // This is the only sign of a plain tar that was truncated between two members.
  if (!reader.compressed() && !ends_as_tar(file)) reader.refuse("missing end-of-archive mark");
  return members;
}

}  // namespace concertina
