// For h5py_test.py: writes a checkpoint with known values and prints its path.
// usage: write_checkpoint DIRECTORY. Element i of part p of tensor t is 1000 * t + 100 * p + i / 4.
#include <fmt/format.h>

#include <cstdio>

#include "core/error.h"
#include "tests/io/checkpoint_case.h"

int main(int count, char** arguments) {
  using namespace concertina;
  if (count != 2) return 2;
  const std::vector<std::vector<std::int64_t>> shapes{
      {5}, {4, 6}, {3, 2, 5}, {1, 7, 2, 3}, {50, 40}};
  Contents contents;
  for (std::size_t t = 0; t < shapes.size(); ++t) {
    const std::string name = fmt::format("{:03}.unit/tensor", t);
    std::int64_t elements = 1;
    for (const std::int64_t dim : shapes[t]) elements *= dim;
    contents.shapes[name] = shapes[t];
    float base = 1000 * static_cast<float>(t);
    for (const char* part : {"weight", "m", "v"}) {
      for (std::int64_t i = 0; i < elements; ++i)
        contents.values[{name, part}].push_back(base + static_cast<float>(i) / 4);
      base += 100;
    }
  }
  try {
    Random random(51);
    fmt::print("{}\n", commit(arguments[1], 12, contents, 4, random));
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
