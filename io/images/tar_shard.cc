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
  mapped_ = {static_cast<const std::byte*>(data), Unmap{size}};
  members_ = list_tar({mapped_.get(), size}, this->path(), wanted, unpacked_);
}

void Unmap::operator()(const std::byte* data) const {
  ::munmap(const_cast<std::byte*>(data), bytes);
}

std::span<const std::byte> TarShard::bytes(const TarMember& member) const {
  if (member.unpacked)
    return std::as_bytes(std::span(unpacked_)).subspan(member.begin, member.size);
  // Accessing truncated pages would raise SIGBUS.
  if (file_.size() < mapped_.get_deleter().bytes)
    throw_failure("the file was truncated while in use", path(), "restore the file");
  return {mapped_.get() + member.begin, member.size};
}

}  // namespace concertina
