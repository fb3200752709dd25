// Random calls of every kernel of core/ops.h. A file per group contains its cases and its rates
// (rates.h).
// Invariant: a case is a pure function of its seed, so it can be run on two backends to compare the
// results.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/backend.h"
#include "tests/buffer.h"

namespace concertina {

/// One result of a case: what a backend wrote. Errors are relative to the largest value, or to
/// `scale` if the terms of a sum are larger than the sum.
struct Output {
  std::string name;
  std::vector<float> values;
  double scale = 0;
};
using Outputs = std::vector<Output>;

struct KernelCase {
  std::string name;      // kernel, sizes, precision
  double tolerance = 0;  // the error relative to the oracle that the precision explains
  std::function<Outputs(Backend&)> run;
};

/// Fails the test if an output is further from the oracle's than the case allows.
void expect_close(const Outputs& got, const Outputs& expected, const KernelCase& kernel);

/// Fails the test if two outputs are not bit-identical.
void expect_same_bits(const Outputs& got, const Outputs& expected, const KernelCase& kernel);

/// `rounds` random cases of each kernel; only of linear maps if nothing but products differs.
std::vector<KernelCase> kernel_cases(unsigned seed, int rounds, const Precision& precision);

/// The first words of the cases' names: "linear", "attention", ...
std::vector<std::string> kernel_names();

inline double tolerance(DType compute) {
  return compute == DType::bf16 ? 1e-2 : 1e-5;
}

/// Poisoned scratch memory for the operators created so far.
class Workspace {
 public:
  explicit Workspace(Backend& backend) : memory_(buffer_of_bytes(backend.workspace_bytes())) {
    backend.set_workspace(memory_.data());
  }

 private:
  Buffer memory_;
};

/// One round of cases, which gets its sizes from `data`.
struct CaseRound {
  unsigned seed;
  int number;  // starts at 0
  Precision precision;
  std::vector<KernelCase>& cases;
  Data data{seed};

  DType compute() const { return precision.storage; }

  /// Adds the case run(backend, numbers, sizes..., and the type of activations if it takes one).
  template <class Run, class... Sizes>
  KernelCase& add(const std::string& name, Run run, Sizes... sizes) {
    return push(name, [=, seed = seed, type = compute()](Backend& backend) {
      Data numbers(seed);
      const Workspace workspace(backend);
      if constexpr (std::is_invocable_v<Run, Backend&, Data&, Sizes..., DType>)
        return run(backend, numbers, sizes..., type);
      else
        return run(backend, numbers, sizes...);
    });
  }

 private:
  KernelCase& push(const std::string& name, std::function<Outputs(Backend&)> run);
};

// Each group adds one or more cases for each of its kernels.
void add_product_cases(CaseRound& round);
void add_norm_cases(CaseRound& round);
void add_activation_cases(CaseRound& round);
void add_vocabulary_cases(CaseRound& round);
void add_token_row_cases(CaseRound& round);
void add_elementwise_cases(CaseRound& round);
void add_update_cases(CaseRound& round);

/// A linear map with its packed weights; the buffers of its results are poisoned first.
class PackedMap {
 public:
  PackedMap(Backend& backend, const LinearShape& shape)
      : backend_(backend), map_(backend.linear(shape)) {}

  void pack(const Buffer& weight) {
    packed_ = buffer_of_bytes(map_->packed_bytes());
    backend_.run(PackWeights{*map_, weight.view(), packed_.data()});
  }
  Buffer forward(const Buffer& x, View bias, const Epilogue& epilogue = {}) const {
    Buffer y(map_->shape().rows * map_->shape().out, map_->shape().compute);
    backend_.run(LinearForward{*map_, x.view(), packed_.data(), bias, epilogue, y.view()});
    return y;
  }
  Buffer backward(const Buffer& dy, const Epilogue& epilogue = {}) const {
    Buffer dx(map_->shape().rows * map_->shape().in, map_->shape().compute);
    backend_.run(LinearInput{*map_, dy.view(), packed_.data(), epilogue, dx.view()});
    return dx;
  }
  void weight(const Buffer& x, const Buffer& dy, View dw, View db, bool accumulate) const {
    backend_.run(LinearWeight{*map_, x.view(), dy.view(), dw, db, accumulate});
  }

 private:
  Backend& backend_;
  std::shared_ptr<Linear> map_;
  Buffer packed_;
};

inline Output output(std::string name, const Buffer& buffer, double scale = 0) {
  return {std::move(name), buffer.values(), scale};
}

inline double largest(const Buffer& buffer) {
  double most = 0;
  for (const float value : buffer.values())
    most = std::max(most, std::abs(static_cast<double>(value)));
  return most;
}

inline std::int64_t odd_size(Data& data, std::int64_t most) {
  return data.pick<std::int64_t>({1, data.size(1, most), data.size(1, most), most});
}

}  // namespace concertina
