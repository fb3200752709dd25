// Readers of data against damaged files: whatever a file says, a reader accepts it or throws bad
// input that names a place. Run it with CONCERTINA_MUTATIONS=100000 and sanitizers for a long look;
// tests/README.md says how, and when that was last done.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "io/datasets/image_codec.h"
#include "io/datasets/tar_shard.h"
#include "tests/io/token_files.h"
#include "tests/io/webdataset_files.h"

namespace concertina {
namespace {

/// A format and the files of a sound dataset of it; each of them is damaged in turn.
struct FuzzSeed {
  std::string name;
  DataOptions options;  // files: the names below, in the folder of the test
  std::vector<std::string> names, contents;
};

std::string gzipped(const std::string& content) {
  const Folder folder;
  gzip(folder.path("a"), content);
  return slurp(folder.path("a"));
}

std::string token_file(std::uint64_t vocabulary) {
  const Folder folder;
  write_token_file(folder.path("a"), vocabulary, std::string(64, 'a'), {1, 50000, 3, 4, 5, 6, 7},
                   {0, 2, 7});
  return slurp(folder.path("a"));
}

DataOptions of_format(const std::string& format) {
  DataOptions options;
  options.format = format;
  options.validation = 0;
  options.tokens_per_sample = 3;
  options.windows = "fixed";
  options.vocabulary = 50257;
  return options;
}

/// One file that all of its format reads.
FuzzSeed seed_of(const std::string& name, const std::string& format, const std::string& file,
                 const std::string& content) {
  FuzzSeed seed{name, of_format(format), {file}, {content}};
  return seed;
}

FuzzSeed with_tokens(FuzzSeed seed, std::int64_t tokens) {
  seed.options.tokens_per_sample = tokens;
  seed.options.stride = 4;
  return seed;
}

/// A new reader adds its line here.
std::vector<FuzzSeed> fuzz_seeds() {
  const std::string images = idx(0x803, {5, 2, 3}, ramp(30));
  const std::string labels = idx(0x801, {5}, std::string("\x00\x09\x03\x03\x01", 5));
  const std::string ids = little_endian(std::vector<std::uint16_t>{1, 50000, 3, 4, 5, 6, 7});
  const std::string wide = little_endian(std::vector<std::int32_t>{1, 50000, 3, 4, 5, 6, 7});
  const auto mnist = [&](const std::string& name, const std::string& first,
                         const std::string& second) {
    return FuzzSeed{name, of_format("mnist"), {"images", "labels"}, {first, second}};
  };
  FuzzSeed megatron = seed_of("megatron", "tokens", "train.bin", ids);
  megatron.names.emplace_back("train.idx");
  megatron.contents.push_back(MegatronIndex().text());
  FuzzSeed names = seed_of("cifar10_with_names", "cifar10", "batch.bin", cifar_record("\x07", 1));
  names.names.emplace_back("batches.meta.txt");
  names.contents.emplace_back("a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n");
  std::vector<FuzzSeed> seeds{
      seed_of("text", "text", "a.txt", "To be, or not to be: that is the question.\n"),
      seed_of("nanogpt", "tokens", "train.bin", ids),
      seed_of("llmc_16_bit", "tokens", "train.bin", llmc(20240520, 1, 7, ids)),
      seed_of("llmc_32_bit", "tokens", "train.bin", llmc(20240801, 7, 7, wide)),
      megatron,
      seed_of("token_file_16_bit", "tokens", "train.tok", token_file(50257)),
      seed_of("token_file_32_bit", "tokens", "train.tok", token_file(100000)),
      mnist("mnist", images, labels),
      mnist("mnist_gz", gzipped(images), gzipped(labels)),
      names,
      seed_of("cifar100", "cifar100", "train.bin", cifar_record("\x13\x63", 1)),
      seed_of("cifar100_coarse_gz", "cifar100-coarse", "train.bin",
              gzipped(cifar_record("\x13\x63", 1))),
      with_tokens(
          seed_of("tsv", "tsv", "a.tsv", "sentence\tlabel\ngood\t1\nbad \t0\nvery, very long\t1\n"),
          8),
      with_tokens(seed_of("tsv_pairs", "tsv", "a.tsv",
                          "idx\tsentence1\tlabel\tsentence2\r\n0\tabcdef\tno\txy\r\n1\tab\tyes\tc"),
                  9),
      with_tokens(seed_of("squad", "squad", "s.json", squad_json("river Rhine", 15)), 68),
  };
  if (has_libarchive() && png_codec().available() && jpeg_codec().available()) {
    const std::string shard = tar(three_samples());
    seeds.push_back(seed_of("webdataset", "webdataset", "s.tar", shard));
    seeds.push_back(seed_of("webdataset_gz", "webdataset", "s.tar", gzipped(shard)));
  }
  return seeds;
}

/// `bytes` after one to three damages; half of them are in the first 48 bytes, as headers are.
std::string damaged(std::string bytes, Random& random) {
  for (std::int64_t i = draw(random, 1, 3); i > 0 && !bytes.empty(); --i) {
    const std::int64_t last = std::ssize(bytes) - 1;
    const auto at = static_cast<std::size_t>(
        draw(random, 0, draw(random, 0, 1) == 0 ? std::min<std::int64_t>(last, 48) : last));
    const auto few = static_cast<std::size_t>(draw(random, 1, 9));
    switch (draw(random, 0, 5)) {
      case 0:
        bytes[at] = static_cast<char>(draw(random, 0, 255));
        break;
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << draw(random, 0, 7)));
        break;
      case 2:
        bytes.resize(at);
        break;
      case 3:
        bytes.insert(at, bytes.substr(at, few));
        break;
      case 4:
        std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                    std::min(few, bytes.size() - at), draw(random, 0, 1) == 0 ? '\0' : '\xff');
        break;
      default:
        bytes.erase(at, few);
    }
  }
  return bytes;
}

/// Whether the dataset is refused; fails the test where the refusal does not say a place.
bool refused(const DataOptions& options, const std::string& what) {
  try {
    read_all(*open_dataset(options));
    return false;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::bad_input) << what << ": " << error.what();
    EXPECT_FALSE(error.where().empty()) << what;
    return true;
  }
}

class ReaderFuzz : public testing::TestWithParam<FuzzSeed> {};

TEST_P(ReaderFuzz, DamagedFilesAreRefusedOrRead) {
  const FuzzSeed& seed = GetParam();
  const char* asked = std::getenv("CONCERTINA_MUTATIONS");
  const std::uint64_t turns = asked != nullptr ? std::strtoull(asked, nullptr, 10) : 300;
  const Folder folder;
  DataOptions options = seed.options;
  for (std::size_t f = 0; f < seed.names.size(); ++f) {
    const std::string path = folder(seed.names[f], seed.contents[f]);
    // What stands beside a file is found by its name.
    if (f == 0 || seed.options.format == "mnist") options.files.push_back(path);
  }
  ASSERT_FALSE(refused(options, "the sound files"));
  std::uint64_t refusals = 0;
  for (std::uint64_t turn = 0; turn < turns; ++turn) {
    const std::size_t f = turn % seed.names.size();
    Random random(turn);
    folder(seed.names[f], damaged(seed.contents[f], random));
    refusals += refused(options, fmt::format("{} {}", seed.names[f], turn)) ? 1 : 0;
    if (HasFailure()) return;
    folder(seed.names[f], seed.contents[f]);
  }
  RecordProperty("refusals", std::to_string(refusals));
  if (seed.options.format == "text")
    EXPECT_LT(refusals, turns) << "any bytes are text";
  else
    EXPECT_GT(refusals, turns / 10) << "hardly any lie was seen";
}

INSTANTIATE_TEST_SUITE_P(Of, ReaderFuzz, testing::ValuesIn(fuzz_seeds()),
                         [](const auto& seed) { return seed.param.name; });

}  // namespace
}  // namespace concertina
