// Measures kernels that only move memory, and compares each with a copy of the same number of bytes
// in the same run.
//
// Legend: R rows, T tokens per sample, C width, V vocabulary.
#pragma once

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "core/backend.h"

namespace concertina {

/// Sizes that fill the machine, and settings of the measurement.
struct RateSizes {
  std::int64_t samples, tokens, width, vocabulary;
  std::int64_t flat;     // elements of tensors without rows
  int batch, repeats;    // calls per measurement, to hide a launch; measurements
  bool copy_every_time;  // before each kernel, with its bytes; else once
  double least_share;    // of the copy's rate; below it, a kernel is slow
  std::int64_t rows() const { return samples * tokens; }
};

/// Allocates a backend's memory with random contents; it is kept until the end of the program.
class RateMemory {
 public:
  explicit RateMemory(Backend& device);
  View take(std::int64_t count, DType type);
  View integers(std::int64_t count, std::int32_t below);

 private:
  Backend& device_;
  std::vector<Bf16> random_;
  std::vector<float> wide_;
};

class KernelRates {
 public:
  KernelRates(Backend& device, const RateSizes& sizes);

  /// Prints the table's header, and the rate of a copy of `bytes`, half read and half written.
  void copy(std::size_t bytes);
  /// Prints a row: milliseconds, rates, share of the copy's rate.
  void row(Backend& device, const std::string& name, double bytes, double flops,
           const std::function<void()>& call);
  /// Measures a kernel that only moves memory; it counts as slow below the least share.
  void fused(const std::string& name, double bytes, const Op& op);
  /// Runs `part`; if it throws, it counts as slow, and the other parts still run.
  void attempt(const std::function<void()>& part);

  /// Measure the kernels of activations, and those of flat fp32 tensors.
  void rows(DType compute);
  void flat();

  Backend& device() { return device_; }
  const RateSizes& sizes() const { return sizes_; }
  RateMemory& memory() { return memory_; }
  int slow() const { return slow_; }

 private:
  double seconds(Backend& device, const std::function<void()>& call) const;
  double copy_rate(std::size_t bytes);

  Backend& device_;
  RateSizes sizes_;
  RateMemory memory_;
  View from_{}, to_{};          // of the copy
  double copy_ = 0, gemm_ = 0;  // bytes/s, FLOP/s
  double share_ = 0;            // of copy_, in the last row
  int slow_ = 0;
};

// The kernels of each group.
void norm_rates(KernelRates& rates, DType compute);
void activation_rates(KernelRates& rates, DType compute);
void vocabulary_rates(KernelRates& rates, DType compute);
void token_row_rates(KernelRates& rates, DType compute);
void dropout_rates(KernelRates& rates, DType compute);
void flat_rates(KernelRates& rates);
void update_rates(KernelRates& rates);

}  // namespace concertina
