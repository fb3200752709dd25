#include "io/npy.h"

#include <fmt/format.h>

#include "core/error.h"

namespace concertina {

std::string npy_header(DType type, std::span<const std::int64_t> shape) {
  CONCERTINA_CHECK(type == DType::f32 || type == DType::i32, "an array of neither f32 nor i32");
  CONCERTINA_CHECK(shape.size() <= 8, "{} extents", shape.size());
  std::string extents;
  for (const std::int64_t extent : shape) extents += fmt::format("{}, ", extent);
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                 type == DType::f32 ? "<f4" : "<i4", extents);
  constexpr std::size_t kBefore = 10;  // magic, version, length
  text.resize(kNpyHeader - kBefore - 1, ' ');
  constexpr std::size_t kLength = kNpyHeader - kBefore;
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(kLength & 0xff) +
         static_cast<char>(kLength >> 8) + text + "\n";
}

}  // namespace concertina
