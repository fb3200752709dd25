// The scratch shared by all operators, inside the block passed to set_workspace().
// Invariant: work is ordered by one stream, so operators may use the same bytes one after another.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/tensor.h"

namespace concertina::cuda {

/// The step and sample for the masks of a recorded pass; both change between launches.
struct MaskPlace {
  std::uint32_t step = 0, sample = 0;
  bool operator==(const MaskPlace&) const = default;
};

class Workspace {
 public:
  /// Registers the scratch of an operator, and memory for a bias in the products' type.
  void need(std::size_t scratch, std::size_t bias) {
    scratch_ = std::max(scratch_, align_up(scratch));
    bias_ = std::max(bias_, align_up(bias));
  }
  std::size_t bytes() const {
    return scratch_ + bias_ + align_up(sizeof(MaskPlace)) + kBlasAlignment;
  }
  void set(void* block) {
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    start_ = static_cast<std::byte*>(block) + (align_up(address, kBlasAlignment) - address);
  }

  void* scratch() const { return start_; }
  void* bias() const { return start_ + scratch_; }
  MaskPlace* mask_place() const { return reinterpret_cast<MaskPlace*>(start_ + scratch_ + bias_); }

 private:
  static constexpr std::size_t kBlasAlignment = 256;  // for cuBLASLt's scratch
  std::size_t scratch_ = 0, bias_ = 0;
  std::byte* start_ = nullptr;
};

}  // namespace concertina::cuda
