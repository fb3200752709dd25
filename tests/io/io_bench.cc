// Measures what one core reads per second (google-benchmark: --benchmark_...):
// io_bench tokens TOKENIZER FILE: encodes a text; the first round fills the cache of words.
// io_bench images FOLDER SIZE [SCALE [RANDAUGMENT]]: images of an image-folder, decoded, scaled to
// SIZE x SIZE pixels and augmented.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "core/error.h"
#include "io/datasets/dataset.h"
#include "io/file.h"

namespace concertina {
namespace {

void read(benchmark::State& rounds, const Dataset& images) {
  std::vector<float> image(static_cast<std::size_t>(images.fields()[0].elements()));
  const std::vector<View> views{{image.data(), image.size()}, {}};
  const std::uint64_t samples = images.samples(Split::train);
  std::uint64_t at = 0;
  for (auto _ : rounds) images.write({.sample = at % samples, .epoch = at / samples}, views), ++at;
  rounds.SetItemsProcessed(rounds.iterations());
}

int run(const std::vector<std::string>& words) {
  if (words.size() == 3 && words[0] == "tokens") {
    const auto tokenizer = make_tokenizer(words[1], "TOKENIZER");
    const std::string text = read_file(words[2], std::uint64_t{1} << 32);
    benchmark::RegisterBenchmark("tokens", [&](benchmark::State& rounds) {
      for (auto _ : rounds) benchmark::DoNotOptimize(tokenizer->tokens(text));
      rounds.SetBytesProcessed(rounds.iterations() * std::ssize(text));
    });
    benchmark::RunSpecifiedBenchmarks();
    return 0;
  }
  if (words.size() < 3 || words[0] != "images") {
    fmt::print(stderr,
               "usage: io_bench tokens TOKENIZER FILE\n"
               "       io_bench images FOLDER SIZE [SCALE [RANDAUGMENT]]\n");
    return 2;
  }
  DataOptions options{.format = "image-folder", .files = {words[1]}, .validation = 0};
  options.options["size"] = std::atoi(words[2].c_str());
  if (words.size() > 3) options.options["scale"] = std::atof(words[3].c_str());
  if (words.size() > 4) options.options["randaugment"] = std::atoi(words[4].c_str());
  const auto images = open_dataset(options);
  benchmark::RegisterBenchmark("images", [&](benchmark::State& rounds) { read(rounds, *images); });
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace concertina

int main(int count, char** arguments) try {
  benchmark::Initialize(&count, arguments);
  return concertina::run({arguments + 1, arguments + count});
} catch (const concertina::Error& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 2;
}
