#include "core/cuda/dnn/attention.h"

#include <fmt/format.h>

#include <map>
#include <tuple>

#include "core/cuda/base/sizes.h"
#include "core/cuda/dnn/graph.h"
#include "core/cuda/dnn/plan.h"
#include "core/error.h"
#include "core/log.h"

namespace concertina::cuda {
namespace {

// Up to 9.15, NVIDIA's frontend (cudnn-frontend) masks keys after the last token if the keys do
// not fill a tile. Our graphs do not.
constexpr std::int64_t kAnyTokens = 91600;

class DnnHandle {
 public:
  explicit DnnHandle(cudaStream_t stream) {
    check(dnn().create(&handle_), "cudnnCreate");
    const cudnnStatus_t status = dnn().set_stream(handle_, stream);
    if (status != CUDNN_STATUS_SUCCESS) (void)dnn().destroy(handle_);
    check(status, "cudnnSetStream");
  }
  ~DnnHandle() {
    if (dnn().destroy(handle_) != CUDNN_STATUS_SUCCESS) log::error("cudnnDestroy failed");
  }
  DnnHandle(const DnnHandle&) = delete;
  DnnHandle& operator=(const DnnHandle&) = delete;
  operator cudnnHandle_t() const { return handle_; }

 private:
  cudnnHandle_t handle_ = nullptr;
};

struct Plans {
  Plans(const AttentionShape& shape, const DnnTarget& target)
      : forward(attention_graph(shape), target, dnn_plan_scratch(shape)),
        backward(attention_gradient_graph(shape), target, dnn_plan_scratch(shape)) {}
  DnnPlan forward, backward;
};

class DnnAttention final : public Attention {
 public:
  DnnAttention(const AttentionShape& shape, const Plans& plans, cudnnHandle_t handle,
               const Workspace& workspace)
      : Attention(shape), plans_(plans), handle_(handle), workspace_(workspace) {}

  void forward(const AttentionForward& op) override {
    const DnnPlan::Address addresses[] = {{kQ, part(op.qkv, 0)},
                                          {kK, part(op.qkv, 1)},
                                          {kV, part(op.qkv, 2)},
                                          {kY, op.y.data},
                                          {kLse, op.lse.data}};
    plans_.forward.run(handle_, plans_.forward.pack(addresses, workspace_.scratch()));
  }

  void backward(const AttentionBackward& op) override {
    std::byte* scratch = static_cast<std::byte*>(workspace_.scratch());
    std::byte* delta = scratch + align_up(dnn_plan_scratch(shape()));
    const DnnPlan::Address addresses[] = {{kQ, part(op.qkv, 0)},   {kK, part(op.qkv, 1)},
                                          {kV, part(op.qkv, 2)},   {kY, op.y.data},
                                          {kLse, op.lse.data},     {kDy, op.dy.data},
                                          {kDelta, delta},         {kDq, part(op.dqkv, 0)},
                                          {kDk, part(op.dqkv, 1)}, {kDv, part(op.dqkv, 2)}};
    plans_.backward.run(handle_, plans_.backward.pack(addresses, scratch));
  }

 private:
  /// Returns the queries, keys or values, which are side by side in a row.
  void* part(View qkv, int which) const {
    const auto width = static_cast<std::size_t>(shape().heads * shape().head_dim);
    return qkv.as<Bf16>() + static_cast<std::size_t>(which) * width;
  }

  const Plans& plans_;
  cudnnHandle_t handle_;
  const Workspace& workspace_;
};

class CudnnAttentions final : public DnnAttentions {
 public:
  explicit CudnnAttentions(cudaStream_t stream) : handle_(stream) {}

  const std::string& problem(const AttentionShape& shape) override { return entry(shape).problem; }
  std::unique_ptr<Attention> make(const AttentionShape& shape,
                                  const Workspace& workspace) override {
    return std::make_unique<DnnAttention>(shape, *entry(shape).plans, handle_, workspace);
  }

 private:
  struct Entry {
    std::unique_ptr<const Plans> plans;
    std::string problem;
  };

  Entry& entry(const AttentionShape& s) {
    const auto [at, fresh] =
        entries_.try_emplace({s.samples, s.tokens, s.heads, s.head_dim, s.causal});
    if (fresh) plan(s, at->second);
    return at->second;
  }
  void plan(const AttentionShape& s, Entry& entry) const {
    try {
      if (s.tokens % kDnnKeys != 0 && dnn_version() < kAnyTokens)
        throw_failure(
            fmt::format("cuDNN {} requires a multiple of {} tokens", dnn_version_text(), kDnnKeys),
            "cuDNN");
      entry.plans = std::make_unique<Plans>(s, DnnTarget{.handle = handle_});
    } catch (const Error& error) {
      entry.problem =
          fmt::format("attention of {} x {} tokens, {} heads of {}{}: {}", s.samples, s.tokens,
                      s.heads, s.head_dim, s.causal ? "" : ", not causal", error.message());
      log::warn("cuDNN: {}", entry.problem);
    }
  }

  DnnHandle handle_;
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, bool>, Entry>
      entries_;
};

}  // namespace

std::unique_ptr<DnnAttentions> make_dnn_attentions(cudaStream_t stream) {
  return std::make_unique<CudnnAttentions>(stream);
}

}  // namespace concertina::cuda
