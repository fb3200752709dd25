#include "tests/core/cuda_staged_backend.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <vector>

#include "core/backend_around.h"
#include "core/error.h"

namespace concertina {
namespace {

using Device = Backend;

constexpr std::size_t kGuard = 256;
constexpr unsigned char kGuardValue = 0x45;

/// For destructors: the error of a kernel is often reported by a later call that waits for it.
template <class F>
void or_fail(const F& f) {
  try {
    f();
  } catch (const Error& error) {
    ADD_FAILURE() << error.what();
  }
}

/// A device block followed by a guard.
class DeviceBlock {
 public:
  DeviceBlock(Device& device, std::size_t bytes)
      : device_(device),
        bytes_(bytes),
        block_(static_cast<std::byte*>(device.memory().allocate(bytes + kGuard, "test"))) {
    const std::vector<unsigned char> guard(kGuard, kGuardValue);
    device.memory().copy(guard.data(), block_ + bytes_, kGuard);
  }
  ~DeviceBlock() {
    std::vector<unsigned char> guard(kGuard);
    or_fail([&] { device_.memory().copy(block_ + bytes_, guard.data(), kGuard); });
    EXPECT_EQ(guard, std::vector<unsigned char>(kGuard, kGuardValue)) << "past " << bytes_;
    device_.memory().release(block_, bytes_ + kGuard);
  }
  DeviceBlock(const DeviceBlock&) = delete;
  DeviceBlock& operator=(const DeviceBlock&) = delete;
  std::byte* data() const { return block_; }

 private:
  Device& device_;
  std::size_t bytes_;
  std::byte* block_;
};

/// The buffers of one call. A host buffer gets one block, even if it is passed several times.
class Staging {
 public:
  explicit Staging(Device& device) : device_(device) {}
  ~Staging() {
    or_fail([this] {
      device_.synchronize();
      for (const auto& [host, staged] : blocks_)
        if (staged.back) device_.memory().copy(staged.block->data(), staged.back, staged.bytes);
    });
  }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  void stage(View& view) {
    if (!view.empty()) view.data = block(view.data, view.data, view.bytes());
  }
  void stage_packed(PackWeights& op) {
    op.packed = block(op.packed, op.packed, op.map.packed_bytes());
  }
  void stage_packed(LinearForward& op) { read_packed(op); }
  void stage_packed(LinearInput& op) { read_packed(op); }
  template <class Other>
  void stage_packed(Other&) {}

 private:
  template <class Product>
  void read_packed(Product& op) {
    op.packed = block(op.packed, nullptr, op.map.packed_bytes());
  }

  struct Staged {
    std::unique_ptr<DeviceBlock> block;
    void* back;
    std::size_t bytes;
  };
  void* block(const void* host, void* back, std::size_t bytes) {
    const auto [found, fresh] = blocks_.try_emplace(host);
    if (fresh) {
      found->second = {std::make_unique<DeviceBlock>(device_, bytes), back, bytes};
      device_.memory().copy(host, found->second.block->data(), bytes);
    }
    return found->second.block->data();
  }

  Device& device_;
  std::map<const void*, Staged> blocks_;
};

class StagedBackend final : public BackendAround {
 public:
  using BackendAround::BackendAround;
  void set_workspace(void*) override {
    workspace_ = std::make_unique<DeviceBlock>(inner(), workspace_bytes());
    inner().set_workspace(workspace_->data());
  }
  Memory& memory() override { return host_memory(); }

 private:
  void before(Op& op) override {
    staging_.emplace(inner());
    std::visit(
        [&](auto& kernel) {
          for (View* view : kernel.views()) staging_->stage(*view);
          staging_->stage_packed(kernel);
        },
        op);
  }
  void after() override { staging_.reset(); }

  std::optional<Staging> staging_;
  std::unique_ptr<DeviceBlock> workspace_;
};

}  // namespace

std::unique_ptr<Backend> make_staged_backend(std::unique_ptr<Backend> device) {
  return std::make_unique<StagedBackend>(std::move(device));
}

}  // namespace concertina
