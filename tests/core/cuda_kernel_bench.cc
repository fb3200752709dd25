// Times every kernel of the CUDA backend at sizes that fill a GPU, each against two ceilings
// measured in the same run: a copy inside device memory, and a square product of bf16. What only
// moves memory has to reach a share of the copy: exit code 1 if something does not.
//
// Legend: R rows, T tokens a sample, C width, H heads, V vocabulary.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

#include "core/clock.h"
#include "core/cuda/backend.h"
#include "core/cuda/device.h"
#include "core/error.h"

namespace concertina {
namespace {

using Device = Backend;

constexpr std::int64_t kSamples = 16, kT = 1024, kR = kSamples * kT, kC = 2048, kH = 16, kV = 50304;
constexpr std::int64_t kSquare = 8192;
constexpr double kLeastShare = 0.85;  // of the copy's bandwidth, by a fused kernel

/// Device memory with random contents, kept until the end of the program.
class Memory {
 public:
  explicit Memory(Device& device) : device_(device), random_(1 << 20), wide_(1 << 20) {
    std::mt19937 engine(1);
    std::normal_distribution<float> draw;
    for (std::size_t i = 0; i < wide_.size(); ++i) {
      wide_[i] = draw(engine);
      random_[i] = rounded<Bf16>(wide_[i]);
    }
  }
  View take(std::int64_t count, DType type) {
    const View view{
        device_.memory().allocate(static_cast<std::size_t>(count) * size_of(type), "bench"),
        static_cast<std::size_t>(count), type};
    for (std::size_t at = 0; type != DType::i32 && at < view.count; at += wide_.size()) {
      const View part = view.slice(at, std::min(wide_.size(), view.count - at));
      device_.memory().copy(type == DType::bf16 ? static_cast<void*>(random_.data()) : wide_.data(),
                            part.data, part.bytes());
    }
    return view;
  }
  View integers(std::int64_t count, std::int32_t below) {
    std::mt19937 engine(2);
    std::vector<std::int32_t> values(static_cast<std::size_t>(count));
    for (std::int32_t& value : values)
      value = static_cast<std::int32_t>(engine() % static_cast<unsigned>(below));
    const View view = take(count, DType::i32);
    device_.memory().copy(values.data(), view.data, view.bytes());
    return view;
  }

 private:
  Device& device_;
  std::vector<Bf16> random_;
  std::vector<float> wide_;
};

/// Median seconds of a call, in batches that hide the launches.
double seconds(Device& device, const std::function<void()>& call) {
  constexpr int kBatch = 10;
  std::vector<double> times;
  for (int sample = 0; sample < 8; ++sample) {  // the first warms up
    device.synchronize();
    const double start = now();
    for (int i = 0; i < kBatch; ++i) call();
    device.synchronize();
    if (sample > 0) times.push_back((now() - start) / kBatch);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

class Bench {
 public:
  explicit Bench(Device& device) : device_(device), memory_(device) {}

  /// Whether all fused kernels are fast enough.
  bool run() {
    fmt::print("{}\n{:<28}{:>10}{:>10}{:>8}{:>10}{:>8}\n", device_.describe(), "kernel", "ms",
               "GB/s", "% copy", "TFLOP/s", "% GEMM");
    ceilings();
    attempt([&] { products(); });
    attempt([&] {
      attention("attention", *cuda::make_cuda_backend({.attention = cuda::AttentionBy::own}));
    });
    if (cuda::dnn_refusal(0).empty())
      attempt([&] {
        attention("cuDNN", *cuda::make_cuda_backend({.attention = cuda::AttentionBy::cudnn}));
      });
    attempt([&] { rows(); });
    attempt([&] { flat(); });
    return slow_ == 0;
  }

 private:
  /// What one part lacks is no reason to leave out the others.
  template <class F>
  void attempt(const F& part) {
    try {
      part();
    } catch (const Error& error) {
      ++slow_;
      fmt::print("  slow: none at all: {}\n", error.message());
    }
  }

  void row(const std::string& name, double bytes, double flops, const std::function<void()>& call) {
    row(device_, name, bytes, flops, call);
  }
  void row(Device& device, const std::string& name, double bytes, double flops,
           const std::function<void()>& call) {
    const double s = seconds(device, call);
    if (copy_ == 0) copy_ = bytes / s;
    if (flops > 0 && gemm_ == 0) gemm_ = flops / s;
    fmt::print("{:<28}{:>10.3f}{:>10.0f}{:>8.1f}", name, s * 1e3, bytes / s * 1e-9,
               100 * bytes / s / copy_);
    fmt::print("{:>10.1f}{:>8.1f}", flops / s * 1e-12, gemm_ > 0 ? 100 * flops / s / gemm_ : 0);
    share_ = bytes / s / copy_;
    fmt::print("\n");
  }

  /// One that should take what its bytes take.
  void fused(const std::string& name, double bytes, const std::function<void()>& call) {
    row(name, bytes, 0, call);
    if (share_ >= kLeastShare) return;
    ++slow_;
    fmt::print("  slow: {} is at {:.0f} % of the copy, not {:.0f}\n", name, 100 * share_,
               100 * kLeastShare);
  }

  void set_workspace() { set_workspace(device_); }
  static void set_workspace(Device& device) {
    device.set_workspace(device.memory().allocate(device.workspace_bytes(), "workspace"));
  }

  void ceilings() {
    const View a = memory_.take(1 << 30, DType::bf16), b = memory_.take(1 << 30, DType::bf16);
    row("copy", 2.0 * static_cast<double>(a.bytes()), 0,
        [&] { device_.memory().copy(a.data, b.data, a.bytes()); });
    device_.memory().release(a.data, a.bytes());
    device_.memory().release(b.data, b.bytes());
    linear("GEMM 8192^3", {kSquare, kSquare, kSquare, false, DType::bf16}, false);
  }

  void linear(const std::string& name, const LinearShape& s, bool behind) {
    const auto map = device_.linear(s);
    set_workspace();
    const View x = memory_.take(s.rows * s.in, s.compute),
               y = memory_.take(s.rows * s.out, s.compute);
    const View w = memory_.take(s.in * s.out, DType::f32), bias = memory_.take(s.out, DType::f32);
    const View aux = memory_.take(s.rows * s.out, s.compute);
    void* packed = device_.memory().allocate(map->packed_bytes(), "packed");
    device_.run(PackWeights{*map, w, packed});
    const double bytes = static_cast<double>(x.bytes() + y.bytes() + map->packed_bytes());
    const double flops = 2.0 * static_cast<double>(s.rows * s.in) * static_cast<double>(s.out);
    row(name, bytes, flops, [&] { device_.run(LinearForward{*map, x, packed, {}, {}, y}); });
    if (!behind) return;
    row(name + " + GELU", bytes, flops, [&] {
      device_.run(LinearForward{*map, x, packed, bias, {Epilogue::Kind::gelu, aux}, y});
    });
    row(name + ", dx", bytes, flops, [&] { device_.run(LinearInput{*map, y, packed, {}, x}); });
    row(name + ", dW += ", bytes, flops, [&] {
      device_.run(LinearWeight{*map, x, y, w, bias, true});
    });
  }

  void products() {
    const struct {
      const char* precision;
      std::int64_t rows;
      DType compute;
      Products products;
    } all[] = {{"bf16", kR, DType::bf16, Products::as_stored},
               {"fp8", kR, DType::bf16, Products::fp8},
               {"tf32", kR / 4, DType::f32, Products::tf32},
               {"fp32", kR / 4, DType::f32, Products::as_stored}};
    for (const auto& p : all)
      attempt([&] {
        linear(fmt::format("C -> 4C {}", p.precision),
               {p.rows, kC, 4 * kC, false, p.compute, p.products}, true);
      });
  }

  /// By another backend of the same GPU.
  void attention(const std::string& name, Device& device) {
    const auto attention = device.attention({kSamples, kT, kH, kC / kH, DType::bf16});
    set_workspace(device);
    const View qkv = memory_.take(kR * 3 * kC, DType::bf16),
               dqkv = memory_.take(kR * 3 * kC, DType::bf16);
    const View y = memory_.take(kR * kC, DType::bf16), dy = memory_.take(kR * kC, DType::bf16);
    const View lse = memory_.take(kR * kH, DType::f32);
    const double product = static_cast<double>(kR * (kT + 1)) * static_cast<double>(kC);
    const auto bytes = static_cast<double>(qkv.bytes() + y.bytes());
    device_.synchronize();  // the operands are there
    row(device, name, bytes, 2 * product, [&] {
      device.run(AttentionForward{*attention, qkv, y, lse});
    });
    row(device, name + " backward", 2 * bytes, 5 * product, [&] {
      device.run(AttentionBackward{*attention, dy, qkv, y, lse, dqkv});
    });
  }

  void rows() {
    const View x = memory_.take(kR * kC, DType::bf16), dy = memory_.take(kR * kC, DType::bf16);
    const View y = memory_.take(kR * kC, DType::bf16);
    const View gamma = memory_.take(kC, DType::f32), beta = memory_.take(kC, DType::f32);
    const View mean = memory_.take(kR, DType::f32), rstd = memory_.take(kR, DType::f32);
    const auto bytes = static_cast<double>(x.bytes());
    fused("layer norm", 2 * bytes, [&] { device_.run(LayerNorm{x, gamma, beta, y, mean, rstd}); });
    fused("layer norm dx", 4 * bytes, [&] {
      device_.run(LayerNormInput{dy, x, gamma, mean, rstd, y, y});
    });
    fused("layer norm dW", 2 * bytes, [&] {
      device_.run(LayerNormWeight{dy, x, mean, rstd, gamma, beta, false});
    });
    fused("dropout + residual", 3 * bytes, [&] {
      device_.run(ApplyDropout{{.share = 0.1, .at = {}, .sample_elements = kT * kC}, x, dy, y});
    });
    const View tokens = memory_.integers(kR, kV), wte = memory_.take(kV * kC, DType::f32);
    const View wpe = memory_.take(kT * kC, DType::f32);
    fused("embedding", 3 * bytes, [&] { device_.run(Embed{tokens, wte, wpe, kT, x}); });
    fused("embedding backward", 2 * bytes + 4 * bytes, [&] {
      device_.run(EmbedWeight{tokens, dy, kT, wte, wpe, true});
    });
    const View logits = memory_.take(kR * kV, DType::bf16), loss = memory_.take(kR, DType::f32);
    fused("cross entropy", 3 * static_cast<double>(logits.bytes()), [&] {
      device_.run(CrossEntropy{logits, tokens, 1e-4F, true, loss});
    });
  }

  void flat() {
    constexpr std::int64_t kCount = 1 << 28;
    std::vector<View> v;
    for (int i = 0; i < 4; ++i) v.push_back(memory_.take(kCount, DType::f32));
    const auto bytes = static_cast<double>(v[0].bytes());
    std::vector<double> sums(kCount / 4096);
    fused("axpby", 3 * bytes, [&] { device_.run(Axpby{1, v[0], 1e-3F, v[1]}); });
    fused("sum of squares", bytes, [&] { device_.run(SumSquares{v[0], 4096, sums}); });
    device_.run(Axpby{0, v[2], 0, v[2]});  // second moments: not negative
    fused("adamw", 7 * bytes, [&] {
      device_.run(AdamWUpdate{{.lr = 1e-4F}, v[0], v[1], v[2], v[3]});
    });
  }

  Device& device_;
  Memory memory_;
  double copy_ = 0, gemm_ = 0;  // bytes/s, FLOP/s
  double share_ = 0;            // of copy_, by the last row
  int slow_ = 0;
};

}  // namespace
}  // namespace concertina

int main() {
  if (concertina::cuda::device_count() == 0) {
    fmt::print("no GPU: {}\n", concertina::cuda::status());
    return 77;
  }
  try {
    const auto device = concertina::cuda::make_cuda_backend({});
    return concertina::Bench(*device).run() ? 0 : 1;
  } catch (const concertina::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return static_cast<int>(error.code());
  }
}
