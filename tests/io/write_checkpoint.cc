// For h5py_test.py: writes a checkpoint with known values and prints its path.
// usage: write_checkpoint DIRECTORY. Element i of part p of tensor t is 1000 * t + 100 * p + i / 4.
#include <fmt/format.h>

#include <cstdio>

#include "tests/io/checkpoint_fixture.h"

int main(int count, char** arguments) {
  using namespace concertina;
  if (count != 2) return 2;
  const std::vector<std::vector<std::int64_t>> shapes{
      {5}, {4, 6}, {3, 2, 5}, {1, 7, 2, 3}, {50, 40}};
  Random random(51);
  TestModel model;
  for (std::size_t t = 0; t < shapes.size(); ++t) {
    model.push_back(random_tensor(fmt::format("{:03}.unit/tensor", t), shapes[t],
                                  {"weight", "m", "v"}, random));
    float base = 1000 * static_cast<float>(t);
    for (const char* part : {"weight", "m", "v"}) {
      std::vector<float>& values = model[t].parts[part];
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = base + static_cast<float>(i) / 4;
      base += 100;
    }
  }
  try {
    fmt::print("{}\n", save(arguments[1], 12, cut(model, 4, random)));
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
