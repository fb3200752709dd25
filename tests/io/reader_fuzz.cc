// Tests readers with damaged files: whatever a file contains, a reader accepts it or throws bad
// input that names a place. For a long run, use CONCERTINA_MUTATIONS=100000 and sanitizers;
// tests/README.md says how, and when that was last done.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "tests/io/fuzz_seeds.h"
#include "tests/io/reader_cases.h"

namespace concertina {
namespace {

/// Damages `bytes` in one to three places, half of them in the first 48 bytes, where headers are.
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

/// Returns whether the files are rejected; fails the test if the error does not name a place.
bool refused(const FuzzSeed& seed, const Folder& folder, const std::string& what) {
  try {
    seed.read(folder);
    return false;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::bad_input) << what << ": " << error.what();
    EXPECT_FALSE(error.where().empty()) << what;
    return true;
  }
}

/// Returns a valid case of the table of readers.
FuzzSeed seed_of(const ReaderCase& one) {
  FuzzSeed seed{.name = one.test_name(), .refuses = one.format != "text"};  // any bytes are text
  for (const auto& [name, bytes] : one.files) {
    seed.names.push_back(name);
    seed.contents.push_back(bytes_of(bytes));
  }
  seed.read = [one](const Folder& folder) { read_all(*open_dataset(options_of(one, folder))); };
  return seed;
}

std::vector<FuzzSeed> all_seeds() {
  std::vector<FuzzSeed> all = model_seeds();
  for (const ReaderCase& one : reader_cases())
    if (one.is_base) all.push_back(seed_of(one));
  return all;
}

class ReaderFuzz : public testing::TestWithParam<FuzzSeed> {};

TEST_P(ReaderFuzz, DamagedFilesAreRefusedOrRead) {
  const FuzzSeed& seed = GetParam();
  const char* asked = std::getenv("CONCERTINA_MUTATIONS");
  const std::uint64_t turns = asked != nullptr ? std::strtoull(asked, nullptr, 10) : 300;
  const Folder folder;
  for (std::size_t f = 0; f < seed.names.size(); ++f) folder(seed.names[f], seed.contents[f]);
  seed.read(folder);  // valid files are accepted
  std::uint64_t refusals = 0;
  for (std::uint64_t turn = 0; turn < turns; ++turn) {
    const std::size_t f = turn % seed.names.size();
    Random random(turn);
    folder(seed.names[f], damaged(seed.contents[f], random));
    refusals += refused(seed, folder, fmt::format("{} {}", seed.names[f], turn)) ? 1 : 0;
    if (HasFailure()) return;
    folder(seed.names[f], seed.contents[f]);
  }
  RecordProperty("refusals", std::to_string(refusals));
  if (seed.refuses)
    EXPECT_GT(refusals, turns / 10) << "hardly any damage was detected";
  else
    EXPECT_LT(refusals, turns) << "some damage gives another valid file";
}

INSTANTIATE_TEST_SUITE_P(Of, ReaderFuzz, testing::ValuesIn(all_seeds()),
                         [](const auto& seed) { return seed.param.name; });

}  // namespace
}  // namespace concertina
