#include "tests/far_backend.h"

#include <sys/mman.h>

#include <cstring>
#include <vector>

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
    protect(PROT_READ | PROT_WRITE);
    std::memmove(to, from, bytes);
    protect(PROT_NONE);
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
};

/// A kernel runs.
class Open {
 public:
  explicit Open(FarMemory& memory) : memory_(memory) { memory_.protect(PROT_READ | PROT_WRITE); }
  ~Open() { memory_.protect(PROT_NONE); }
  Open(const Open&) = delete;
  Open& operator=(const Open&) = delete;

 private:
  FarMemory& memory_;
};

class FarLinear final : public Linear {
 public:
  FarLinear(std::unique_ptr<Linear> inner, FarMemory& memory)
      : inner_(std::move(inner)), memory_(memory) {}
  std::size_t packed_bytes() const override { return inner_->packed_bytes(); }
  void pack(View weight, void* packed) override {
    const Open open(memory_);
    inner_->pack(weight, packed);
  }
  void forward(View x, const void* packed, View bias, Epilogue epilogue, View y) override {
    const Open open(memory_);
    inner_->forward(x, packed, bias, epilogue, y);
  }
  void backward_input(View dy, const void* packed, Epilogue epilogue, View dx) override {
    const Open open(memory_);
    inner_->backward_input(dy, packed, epilogue, dx);
  }
  void backward_weight(View x, View dy, View dweight, View dbias, bool accumulate) override {
    const Open open(memory_);
    inner_->backward_weight(x, dy, dweight, dbias, accumulate);
  }

 private:
  std::unique_ptr<Linear> inner_;
  FarMemory& memory_;
};

class FarAttention final : public Attention {
 public:
  FarAttention(std::unique_ptr<Attention> inner, FarMemory& memory)
      : inner_(std::move(inner)), memory_(memory) {}
  void forward(View qkv, View y, View lse) override {
    const Open open(memory_);
    inner_->forward(qkv, y, lse);
  }
  void backward(View dy, View qkv, View y, View lse, View dqkv) override {
    const Open open(memory_);
    inner_->backward(dy, qkv, y, lse, dqkv);
  }

 private:
  std::unique_ptr<Attention> inner_;
  FarMemory& memory_;
};

class FarBackend final : public Backend {
 public:
  explicit FarBackend(std::unique_ptr<Backend> inner) : inner_(std::move(inner)) {}

  std::string describe() const override { return "far " + inner_->describe(); }
  void require(DType compute) const override { inner_->require(compute); }
  bool emulates(DType compute) const override { return inner_->emulates(compute); }
  std::unique_ptr<Linear> linear(const LinearShape& shape) override {
    return std::make_unique<FarLinear>(inner_->linear(shape), memory_);
  }
  std::unique_ptr<Attention> attention(const AttentionShape& shape) override {
    return std::make_unique<FarAttention>(inner_->attention(shape), memory_);
  }
  std::size_t workspace_bytes() const override { return inner_->workspace_bytes(); }
  void set_workspace(void* workspace) override { inner_->set_workspace(workspace); }

  void layer_norm(View x, View gamma, View beta, View y, View mean, View rstd) override {
    const Open open(memory_);
    inner_->layer_norm(x, gamma, beta, y, mean, rstd);
  }
  void layer_norm_backward_input(View dy, View x, View gamma, View mean, View rstd,
                                 View residual_grad, View dx) override {
    const Open open(memory_);
    inner_->layer_norm_backward_input(dy, x, gamma, mean, rstd, residual_grad, dx);
  }
  void layer_norm_backward_weight(View dy, View x, View mean, View rstd, View dgamma, View dbeta,
                                  bool accumulate) override {
    const Open open(memory_);
    inner_->layer_norm_backward_weight(dy, x, mean, rstd, dgamma, dbeta, accumulate);
  }
  void embedding(View tokens, View wte, View wpe, std::int64_t t, View x) override {
    const Open open(memory_);
    inner_->embedding(tokens, wte, wpe, t, x);
  }
  void embedding_backward(View tokens, View dx, std::int64_t t, View dwte, View dwpe,
                          bool accumulate) override {
    const Open open(memory_);
    inner_->embedding_backward(tokens, dx, t, dwte, dwpe, accumulate);
  }
  void cross_entropy(View logits, View targets, float loss_scale, bool training,
                     View row_loss) override {
    const Open open(memory_);
    inner_->cross_entropy(logits, targets, loss_scale, training, row_loss);
  }
  void axpby(float a, View x, float b, View y) override {
    const Open open(memory_);
    inner_->axpby(a, x, b, y);
  }
  void sum_squares(View x, std::size_t block, std::span<double> sums) override {
    const Open open(memory_);
    inner_->sum_squares(x, block, sums);
  }
  void adamw(const AdamW& rule, View w, View m, View v, View g) override {
    const Open open(memory_);
    inner_->adamw(rule, w, m, v, g);
  }
  Memory& memory() override { return memory_; }
  void synchronize() override { inner_->synchronize(); }

 private:
  std::unique_ptr<Backend> inner_;
  FarMemory memory_;
};

}  // namespace

std::unique_ptr<Backend> make_far_backend(std::unique_ptr<Backend> inner) {
  return std::make_unique<FarBackend>(std::move(inner));
}

}  // namespace concertina
