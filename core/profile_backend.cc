#include "core/profile_backend.h"

#include <tuple>
#include <vector>

#include "core/backend_around.h"

namespace concertina {
namespace {

/// A kernel call between two marks, and the entries to which its time is added.
struct Timed {
  KernelTime *kernel = nullptr, *product = nullptr;
  double start = 0, end = 0;
};

/// The inner backend's clock, which also adds the kernels' times to the profile.
class ProfileClock final : public KernelClock {
 public:
  explicit ProfileClock(KernelClock& inner) : inner_(inner) {}

  void add(const Timed& call) { calls_.push_back(call); }

  void reserve(std::size_t marks) override { inner_.reserve(marks); }
  void forget_room() override { inner_.forget_room(); }
  double mark() override { return inner_.mark(); }
  void settle() override {
    inner_.settle();
    for (const Timed& call : calls_) {
      const double seconds = inner_.time(call.end) - inner_.time(call.start);
      call.kernel->seconds += seconds;
      if (call.product != nullptr) call.product->seconds += seconds;
    }
    calls_.clear();
  }
  double time(double mark) const override { return inner_.time(mark); }
  double mark_seconds() const override { return inner_.mark_seconds(); }
  void enter(const char* name) override { inner_.enter(name); }
  void leave() override { inner_.leave(); }

 private:
  KernelClock& inner_;
  std::vector<Timed> calls_;  // since the last settle()
};

class ProfileBackend final : public BackendAround {
 public:
  ProfileBackend(Backend& inner, Profile& profile)
      : BackendAround(inner), profile_(profile), clock_(inner.clock()) {
    for (std::size_t i = 0; i < kernels_.size(); ++i) kernels_[i] = &profile.kernels[kOpNames[i]];
  }

  std::shared_ptr<Linear> linear(const LinearShape& shape) override {
    profile_.products[shape];  // so that unused maps are also listed
    return BackendAround::linear(shape);
  }
  bool records_passes() const override {
    return !profile_.active && profile_.repeats && inner().records_passes();
  }
  void repeat(const RepeatedPass& pass, const std::function<void()>& issue) override {
    records_passes() ? inner().repeat(pass, issue) : issue();
  }
  KernelClock& clock() override { return clock_; }

 private:
  void before(Op& op) override {
    if (!profile_.active) return;
    under_way_.kernel = kernels_[op.index()];
    under_way_.product = std::visit([this](const auto& kernel) { return product(kernel); }, op);
    for (KernelTime* one : {under_way_.kernel, under_way_.product}) {
      if (one == nullptr) continue;
      ++one->calls;
      one->flops += flops_of(op);
    }
    under_way_.start = clock_.mark();
  }
  void after() override {
    if (!profile_.active) return;
    under_way_.end = clock_.mark();
    clock_.add(under_way_);
  }

  ProductTimes& times(const Linear& map) { return profile_.products.find(map.shape())->second; }
  KernelTime* product(const LinearForward& op) { return &times(op.map).forward; }
  KernelTime* product(const LinearInput& op) { return &times(op.map).input; }
  KernelTime* product(const LinearWeight& op) { return &times(op.map).weight; }
  template <class Other>
  KernelTime* product(const Other&) {
    return nullptr;
  }

  Profile& profile_;
  ProfileClock clock_;
  std::array<KernelTime*, kOpNames.size()> kernels_{};
  Timed under_way_;
};

}  // namespace

bool LinearOrder::operator()(const LinearShape& a, const LinearShape& b) const {
  const auto key = [](const LinearShape& s) {
    return std::tuple(s.rows, s.in, s.out, s.transposed, s.compute, s.products);
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
