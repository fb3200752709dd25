#include "core/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "core/error.h"

namespace concertina {
namespace {

class HostMemory final : public Memory {
 public:
  void* allocate(std::size_t bytes, std::string_view name) override {
    void* block =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED)
      throw_failure(
          fmt::format("cannot allocate {} bytes of memory", bytes), std::string(name),
          "a smaller model or batch, or more stages; `concertina plan` prints the memory required");
    // Huge pages reduce page faults and TLB misses: buffers are large and live for the whole run.
    ::madvise(block, bytes, MADV_HUGEPAGE);
    return block;
  }
  void release(void* block, std::size_t bytes) noexcept override { ::munmap(block, bytes); }
  bool trim(void* block, std::size_t bytes, std::size_t left) noexcept override {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::size_t kept = (left + page - 1) / page * page;
    return kept >= bytes || ::munmap(static_cast<std::byte*>(block) + kept, bytes - kept) == 0;
  }
  void copy(const void* from, void* to, std::size_t bytes) override {
    if (bytes > 0) std::memmove(to, from, bytes);
  }
  bool on_host() const override { return true; }
};

/// Staging for memory whose copies are complete on return.
class PromptStaging final : public Staging {
 public:
  PromptStaging(Memory& memory, std::size_t bytes) : memory_(memory), buffer_(bytes) {}
  std::span<std::byte> host() override { return buffer_; }
  void mark() override {}
  void fetch(const void* block) override { memory_.copy(block, buffer_.data(), buffer_.size()); }
  void deliver(void* block) override { memory_.copy(buffer_.data(), block, buffer_.size()); }
  bool idle() override { return true; }

 private:
  Memory& memory_;
  std::vector<std::byte> buffer_;
};

}  // namespace

std::unique_ptr<Staging> Memory::make_staging(std::size_t bytes) {
  return std::make_unique<PromptStaging>(*this, bytes);
}

Memory& host_memory() {
  static HostMemory memory;
  return memory;
}

View host_view(Memory& memory, View tensor, std::vector<std::byte>& scratch) {
  if (memory.on_host() || tensor.empty()) return tensor;
  scratch.resize(tensor.bytes());
  memory.copy(tensor.data, scratch.data(), scratch.size());
  return {scratch.data(), tensor.count, tensor.dtype};
}

HostMirror::HostMirror(Memory& memory, View tensor)
    : memory_(&memory), tensor_(tensor), host_(tensor) {
  if (memory.on_host() || tensor.empty()) return;
  copy_.resize(tensor.bytes());
  host_.data = copy_.data();
}

void HostMirror::upload(std::size_t begin, std::size_t count) {
  if (host_.data == tensor_.data) return;
  const View from = host_.slice(begin, count);
  memory_->copy(from.data, tensor_.slice(begin, count).data, from.bytes());
}

}  // namespace concertina
