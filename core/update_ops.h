// The kernels of optimizers, as values; see core/ops.h.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/tensor.h"
#include "core/update_rules.h"

namespace concertina {

/// One AdamW update of w with moments m, v and gradient g (equal counts).
struct AdamWUpdate {
  static constexpr std::string_view kName = "adamw";
  AdamW rule;
  View w, m, v, g;
  auto views() { return std::array{&w, &m, &v, &g}; }
};

/// One step of stochastic gradient descent (core/update_rules.h). Updates w and m.
struct SgdUpdate {
  static constexpr std::string_view kName = "sgd";
  SgdRule rule;
  View w, m, g;
  auto views() { return std::array{&w, &m, &g}; }
};

/// One step of Lion (core/update_rules.h). Updates w and m.
struct LionUpdate {
  static constexpr std::string_view kName = "lion";
  LionRule rule;
  View w, m, g;
  auto views() { return std::array{&w, &m, &g}; }
};

/// One step of LAMB (core/update_rules.h) on a whole tensor. Updates w, m and v, and replaces g
/// with the direction u.
struct LambUpdate {
  static constexpr std::string_view kName = "lamb";
  LambRule rule;
  View w, m, v, g;
  auto views() { return std::array{&w, &m, &v, &g}; }
};

/// x = x / max(|x|, least), with the norm over all elements in fp64.
struct ScaleToUnit {
  static constexpr std::string_view kName = "scale to unit";
  View x;
  float least;
  auto views() { return std::array{&x}; }
};

/// Soft threshold, the proximal step of an L1 penalty: each x moves by `by` towards zero and stops
/// there.
struct Shrink {
  static constexpr std::string_view kName = "shrink";
  View x;
  float by;
  auto views() { return std::array{&x}; }
};

/// Sets x to zero where w is zero.
struct KeepZeros {
  static constexpr std::string_view kName = "keep zeros";
  View w, x;
  auto views() { return std::array{&w, &x}; }
};

/// y[R,first_y + j] = x[R,first_x + j] for j in [0, columns); y_columns and x_columns: row lengths.
struct CopyColumns {
  static constexpr std::string_view kName = "copy columns";
  View x;
  std::int64_t x_columns, first_x;
  View y;
  std::int64_t y_columns, first_y;
  std::int64_t columns;
  auto views() { return std::array{&x, &y}; }
};

#define CONCERTINA_UPDATE_KERNELS(KERNEL) \
  KERNEL(AdamWUpdate)                     \
  KERNEL(SgdUpdate)                       \
  KERNEL(LionUpdate)                      \
  KERNEL(LambUpdate)                      \
  KERNEL(ScaleToUnit)                     \
  KERNEL(Shrink)                          \
  KERNEL(KeepZeros)                       \
  KERNEL(CopyColumns)

}  // namespace concertina
