#include "core/tensor.h"

#include <functional>
#include <numeric>

#include "core/error.h"

namespace concertina {

std::size_t size_of(DType type) {
  switch (type) {
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
      return 2;
  }
  return 0;
}

std::string_view name_of(DType type) {
  switch (type) {
    case DType::f32:
      return "fp32";
    case DType::i32:
      return "int32";
    case DType::bf16:
      return "bf16";
  }
  return "?";
}

std::int64_t elements_of(std::span<const std::int64_t> shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies{});
}

View View::slice(std::size_t begin, std::size_t n) const {
  CONCERTINA_CHECK(begin + n <= count, "slice [{}, {}) of {} elements", begin, begin + n, count);
  return {static_cast<std::byte*>(data) + begin * size_of(dtype), n, dtype};
}

void View::expect(DType wanted) const {
  CONCERTINA_CHECK(dtype == wanted, "{} read as {}", name_of(dtype), name_of(wanted));
}

std::vector<float> to_floats(View view) {
  std::vector<float> values(view.count);
  const auto copy = [&](const auto* from) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = to_float(from[i]);
  };
  if (view.dtype == DType::bf16)
    copy(view.as<Bf16>());
  else
    copy(view.f32());
  return values;
}

}  // namespace concertina
