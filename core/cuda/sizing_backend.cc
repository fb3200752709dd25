// The CUDA backend without its kernels.
#include "core/cuda/attention_choice.h"
#include "core/cuda/base/sizes.h"
#include "core/cuda/device.h"
#include "core/error.h"

namespace concertina::cuda {
namespace {

[[noreturn]] void refuse() {
  throw_failure("the sizing backend cannot run kernels", "CUDA backend",
                "this is a bug in concertina: please report it");
}

class SizedLinear final : public Linear {
 public:
  using Linear::Linear;
  std::size_t packed_bytes() const override { return cuda::packed_bytes(shape()); }
  void pack(const PackWeights&) override { refuse(); }
  void forward(const LinearForward&) override { refuse(); }
  void backward_input(const LinearInput&) override { refuse(); }
  void backward_weight(const LinearWeight&) override { refuse(); }
};

class SizedAttention final : public Attention {
 public:
  using Attention::Attention;
  void forward(const AttentionForward&) override { refuse(); }
  void backward(const AttentionBackward&) override { refuse(); }
};

class SizingBackend final : public Backend {
 public:
  explicit SizingBackend(AttentionBy attention) : attention_(attention) {
    workspace_.need(kScratchBytes, 0);
  }
  std::string describe() const override { return "cuda: sizes only"; }
  void require(const Precision&) const override {}
  bool emulates(DType) const override { return false; }
  std::shared_ptr<Linear> linear(const LinearShape& shape) override {
    need(shape, workspace_);
    return std::make_unique<SizedLinear>(shape);
  }
  std::shared_ptr<Attention> attention(const AttentionShape& shape) override {
    require_heads(shape, attention_);
    need(shape, wants_dnn(shape, attention_), workspace_);
    return std::make_unique<SizedAttention>(shape);
  }
  std::size_t workspace_bytes() const override { return workspace_.bytes(); }
  void set_workspace(void*) override { refuse(); }
  void forget_operators() override {
    workspace_ = Workspace();
    workspace_.need(kScratchBytes, 0);
  }
  void run(const Op&) override { refuse(); }
  Memory& memory() override { refuse(); }
  KernelClock& clock() override { return host_clock(); }
  void synchronize() override { refuse(); }

 private:
  AttentionBy attention_;
  Workspace workspace_;
};

}  // namespace

void require_heads(const AttentionShape& shape, AttentionBy by) {
  if (shape.head_dim > kMostHeadDim)
    throw_input(fmt::format("heads of {} columns are too wide for a GPU", shape.head_dim),
                "model.heads",
                fmt::format("at most {} columns per head: use more heads", kMostHeadDim));
  if (by == AttentionBy::cudnn && !dnn_takes(shape))
    throw_input(
        fmt::format("cuDNN does not support attention over {} tokens with heads of {} columns in "
                    "{}{}{}{}{}",
                    shape.tokens, shape.head_dim, name_of(shape.compute),
                    shape.causal ? "" : ", without a causal mask",
                    shape.group() == 1 ? "" : ", with shared keys",
                    shape.padded ? ", with padding" : "", shape.drops ? ", with dropout" : ""),
        "numerics.attention",
        fmt::format("bf16, a multiple of {} columns per head, at least two tokens; or "
                    "numerics.attention = \"auto\"",
                    kDnnRun));
}

std::unique_ptr<Backend> make_sizing_backend(AttentionBy attention) {
  const bool known = attention == AttentionBy::automatic && device_count() > 0;
  return std::make_unique<SizingBackend>(known && !dnn_refusal(0).empty() ? AttentionBy::own
                                                                          : attention);
}

}  // namespace concertina::cuda
