#include "core/profile_backend.h"

#include <chrono>
#include <tuple>

#include "core/backend_around.h"

namespace concertina {
namespace {

using Clock = std::chrono::steady_clock;

class ProfileBackend final : public BackendAround {
 public:
  ProfileBackend(Backend& inner, Profile& profile) : BackendAround(inner), profile_(profile) {
    for (std::size_t i = 0; i < kernels_.size(); ++i)
      kernels_[i] = &profile.kernels[kKernelNames[i]];
  }

  std::unique_ptr<Linear> linear(const LinearShape& shape) override {
    profile_.products[shape];  // also of a map that nothing calls
    return BackendAround::linear(shape);
  }

 private:
  void before(const KernelCall& call) override {
    kernel_ = kernels_[static_cast<std::size_t>(call.kernel)];
    product_ = call.packed == nullptr ? nullptr : product(call.kernel, call.packed->shape);
    flops_ = call.flops;
    start_ = Clock::now();
  }
  void after() override {
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    add(*kernel_, seconds);
    if (product_ != nullptr) add(*product_, seconds);
  }

  KernelTime* product(Kernel kernel, const LinearShape& shape) {
    ProductTimes& times = profile_.products.find(shape)->second;
    if (kernel == Kernel::linear_forward) return &times.forward;
    if (kernel == Kernel::linear_input) return &times.input;
    if (kernel == Kernel::linear_weight) return &times.weight;
    return nullptr;
  }
  void add(KernelTime& to, double seconds) const {
    ++to.calls;
    to.seconds += seconds;
    to.flops += flops_;
  }

  Profile& profile_;
  std::array<KernelTime*, kKernelNames.size()> kernels_{};
  KernelTime *kernel_ = nullptr, *product_ = nullptr;  // of the kernel under way, as these
  double flops_ = 0;
  Clock::time_point start_;
};

}  // namespace

bool LinearOrder::operator()(const LinearShape& a, const LinearShape& b) const {
  const auto key = [](const LinearShape& s) {
    return std::tuple(s.rows, s.in, s.out, s.transposed, s.compute);
  };
  return key(a) < key(b);
}

void Profile::reset() {
  for (auto& [name, kernel] : kernels) kernel = {};
  for (auto& [shape, times] : products) times = {};
}

std::unique_ptr<Backend> make_profile_backend(Backend& inner, Profile& profile) {
  return std::make_unique<ProfileBackend>(inner, profile);
}

}  // namespace concertina
