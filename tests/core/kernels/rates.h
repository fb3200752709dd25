// Times kernels that move memory, each against a copy of memory in the same run: what a kernel
// should take is what its bytes take.
//
// Legend: R rows, T tokens a sample, C width, V vocabulary.
#pragma once

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "core/backend.h"

namespace concertina {

/// What fills the machine, and how it is measured.
struct RateSizes {
  std::int64_t samples, tokens, width, vocabulary;
  std::int64_t flat;     // elements of what has no rows
  int batch, repeats;    // calls that hide a launch; times of which the median counts
  bool copy_every_time;  // beside each kernel, of its own bytes; else once
  double least_share;    // of the copy's rate, or a kernel is slow
  std::int64_t rows() const { return samples * tokens; }
};

/// Memory of a backend with random contents, kept until the end of the program.
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

  /// Prints the head of the table, and the rate of a copy of `bytes`, half read and half written.
  void copy(std::size_t bytes);
  /// Prints a line: milliseconds, rates, share of the copy.
  void row(Backend& device, const std::string& name, double bytes, double flops,
           const std::function<void()>& call);
  /// One that should take what its bytes take; it counts as slow below the least share.
  void fused(const std::string& name, double bytes, const Op& op);
  /// Runs `part`; that it cannot be run counts as slow, and the others have news too.
  void attempt(const std::function<void()>& part);

  /// The kernels of activations, and those of flat tensors in fp32.
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
  double share_ = 0;            // of copy_, by the last row
  int slow_ = 0;
};

// Each group's kernels.
void norm_rates(KernelRates& rates, DType compute);
void activation_rates(KernelRates& rates, DType compute);
void vocabulary_rates(KernelRates& rates, DType compute);
void token_row_rates(KernelRates& rates, DType compute);
void dropout_rates(KernelRates& rates, DType compute);
void flat_rates(KernelRates& rates);
void update_rates(KernelRates& rates);

}  // namespace concertina
