// The precision of a run: a value of numerics.compute.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/tensor.h"

namespace concertina {

/// The operand type of linear maps; sums are always fp32. `tf32` is fp32 truncated to 10 bits;
/// `fp8` is E4M3, or E5M2 for output gradients, with one scale per tensor.
enum class Products : std::uint8_t { as_stored, tf32, fp8 };

struct Precision {
  DType storage = DType::f32;  // type of activations and their gradients
  Products products = Products::as_stored;

  constexpr Precision() = default;
  /// Converts a plain type to the precision of the same name.
  constexpr Precision(DType type, Products factors = Products::as_stored)
      : storage(type), products(factors) {}
  bool operator==(const Precision&) const = default;
};

/// All precisions.
inline constexpr std::array kPrecisions{
    Precision(DType::f32), Precision(DType::f32, Products::tf32), Precision(DType::bf16),
    Precision(DType::bf16, Products::fp8)};

/// Returns "fp32", "tf32", "bf16" or "fp8".
std::string_view name_of(const Precision& precision);
/// Returns the precision with this name, if there is one.
std::optional<Precision> find_precision(std::string_view name);
/// Returns a list such as "fp32, bf16".
std::string list_names(std::span<const Precision> precisions);

}  // namespace concertina
