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

/// The type of the factors that linear maps multiply; sums are fp32 in any case.
/// `tf32`: fp32 cut to 10 bits. `fp8`: E4M3, output gradients E5M2, one scale a tensor.
enum class Products : std::uint8_t { as_stored, tf32, fp8 };

struct Precision {
  DType storage = DType::f32;  // of activations and their gradients
  Products products = Products::as_stored;

  constexpr Precision() = default;
  /// A type alone is the precision of that name.
  constexpr Precision(DType type, Products factors = Products::as_stored)
      : storage(type), products(factors) {}
  bool operator==(const Precision&) const = default;
};

/// All precisions that a backend may be asked for.
inline constexpr std::array kPrecisions{
    Precision(DType::f32), Precision(DType::f32, Products::tf32), Precision(DType::bf16),
    Precision(DType::bf16, Products::fp8)};

/// "fp32", "tf32", "bf16", "fp8".
std::string_view name_of(const Precision& precision);
/// The one of kPrecisions that has this name; empty where none has.
std::optional<Precision> find_precision(std::string_view name);
/// "fp32, bf16".
std::string list_names(std::span<const Precision> precisions);

}  // namespace concertina
