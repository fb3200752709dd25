// A backend that times the kernels of another one, for the breakdown of `bench step`.
// Invariant: it forwards every call unchanged (core/backend_around.h). Each kernel needs two
// additional marks of the inner backend's clock, and a product also needs a lookup.
#pragma once

#include <map>
#include <memory>
#include <string_view>

#include "core/backend.h"

namespace concertina {

/// Calls, seconds and operations of one kernel since the last reset.
struct KernelTime {
  std::int64_t calls = 0;
  double seconds = 0;
  double flops = 0;  // products only, as actually computed
};

/// The three products of one linear map.
struct ProductTimes {
  KernelTime forward, input, weight;
};

struct LinearOrder {
  bool operator()(const LinearShape& a, const LinearShape& b) const;
};

/// Times include all kernels up to the last settle() of the backend's clock.
struct Profile {
  bool active = true;   // otherwise kernels are neither timed nor counted
  bool repeats = true;  // if not active, passes may be replayed (Backend::repeat)
  std::map<std::string_view, KernelTime> kernels;
  std::map<LinearShape, ProductTimes, LinearOrder> products;
  void reset();
};

/// `inner` and `profile` must outlive the result.
std::unique_ptr<Backend> make_profile_backend(Backend& inner, Profile& profile);

}  // namespace concertina
