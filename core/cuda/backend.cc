#include "core/cuda/backend.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/cuda/base/handles.h"
#include "core/cuda/base/memory.h"
#include "core/cuda/device.h"
#include "core/cuda/event_clock.h"
#include "core/cuda/kernels/kernels.h"
#include "core/cuda/operators.h"
#include "core/cuda/pass_graphs.h"
#include "core/error.h"

namespace concertina::cuda {
namespace {

constexpr std::size_t kSums = 1 << 14;  // maximum number of pending results of SumSquares
constexpr int kLeastMajor = 8;          // bf16 on tensor cores

std::vector<Precision> precisions_of(const Device& device) {
  std::vector<Precision> able(kPrecisions.begin(), kPrecisions.end());
  if (device.major == 8 && device.minor < 9)
    std::erase_if(able, [](const Precision& p) { return p.products == Products::fp8; });
  return able;
}

/// Makes the device current for the thread. Must precede creating any stream or handle on it.
Device use_device(int index) {
  std::optional<Device> found = find_device(index);
  if (!found)
    throw_input(fmt::format("there is no GPU {}: {}", index, status()), "run.device",
                "run.device = \"cpu\", or a machine on which `concertina doctor` lists the GPU");
  if (found->major < kLeastMajor)
    throw_input(fmt::format("GPU {}, {}, has compute capability {}.{}", index, found->name,
                            found->major, found->minor),
                "run.device", "compute capability 8.0 or later, or run.device = \"cpu\"");
  check(cudaSetDevice(index), "cudaSetDevice");
  return *std::move(found);
}

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(const BackendOptions& options)
      : device_(use_device(options.device)),
        graphs_(context_.stream, context_.workspace, options.graphs),
        sums_(kSums) {
    context_.graphs = &graphs_;
    context_.workspace.need(kScratchBytes, 0);
    choose_attention(options.attention, options.device, context_);
  }

  std::string describe() const override {
    const Device& d = device_;
    return fmt::format("cuda: GPU {}, {}, compute capability {}.{}, cuBLASLt {}{}", d.index, d.name,
                       d.major, d.minor, cublaslt_version(),
                       context_.dnn == nullptr ? "" : ", cuDNN " + dnn_status());
  }
  void require(const Precision& precision) const override {
    const std::vector<Precision> ours = precisions_of(device_);
    if (std::find(ours.begin(), ours.end(), precision) != ours.end()) return;
    throw_input(precision.products == Products::fp8
                    ? fmt::format("numerics.compute = \"fp8\" needs a GPU of compute capability "
                                  "8.9 or later; GPU {}, {}, has {}.{}",
                                  device_.index, device_.name, device_.major, device_.minor)
                    : fmt::format("the CUDA backend does not support {}", name_of(precision)),
                "numerics.compute", "one of: " + list_names(ours));
  }
  bool emulates(DType) const override { return false; }

  std::shared_ptr<Linear> linear(const LinearShape& shape) override {
    require({shape.compute, shape.products});
    return make_linear(shape, context_);
  }
  std::shared_ptr<Attention> attention(const AttentionShape& shape) override {
    require(shape.compute);
    return make_attention(shape, context_);
  }
  std::size_t workspace_bytes() const override { return context_.workspace.bytes(); }
  void set_workspace(void* workspace) override {
    graphs_.forget();
    context_.workspace.set(workspace);
  }
  void forget_operators() override {
    graphs_.forget();
    context_.workspace = Workspace();
    context_.workspace.need(kScratchBytes, 0);
    clock().forget_room();
  }

  void run(const Op& op) override {
    std::visit([this](const auto& kernel) { issue(kernel); }, op);
  }

  bool records_passes() const override { return true; }
  void repeat(const RepeatedPass& pass, const std::function<void()>& issue) override {
    graphs_.run(pass, issue);
  }
  void forget_passes() override { graphs_.forget(); }
  PassCounts pass_counts() const override { return graphs_.counts(); }

  Memory& memory() override { return memory_; }
  KernelClock& clock() override { return clock_; }
  void synchronize() override {
    context_.stream.synchronize();
    const double* next = sums_.data();
    for (const std::span<double> to : wanted_) {
      std::copy_n(next, to.size(), to.begin());
      next += to.size();
    }
    wanted_.clear();
    summed_ = 0;
  }

 private:
  template <class T>
  void issue(const T& op) {
    cuda::run(context_.stream, op, context_.workspace.scratch());
  }
  template <OperatorOp T>
  void issue(const T& op) {
    op.run();
  }
  void issue(const ApplyDropout& op) {
    cuda::run(context_.stream, op, graphs_.mask_place(op.mask.at));
  }
  // The device writes its sums to pinned host memory, and synchronize() copies them to their
  // destination. Waiting for each call would be too slow, because there is a call per tensor.
  void issue(SumSquares op) {
    while (!op.sums.empty()) {
      if (summed_ == sums_.count()) synchronize();
      const std::size_t n = std::min(sums_.count() - summed_, op.sums.size());
      const std::size_t elements = std::min(n * op.block, op.x.count);
      const SumSquares part{op.x.slice(0, elements), op.block, op.sums.first(n)};
      cuda::run(context_.stream, part, sums_.data() + summed_);
      wanted_.push_back(part.sums);
      summed_ += n;
      op.sums = op.sums.subspan(n);
      op.x = op.x.slice(elements, op.x.count - elements);
    }
  }

  const Device device_;  // declared first: the others are created on it
  Context context_;
  DeviceMemory memory_{context_.stream};
  EventClock clock_{context_.stream};
  PassGraphs graphs_;
  Pinned<double> sums_;
  std::size_t summed_ = 0;                   // number of sums_ in use
  std::vector<std::span<double>> wanted_{};  // their destinations, in order
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(const BackendOptions& options) {
  return std::make_unique<CudaBackend>(options);
}

}  // namespace concertina::cuda
