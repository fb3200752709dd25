// A backend that times another one's kernels: the breakdown of `bench step`.
// Invariant: it forwards every call unchanged (core/backend_around.h); a kernel costs two marks of
// the inner backend's clock more, and a product a look-up.
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
  double flops = 0;  // of products only, as really computed
};

/// The three products of one linear map.
struct ProductTimes {
  KernelTime forward, input, weight;
};

struct LinearOrder {
  bool operator()(const LinearShape& a, const LinearShape& b) const;
};

/// Seconds are those up to the last settle() of its backend's clock.
struct Profile {
  bool active = true;   // else kernels pass by, neither timed nor counted
  bool repeats = true;  // while not active: repeated passes may be replayed (Backend::repeat)
  std::map<std::string_view, KernelTime> kernels;
  std::map<LinearShape, ProductTimes, LinearOrder> products;
  void reset();
};

/// `inner` and `profile` outlive the result.
std::unique_ptr<Backend> make_profile_backend(Backend& inner, Profile& profile);

}  // namespace concertina
