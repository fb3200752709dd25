#include "io/images/tar_shard.h"

#include <sys/mman.h>

#include <utility>

#include "core/error.h"

namespace concertina {

TarShard::TarShard(std::string path, bool (*wanted)(std::string_view name))
    : file_(std::move(path), File::Mode::read) {
  const std::uint64_t size = file_.size();
  if (size == 0) throw_input("the file is empty", this->path(), "use a tar file");
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file_.descriptor(), 0);
  if (data == MAP_FAILED) throw_io("mmap", this->path());
  mapped_ = {static_cast<const std::byte*>(data), size};
  try {
    members_ = list_tar(mapped_, this->path(), wanted, unpacked_);
  } catch (...) {
    ::munmap(data, size);
    throw;
  }
}

TarShard::~TarShard() {
  if (!mapped_.empty()) ::munmap(const_cast<std::byte*>(mapped_.data()), mapped_.size());
}

TarShard::TarShard(TarShard&& other) noexcept
    : file_(std::move(other.file_)),
      mapped_(std::exchange(other.mapped_, {})),
      unpacked_(std::move(other.unpacked_)),
      members_(std::move(other.members_)) {}

std::span<const std::byte> TarShard::bytes(const TarMember& member) const {
  if (member.unpacked)
    return std::as_bytes(std::span(unpacked_)).subspan(member.begin, member.size);
  // Accessing truncated pages would raise SIGBUS.
  if (file_.size() < mapped_.size())
    throw_failure("the file was truncated while in use", path(), "restore the file");
  return mapped_.subspan(member.begin, member.size);
}

}  // namespace concertina
