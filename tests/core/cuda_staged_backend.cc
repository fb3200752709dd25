#include "tests/core/cuda_staged_backend.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace concertina {
namespace {

using Device = Backend;

constexpr std::size_t kGuard = 256;
constexpr unsigned char kGuardValue = 0x45;

/// A block with a guard behind it.
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
    device_.memory().copy(block_ + bytes_, guard.data(), kGuard);
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

/// The buffers of one call. One host buffer is one block, however often it is named.
class Staging {
 public:
  explicit Staging(Device& device) : device_(device) {}
  ~Staging() {
    device_.synchronize();
    for (const auto& [host, staged] : blocks_)
      if (staged.back) device_.memory().copy(staged.block->data(), staged.back, staged.bytes);
  }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  View operator()(View host) {
    if (host.empty()) return host;
    return {block(host.data, host.data, host.bytes()), host.count, host.dtype};
  }
  void* read(const void* host, std::size_t bytes) { return block(host, nullptr, bytes); }
  void* write(void* host, std::size_t bytes) { return block(host, host, bytes); }
  Epilogue operator()(Epilogue epilogue) { return {epilogue.kind, (*this)(epilogue.operand)}; }

 private:
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

class StagedLinear final : public Linear {
 public:
  StagedLinear(std::unique_ptr<Linear> inner, Device& device)
      : inner_(std::move(inner)), device_(device) {}
  std::size_t packed_bytes() const override { return inner_->packed_bytes(); }
  void pack(View weight, void* packed) override {
    Staging on(device_);
    inner_->pack(on(weight), on.write(packed, packed_bytes()));
  }
  void forward(View x, const void* packed, View bias, Epilogue epilogue, View y) override {
    Staging on(device_);
    inner_->forward(on(x), on.read(packed, packed_bytes()), on(bias), on(epilogue), on(y));
  }
  void backward_input(View dy, const void* packed, Epilogue epilogue, View dx) override {
    Staging on(device_);
    inner_->backward_input(on(dy), on.read(packed, packed_bytes()), on(epilogue), on(dx));
  }
  void backward_weight(View x, View dy, View dweight, View dbias, bool accumulate) override {
    Staging on(device_);
    inner_->backward_weight(on(x), on(dy), on(dweight), on(dbias), accumulate);
  }

 private:
  std::unique_ptr<Linear> inner_;
  Device& device_;
};

class StagedAttention final : public Attention {
 public:
  StagedAttention(std::unique_ptr<Attention> inner, Device& device)
      : inner_(std::move(inner)), device_(device) {}
  void forward(View qkv, View y, View lse) override {
    Staging on(device_);
    inner_->forward(on(qkv), on(y), on(lse));
  }
  void backward(View dy, View qkv, View y, View lse, View dqkv) override {
    Staging on(device_);
    inner_->backward(on(dy), on(qkv), on(y), on(lse), on(dqkv));
  }

 private:
  std::unique_ptr<Attention> inner_;
  Device& device_;
};

class StagedBackend final : public Backend {
 public:
  explicit StagedBackend(std::unique_ptr<Device> device) : device_(std::move(device)) {}

  std::string describe() const override { return device_->describe(); }
  void require(DType compute) const override { device_->require(compute); }
  bool emulates(DType compute) const override { return device_->emulates(compute); }
  std::unique_ptr<Linear> linear(const LinearShape& shape) override {
    return std::make_unique<StagedLinear>(device_->linear(shape), *device_);
  }
  std::unique_ptr<Attention> attention(const AttentionShape& shape) override {
    return std::make_unique<StagedAttention>(device_->attention(shape), *device_);
  }
  std::size_t workspace_bytes() const override { return device_->workspace_bytes(); }
  void set_workspace(void*) override {
    workspace_ = std::make_unique<DeviceBlock>(*device_, workspace_bytes());
    device_->set_workspace(workspace_->data());
  }

  void layer_norm(View x, View gamma, View beta, View y, View mean, View rstd) override {
    Staging on(*device_);
    device_->layer_norm(on(x), on(gamma), on(beta), on(y), on(mean), on(rstd));
  }
  void layer_norm_backward_input(View dy, View x, View gamma, View mean, View rstd, View residual,
                                 View dx) override {
    Staging on(*device_);
    device_->layer_norm_backward_input(on(dy), on(x), on(gamma), on(mean), on(rstd), on(residual),
                                       on(dx));
  }
  void layer_norm_backward_weight(View dy, View x, View mean, View rstd, View dgamma, View dbeta,
                                  bool accumulate) override {
    Staging on(*device_);
    device_->layer_norm_backward_weight(on(dy), on(x), on(mean), on(rstd), on(dgamma), on(dbeta),
                                        accumulate);
  }
  void embedding(View tokens, View wte, View wpe, std::int64_t t, View x) override {
    Staging on(*device_);
    device_->embedding(on(tokens), on(wte), on(wpe), t, on(x));
  }
  void embedding_backward(View tokens, View dx, std::int64_t t, View dwte, View dwpe,
                          bool accumulate) override {
    Staging on(*device_);
    device_->embedding_backward(on(tokens), on(dx), t, on(dwte), on(dwpe), accumulate);
  }
  void cross_entropy(View logits, View targets, float loss_scale, bool training,
                     View row_loss) override {
    Staging on(*device_);
    device_->cross_entropy(on(logits), on(targets), loss_scale, training, on(row_loss));
  }
  void axpby(float a, View x, float b, View y) override {
    Staging on(*device_);
    device_->axpby(a, on(x), b, on(y));
  }
  void sum_squares(View x, std::size_t block, std::span<double> sums) override {
    Staging on(*device_);
    device_->sum_squares(on(x), block, sums);
  }
  void adamw(const AdamW& rule, View w, View m, View v, View g) override {
    Staging on(*device_);
    device_->adamw(rule, on(w), on(m), on(v), on(g));
  }
  Memory& memory() override { return host_memory(); }
  void synchronize() override { device_->synchronize(); }

 private:
  std::unique_ptr<Device> device_;
  std::unique_ptr<DeviceBlock> workspace_;
};

}  // namespace

std::unique_ptr<Backend> make_staged_backend(std::unique_ptr<Backend> device) {
  return std::make_unique<StagedBackend>(std::move(device));
}

}  // namespace concertina
