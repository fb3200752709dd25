// The inverse of to_floats().
#pragma once

#include <vector>

#include "core/error.h"
#include "core/tensor.h"

namespace concertina {

/// Writes values, rounded, into a view of fp32 or bf16 with the same number of elements.
inline void assign(View to, const std::vector<float>& values) {
  CONCERTINA_CHECK(to.count == values.size(), "{} values, {} elements", values.size(), to.count);
  const auto copy = [&]<class T>(T* out) {
    for (std::size_t i = 0; i < values.size(); ++i) out[i] = rounded<T>(values[i]);
  };
  if (to.dtype == DType::bf16)
    copy(to.as<Bf16>());
  else
    copy(to.f32());
}

}  // namespace concertina
