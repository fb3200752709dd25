// Text data: an epoch visits each of its sequences once, however steps are divided into batches,
// and no validation byte is ever trained on.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <thread>

#include "io/datasets/source.h"
#include "io/datasets/windows.h"
#include "io/sha256.h"
#include "io/text_memory.h"
#include "tests/buffer.h"
#include "tests/io/io_test.h"

namespace concertina {
namespace {

std::string random_text(std::int64_t bytes, std::uint64_t seed) {
  Random random(seed);
  std::string text(static_cast<std::size_t>(bytes), '\0');
  for (char& c : text) c = static_cast<char>(draw(random, 0, 255));
  return text;
}

struct Case {
  Case(std::string content, std::int64_t tokens, double validation,
       const std::string& windows = "shifted")
      : text(std::move(content)) {
    spill(root.path() + "/text", text);
    dataset = open_dataset({.files = {root.path() + "/text"},
                            .validation = validation,
                            .tokens_per_sample = tokens,
                            .options = {{"windows", windows}}});
    const auto held = static_cast<std::uint64_t>(static_cast<double>(text.size()) * validation);
    cut = {text.size() - held, static_cast<std::uint64_t>(tokens), windows == "fixed"};
  }
  /// Returns the first byte of sample `index` in the endless sequence of epochs.
  std::uint64_t begin(const TrainingSource& source, std::uint64_t seed, std::uint64_t index) const {
    const auto place = source.place(index);
    return cut.begin(seed, place.epoch, place.sample);
  }
  TemporaryDirectory root;
  std::string text;
  std::shared_ptr<const Dataset> dataset;
  WindowCut cut;
};

/// (bytes, tokens per sample, validation share): long, odd, just one sample, just two.
struct Sizes {
  std::int64_t bytes, tokens;
  double validation;
};
const std::vector<Sizes> kSizes{{5000, 16, 0.1}, {997, 7, 0.3}, {300, 1, 0.05},
                                {17, 16, 0},     {34, 16, 0},   {9000, 4500, 0.2}};

std::vector<std::int32_t> load(BatchSource& source, std::int64_t step, std::int64_t first,
                               std::int64_t count, bool targets) {
  Buffer out(static_cast<std::size_t>(count * source.fields()[0].elements()), DType::i32);
  source.load(step, first, count,
              std::array{targets ? View{} : out.view(), targets ? out.view() : View{}});
  return {out.view().i32(), out.view().i32() + out.size()};
}

/// Returns where the samples of each of the first epochs begin, in the order of their use.
std::vector<std::vector<std::uint64_t>> begins_of(const Case& c, const TrainingSource& source,
                                                  std::uint64_t seed, std::uint64_t epochs) {
  std::vector<std::vector<std::uint64_t>> begins(epochs);
  for (std::uint64_t i = 0; source.place(i).epoch < epochs; ++i)
    begins[source.place(i).epoch].push_back(c.begin(source, seed, i));
  return begins;
}

TEST(TrainingSource, AnEpochTakesEachSequenceOnceAndNeverAValidationByte) {
  for (const Sizes& sizes : kSizes)
    for (const bool fixed : {false, true}) {
      SCOPED_TRACE(fmt::format("{} bytes, {} tokens, {}", sizes.bytes, sizes.tokens, fixed));
      const Case c(random_text(sizes.bytes, 1), sizes.tokens, sizes.validation,
                   fixed ? "fixed" : "shifted");
      const TrainingSource source(c.dataset, 5, 3);
      const auto length = static_cast<std::uint64_t>(sizes.tokens);
      auto epochs = begins_of(c, source, 5, 3);
      for (std::uint64_t i = 0; fixed && i < 3 * epochs[0].size(); ++i)
        ASSERT_EQ(source.sample(static_cast<std::int64_t>(i / 3), i % 3),
                  c.begin(source, 5, i) / length);
      if (epochs[0].size() > 20) {
        EXPECT_NE(epochs[0], epochs[1]);
      }
      for (auto& begins : epochs) {
        std::ranges::sort(begins);
        // The last target is one byte after the last token.
        ASSERT_LT(begins.back() + length, c.cut.tokens);
        EXPECT_LT(begins.front(), fixed ? 1 : length);  // the epoch's offset
        for (std::size_t i = 1; i < begins.size(); ++i)
          ASSERT_EQ(begins[i], begins[i - 1] + length);
        EXPECT_GE(begins.back() + 2 * length + (fixed ? 0 : 1), c.cut.tokens) << "one is missing";
        if (fixed) {
          EXPECT_EQ(begins.size(), source.samples_per_epoch());
        }
      }
    }
}

TEST(TrainingSource, TokensAreTheTextAndTargetsTheSameShiftedByOne) {
  for (const Sizes& sizes : kSizes) {
    const Case c(random_text(sizes.bytes, 2), sizes.tokens, sizes.validation);
    TrainingSource source(c.dataset, 9, 2), places(c.dataset, 9, 2);
    for (std::int64_t step = 0; step < 6; ++step) {
      const auto tokens = load(source, step, 0, 2, false), targets = load(source, step, 0, 2, true);
      for (std::int64_t i = 0; i < 2 * sizes.tokens; ++i) {
        const auto begin = c.begin(places, 9, step * 2 + i / sizes.tokens);
        const std::uint64_t at = begin + i % sizes.tokens;
        ASSERT_EQ(tokens[i], static_cast<unsigned char>(c.text[at]));
        ASSERT_EQ(targets[i], static_cast<unsigned char>(c.text[at + 1]));
      }
    }
  }
}

/// The global sequence of samples is the same for every batch size, division of a batch and order
/// of calls.
TEST(TrainingSource, DoesNotDependOnCutsOrHistory) {
  for (const char* const windows : {"shifted", "fixed"}) {
    const Case c(random_text(2000, 3), 11, 0.1, windows);
    TrainingSource whole(c.dataset, 7, 1000);
    const auto all = load(whole, 0, 0, 1000, false);
    Random random(4);
    for (const std::int64_t batch : {1, 3, 8, 100}) {
      TrainingSource source(c.dataset, 7, batch);
      for (int i = 0; i < 40; ++i) {  // steps in random order, like resumes and evaluations
        const std::int64_t step = draw(random, 0, 1000 / batch - 1), first = draw(random, 0, batch),
                           count = draw(random, 0, batch - first);
        const auto got = load(source, step, first, count, false);
        ASSERT_TRUE(std::equal(got.begin(), got.end(), all.begin() + (step * batch + first) * 11));
      }
    }
    TrainingSource other(c.dataset, 8, 1000);
    EXPECT_NE(load(other, 0, 0, 1000, false), all);
  }
}

/// The content of a sample depends only on its number, as a cache of samples requires.
TEST(FixedWindows, ASampleIsTheSameTextInEveryEpoch) {
  const Case c(random_text(2000, 3), 11, 0.1, "fixed");
  TrainingSource source(c.dataset, 7, 8);
  std::map<std::uint64_t, std::vector<std::int32_t>> seen;
  const auto steps = static_cast<std::int64_t>(3 * source.samples_per_epoch() / 8);
  for (std::int64_t step = 0; step < steps; ++step)
    for (std::int64_t i = 0; i < 8; ++i) {
      const auto targets = load(source, step, i, 1, true);
      const auto [at, fresh] = seen.try_emplace(source.sample(step, i), targets);
      ASSERT_EQ(at->second, targets) << "step " << step;
      ASSERT_EQ(targets.front(), static_cast<unsigned char>(c.text[at->first * 11 + 1]));
    }
  EXPECT_EQ(seen.size(), source.samples_per_epoch());
  // Shifted windows are cut differently in each epoch, so their samples have no numbers.
  const Case shifted(c.text, 11, 0.1);
  TrainingSource other(shifted.dataset, 7, 8);
  EXPECT_NE(load(other, 0, 0, 8, true), load(source, 0, 0, 8, true));
  EXPECT_THROW(other.sample(0, 0), std::exception);
  EXPECT_THROW(other.samples_per_epoch(), std::exception);
  EXPECT_THROW(source.sample(0, 8), std::exception);
}

TEST(TrainingSource, KnowsWhereAStepIsInItsEpoch) {
  for (const char* const windows : {"shifted", "fixed"})
    for (const std::int64_t batch : {1, 3, 7, 200}) {  // 200: several epochs in one step
      SCOPED_TRACE(fmt::format("{}, batch of {}", windows, batch));
      const Case c(random_text(997, 1), 7, 0.3, windows);
      TrainingSource source(c.dataset, 5, batch);
      std::uint64_t epoch = 0, done = 0;  // counted sample by sample
      for (std::int64_t step = 0; step < 1200 / batch; ++step) {
        const auto at = source.position(step);
        ASSERT_EQ(at.epoch, epoch) << step;
        ASSERT_EQ(at.done, done) << step;
        ASSERT_LT(at.done, at.samples);
        ASSERT_LE(source.first_step(at.epoch), step);
        ASSERT_GT(source.first_step(at.epoch + 1), step);
        if (at.done == 0) {
          EXPECT_EQ(source.first_step(at.epoch), step);
        }
        for (std::int64_t i = 0; i < batch; ++i) {
          const auto next = static_cast<std::uint64_t>(step * batch + i + 1);
          const bool same = source.place(next).epoch == source.place(next - 1).epoch;
          epoch += !same;
          done = same ? done + 1 : 0;
        }
      }
      EXPECT_GT(epoch, 4U);
    }
}

/// `most`: the requested number of targets; 0: all.
void expect_part(const Case& c, std::int64_t batch, std::int64_t most) {
  ValidationSource source(c.dataset, batch, most);
  const std::string part = c.text.substr(c.cut.tokens);
  const std::int64_t all = std::ssize(part) - 1, wanted = most == 0 ? all : std::min(most, all);
  EXPECT_EQ(source.targets(), wanted);
  std::string tokens, targets;
  bool padding = false;
  for (std::int64_t step = 0; step < source.batches(); ++step) {
    const auto x = load(source, step, 0, batch, false), y = load(source, step, 0, batch, true);
    EXPECT_EQ(std::ssize(y) - std::ranges::count(y, -1), source.valid_targets(step, batch));
    EXPECT_GT(source.valid_targets(step, batch), 0);
    // Loading one sample at a time gives the same as loading all at once.
    const auto last = load(source, step, batch - 1, 1, true);
    EXPECT_TRUE(std::equal(last.begin(), last.end(), y.end() - std::ssize(last)));
    for (std::size_t i = 0; i < y.size(); ++i) {
      padding = padding || y[i] == -1;
      ASSERT_EQ(padding, y[i] == -1) << "padding in the middle";
      ASSERT_TRUE(!padding || most > 0 || x[i] == 0);
      if (padding) continue;
      tokens += static_cast<char>(x[i]);
      targets += static_cast<char>(y[i]);
    }
  }
  EXPECT_EQ(targets, part.substr(1, static_cast<std::size_t>(wanted)));
  EXPECT_EQ(tokens, part.substr(0, static_cast<std::size_t>(wanted)));
}

TEST(ValidationSource, EachByteButTheFirstIsATargetOnceAndTheRestIsPadding) {
  for (const Sizes& sizes : kSizes) {
    const Case c(random_text(sizes.bytes, 6), sizes.tokens, sizes.validation);
    if (sizes.validation == 0) {
      EXPECT_EQ(ValidationSource(c.dataset, 2).batches(), 0);
      continue;
    }
    for (const std::int64_t batch : {1, 2, 5, 64})
      for (const std::int64_t most : {0, 1, 100, 899, 5000}) expect_part(c, batch, most);
  }
}

TEST(Corpus, FilesAndGlobsAreJoinedInOrder) {
  const TemporaryDirectory root;
  const std::vector<std::pair<std::string, std::string>> files{{"b.txt", random_text(5000, 1)},
                                                               {"a.txt", "first"},
                                                               {"Z.txt", ""},
                                                               {"c.md", random_text(4097, 2)}};
  for (const auto& [name, content] : files) spill(root.path() + "/" + name, content);
  const Corpus corpus({root.path() + "/c.md", root.path() + "/*.txt"}, "data.text");
  const std::string joined = files[3].second + files[1].second + files[0].second;
  ASSERT_EQ(corpus.size(), joined.size());
  EXPECT_EQ(corpus.files().size(), 4U);
  Random random(8);
  for (int i = 0; i < 300; ++i) {
    const std::int64_t begin = draw(random, 0, std::ssize(joined));
    std::string got(static_cast<std::size_t>(draw(random, 0, std::ssize(joined) - begin)), '\0');
    corpus.read(begin, std::as_writable_bytes(std::span(got)));
    ASSERT_EQ(got, joined.substr(begin, got.size()));
  }
  // The division of the text into files does not matter, but each byte does.
  spill(root.path() + "/whole", joined);
  EXPECT_EQ(Corpus({root.path() + "/whole"}, "").fingerprint(), corpus.fingerprint());
  std::string other = joined;
  other.back() = static_cast<char>(other.back() ^ 1);
  spill(root.path() + "/whole", other);
  EXPECT_NE(Corpus({root.path() + "/whole"}, "").fingerprint(), corpus.fingerprint());
}

TEST(Corpus, ManyFilesAreReadWithoutHoldingThem) {
  const TemporaryDirectory root;
  std::string joined;
  for (int i = 0; i < 600; ++i) {
    const std::string name = fmt::format("{}/{:03}", root.path(), i);
    spill(name, i % 7 == 0 ? "" : name);
    joined += i % 7 == 0 ? "" : name;
  }
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  const auto before = open_files();
  const Corpus corpus({root.path() + "/*"}, "");
  EXPECT_EQ(open_files(), before);
  EXPECT_EQ(corpus.files().size(), 600U);
  EXPECT_EQ(corpus.stamps().size(), 514U);
  EXPECT_EQ(corpus.whole_sha256(), sha256_hex(joined));
  std::string got(300, '\0');
  corpus.read(50, std::as_writable_bytes(std::span(got)));
  EXPECT_EQ(got, joined.substr(50, 300));
  std::string other = root.path() + "/00X";  // of the same size
  spill(root.path() + "/001", other);
  EXPECT_ERROR(corpus.read(0, std::as_writable_bytes(std::span(got))),
               "the file was modified while in use");
}

TEST(Corpus, TheWholeTextIsHashedWhereSamplesSeeNothing) {
  const TemporaryDirectory root;
  const std::string path = root.path() + "/text";
  spill(path, "once");
  EXPECT_EQ(Corpus({path}, "").whole_sha256(), sha256_hex("once")) << "one block";
  constexpr std::uint64_t kBytes = 300 << 20, kSample = 64 << 10, kSamples = 4096;
  std::filesystem::resize_file(path, kBytes);  // a sparse file
  const Corpus corpus({path}, "");
  int blocks = 0;
  const std::string sampled = corpus.fingerprint(), whole = corpus.whole_sha256([&] { ++blocks; });
  EXPECT_GT(blocks, 0);
  std::uint64_t block = 0;  // the first outside all samples
  for (std::uint64_t i = 0; i * (kBytes / kSample - 1) / (kSamples - 1) == block; ++i) ++block;
  std::fstream(path, std::ios::in | std::ios::out)
      .seekp(static_cast<std::streamoff>(block * kSample + 5))
      .put('x');
  EXPECT_EQ(corpus.fingerprint(), sampled);
  EXPECT_NE(corpus.whole_sha256(), whole);
}

TEST(Corpus, ItsHashIsRememberedUntilAFileChanges) {
  const TemporaryDirectory root;
  const std::string path = root.path() + "/text", memory = root.path() + "/text.json";
  const auto recall = [&] { return remembered_sha256(Corpus({path}, ""), memory); };
  spill(path, "as it was");
  EXPECT_EQ(recall(), sha256_hex("as it was"));
  EXPECT_FALSE(std::filesystem::exists(memory)) << "written just now: its times may not change";
  struct stat before {};
  ::stat(path.c_str(), &before);
  std::this_thread::sleep_for(std::chrono::milliseconds(2100));
  EXPECT_EQ(recall(), sha256_hex("as it was"));
  std::string text = slurp(memory);
  const std::size_t at = text.find(sha256_hex("as it was"));
  ASSERT_NE(at, std::string::npos);
  spill(memory, text.replace(at, 64, std::string(64, 'f')));
  EXPECT_EQ(recall(), std::string(64, 'f')) << "was not taken from memory";
  // In place, with the same size and the old modification time.
  std::fstream(path, std::ios::in | std::ios::out).put('A');
  const timespec times[] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  EXPECT_EQ(recall(), sha256_hex("As it was"));
  for (const std::string bad : {"", "{}", "[1]", "{\"sha256\":1}", "\xff"}) {
    spill(memory, bad);
    EXPECT_EQ(recall(), sha256_hex("As it was"));
  }
}

TEST(Corpus, NamesAndKindsOfFiles) {
  const TemporaryDirectory root;
  spill(root.path() + "/[1]*.txt", "mine");
  spill(root.path() + "/1.txt", "other");
  EXPECT_EQ(Corpus({root.path() + "/[1]*.txt"}, "").size(), 4U) << "not a pattern";
  const std::string pipe = root.path() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_ERROR(Corpus({pipe}, "data.text"), "not a regular file");
}

TEST(Corpus, ATextThatIsCutShortIsAnErrorNotABusError) {
  const Case c(random_text(100'000, 1), 16, 0);
  std::filesystem::resize_file(c.root.path() + "/text", 10);
  TrainingSource source(c.dataset, 1, 1);
  EXPECT_THROW(load(source, 0, 0, 1, false), Error);
}

}  // namespace
}  // namespace concertina
