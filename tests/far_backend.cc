#include "tests/far_backend.h"

#include <sys/mman.h>

#include <cstring>
#include <vector>

#include "core/backend_around.h"
#include "tests/late_copies.h"

namespace concertina {
namespace {

class FarMemory final : public Memory {
 public:
  void* allocate(std::size_t bytes, std::string_view) override {
    void* block = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) throw std::bad_alloc();
    blocks_.push_back({block, bytes});
    return block;
  }
  void release(void* block, std::size_t bytes) noexcept override {
    std::erase_if(blocks_, [&](const Block& one) { return one.data == block; });
    ::munmap(block, bytes);
  }
  void copy(const void* from, void* to, std::size_t bytes) override {
    if (bytes == 0) return;  // the pointers may be null
    protect(PROT_READ | PROT_WRITE);
    std::memmove(to, from, bytes);
    protect(PROT_NONE);
  }
  std::unique_ptr<Staging> make_staging(std::size_t bytes) override {
    return std::make_unique<test::LateStaging>(
        bytes, ++stagings_,
        [this](const void* from, void* to, std::size_t n) { copy(from, to, n); });
  }
  void protect(int protection) {
    for (const Block& one : blocks_)
      if (::mprotect(one.data, one.bytes, protection) != 0) throw std::bad_alloc();
  }

 private:
  struct Block {
    void* data;
    std::size_t bytes;
  };
  std::vector<Block> blocks_;
  unsigned stagings_ = 0;
};

class FarBackend final : public BackendAround {
 public:
  using BackendAround::BackendAround;
  std::string describe() const override { return "far " + BackendAround::describe(); }
  Memory& memory() override { return memory_; }

 private:
  void before(Op&) override { memory_.protect(PROT_READ | PROT_WRITE); }
  void after() override { memory_.protect(PROT_NONE); }

  FarMemory memory_;
};

}  // namespace

std::unique_ptr<Backend> make_far_backend(std::unique_ptr<Backend> inner) {
  return std::make_unique<FarBackend>(std::move(inner));
}

}  // namespace concertina
