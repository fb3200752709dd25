// Measures every kernel of the CUDA backend at sizes that fill a GPU, and compares it with two
// rates measured in the same run: a copy in device memory, and a square product in bf16. A kernel
// that only moves memory must reach a share of the copy's rate: exit code 1 if one does not.
//
// Legend: R rows, T tokens per sample, C width, H heads, V vocabulary.
#include <fmt/format.h>

#include <functional>
#include <string>

#include "core/cuda/backend.h"
#include "core/cuda/device.h"
#include "core/error.h"
#include "tests/core/kernels/rates.h"

namespace concertina {
namespace {

using Device = Backend;

constexpr std::int64_t kSamples = 16, kT = 1024, kR = kSamples * kT, kC = 2048, kH = 16;
constexpr std::int64_t kSquare = 8192;
constexpr RateSizes kSizes{kSamples, kT, kC, 50304, 1 << 28, 10, 7, false, 0.85};

class Bench {
 public:
  explicit Bench(Device& device) : device_(device), rates_(device, kSizes) {}

  /// Returns whether all fused kernels are fast enough.
  bool run() {
    ceilings();
    rates_.attempt([&] { products(); });
    rates_.attempt([&] {
      attention("attention", *cuda::make_cuda_backend({.attention = cuda::AttentionBy::own}));
    });
    if (cuda::dnn_refusal(0).empty())
      rates_.attempt([&] {
        attention("cuDNN", *cuda::make_cuda_backend({.attention = cuda::AttentionBy::cudnn}));
      });
    set_workspace();
    rates_.rows(DType::bf16);
    rates_.attempt([&] { rates_.flat(); });
    return rates_.slow() == 0;
  }

 private:
  void row(const std::string& name, double bytes, double flops, const std::function<void()>& call) {
    rates_.row(device_, name, bytes, flops, call);
  }

  void set_workspace() { set_workspace(device_); }
  static void set_workspace(Device& device) {
    device.set_workspace(device.memory().allocate(device.workspace_bytes(), "workspace"));
  }

  void ceilings() {
    rates_.copy(std::size_t{1} << 32);
    linear("GEMM 8192^3", {kSquare, kSquare, kSquare, false, DType::bf16}, false);
  }

  void linear(const std::string& name, const LinearShape& s, bool behind) {
    const auto map = device_.linear(s);
    set_workspace();
    const View x = rates_.memory().take(s.rows * s.in, s.compute),
               y = rates_.memory().take(s.rows * s.out, s.compute);
    const View w = rates_.memory().take(s.in * s.out, DType::f32),
               bias = rates_.memory().take(s.out, DType::f32);
    const View aux = rates_.memory().take(s.rows * s.out, s.compute);
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
      rates_.attempt([&] {
        linear(fmt::format("C -> 4C {}", p.precision),
               {p.rows, kC, 4 * kC, false, p.compute, p.products}, true);
      });
  }

  /// Measures attention on another backend of the same GPU.
  void attention(const std::string& name, Device& device) {
    const auto attention = device.attention({kSamples, kT, kH, kC / kH, DType::bf16});
    set_workspace(device);
    const View qkv = rates_.memory().take(kR * 3 * kC, DType::bf16),
               dqkv = rates_.memory().take(kR * 3 * kC, DType::bf16);
    const View y = rates_.memory().take(kR * kC, DType::bf16),
               dy = rates_.memory().take(kR * kC, DType::bf16);
    const View lse = rates_.memory().take(kR * kH, DType::f32);
    const double product = static_cast<double>(kR * (kT + 1)) * static_cast<double>(kC);
    const auto bytes = static_cast<double>(qkv.bytes() + y.bytes());
    device_.synchronize();  // the operands are ready
    rates_.row(device, name, bytes, 2 * product, [&] {
      device.run(AttentionForward{*attention, qkv, {}, y, lse});
    });
    rates_.row(device, name + " backward", 2 * bytes, 5 * product, [&] {
      device.run(AttentionBackward{*attention, dy, qkv, {}, y, lse, dqkv});
    });
  }

  Device& device_;
  KernelRates rates_;
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
