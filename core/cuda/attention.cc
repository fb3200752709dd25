// Attention as an operator: whose kernels do it on a device; our own kernels' order, and the
// scratch between them.
#include "core/cuda/attention_choice.h"
#include "core/cuda/device.h"
#include "core/cuda/kernels/kernels.h"
#include "core/cuda/operators.h"
#include "core/error.h"
#include "core/log.h"

namespace concertina::cuda {
namespace {

// The only generation whose plans tests have made: deterministic, within dnn_plan_scratch().
constexpr int kMajor = 9;

class CudaAttention final : public Attention {
 public:
  CudaAttention(const AttentionShape& shape, Context& context)
      : Attention(shape), context_(context) {}

  void forward(const AttentionForward& op) override {
    require_lengths(op.lengths);
    attention_forward(context_.stream, shape(), op);
  }

  void backward(const AttentionBackward& op) override {
    require_lengths(op.lengths);
    const View delta{context_.workspace.scratch(), delta_count(shape()), DType::f32};
    attention_delta(context_.stream, shape(), op.dy, op.y, delta);
    attention_backward(context_.stream, shape(), op, delta);
  }

 private:
  Context& context_;
};

/// Null where cuDNN shall not or cannot.
std::unique_ptr<Attention> by_dnn(const AttentionShape& shape, Context& context) {
  if (!wants_dnn(shape, context.attention)) return nullptr;
  const std::string& problem = context.dnn->problem(shape);
  if (problem.empty()) return context.dnn->make(shape, context.workspace);
  if (context.attention == AttentionBy::cudnn)
    throw_input(problem, "numerics.attention", "numerics.attention = \"auto\"");
  return nullptr;
}

}  // namespace

std::string dnn_status() {
  return dnn_problem().empty() ? dnn_version_text() : dnn_problem();
}

std::string dnn_refusal(int index) {
  if (!dnn_problem().empty()) return dnn_problem();
  const std::optional<Device> device = find_device(index);
  if (!device) return fmt::format("there is no GPU {}", index);
  if (device->major == kMajor) return {};
  return fmt::format("GPU {} has compute capability {}.{}, not {}.x", index, device->major,
                     device->minor, kMajor);
}

void choose_attention(AttentionBy by, int device, Context& context) {
  if (by == AttentionBy::own) return;
  const std::string refusal = dnn_refusal(device);
  if (refusal.empty()) {
    // A failure is one: other ranks, which had none, would compute other bits.
    context.dnn = make_dnn_attentions(context.stream);
    context.attention = by;
    return;
  }
  if (by == AttentionBy::cudnn)
    throw_input("attention cannot be cuDNN's: " + refusal, "numerics.attention",
                "numerics.attention = \"auto\", or a Hopper GPU and cuDNN in LD_LIBRARY_PATH");
  log::info("attention by our own kernels: {}", refusal);
}

std::unique_ptr<Attention> make_attention(const AttentionShape& shape, Context& context) {
  require_heads(shape, context.attention);
  std::unique_ptr<Attention> attention = by_dnn(shape, context);
  need(shape, attention != nullptr, context.workspace);
  if (attention == nullptr) attention = std::make_unique<CudaAttention>(shape, context);
  return attention;
}

}  // namespace concertina::cuda
