// image_bench FOLDER SIZE [SCALE [RANDAUGMENT [ROUNDS]]]: images of an image-folder that one core
// reads in a second, the median of rounds: decoded, scaled to squares of SIZE pixels, augmented.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <vector>

#include "core/error.h"
#include "io/datasets/dataset.h"

int main(int count, char** arguments) try {
  using namespace concertina;
  if (count < 3) {
    fmt::print(stderr, "usage: image_bench FOLDER SIZE [SCALE [RANDAUGMENT [ROUNDS]]]\n");
    return 2;
  }
  DataOptions options;
  options.format = "image-folder";
  options.files = {arguments[1]};
  options.validation = 0;
  options.options["size"] = std::atoi(arguments[2]);
  if (count > 3) options.options["scale"] = std::atof(arguments[3]);
  if (count > 4) options.options["randaugment"] = std::atoi(arguments[4]);
  const auto dataset = open_dataset(options);
  std::vector<float> image(static_cast<std::size_t>(dataset->fields()[0].elements()));
  const std::vector<View> views{{image.data(), image.size()}, {}};
  std::vector<double> rates;
  const int rounds = count > 5 ? std::max(1, std::atoi(arguments[5])) : 5;
  for (int round = 0; round < rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (std::uint64_t i = 0; i < dataset->samples(Split::train); ++i)
      dataset->write({.sample = i, .epoch = static_cast<std::uint64_t>(round)}, views);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    rates.push_back(static_cast<double>(dataset->samples(Split::train)) / seconds.count());
  }
  std::ranges::sort(rates);
  fmt::print("{{\"images\": {}, \"images_per_s\": {:.1f}}}\n", dataset->samples(Split::train),
             rates[rates.size() / 2]);
} catch (const concertina::Error& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 2;
}
