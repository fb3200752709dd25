// Formats of data: what a reader makes of hand-made files, of published ones where they are at
// hand, and of damaged ones.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <set>

#include "core/error.h"
#include "io/datasets/masked_tokens.h"
#include "io/datasets/questions.h"
#include "io/datasets/sentences.h"
#include "io/datasets/source.h"
#include "io/squad_score.h"
#include "tests/buffer.h"
#include "tests/io/io_test.h"

namespace concertina {
namespace {

/// Fields of one sample: integers by name, or an image.
struct Sample {
  std::map<std::string, std::vector<std::int32_t>> of;
  std::vector<float> image;
};

Sample sample_of(const Dataset& dataset, const SampleAt& at) {
  std::vector<Buffer> buffers;
  std::vector<View> views;
  for (const Field& field : dataset.fields())
    buffers.emplace_back(static_cast<std::size_t>(field.elements()), field.type);
  for (Buffer& buffer : buffers) views.push_back(buffer.view());
  dataset.write(at, views);
  Sample sample;
  for (std::size_t f = 0; f < views.size(); ++f)
    if (views[f].dtype == DType::f32)
      sample.image.assign(views[f].f32(), views[f].f32() + views[f].count);
    else
      sample.of[dataset.fields()[f].name].assign(views[f].i32(), views[f].i32() + views[f].count);
  return sample;
}

/// Reads every sample: whatever a reader lets through must be whole.
void read_all(const Dataset& dataset) {
  for (const Split split : {Split::train, Split::validation, Split::test})
    for (std::uint64_t i = 0; i < dataset.samples(split); ++i)
      sample_of(dataset, {.split = split, .sample = i, .seed = 1});
}

std::string big_endian(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
          static_cast<char>(value >> 8), static_cast<char>(value)};
}

std::string idx(std::uint32_t magic, const std::vector<std::uint32_t>& sizes,
                const std::string& data) {
  std::string bytes = big_endian(magic);
  for (const std::uint32_t size : sizes) bytes += big_endian(size);
  return bytes + data;
}

std::string ramp(std::size_t bytes) {
  std::string data(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<char>(i * 7);
  return data;
}

struct Folder {
  TemporaryDirectory root;
  std::string path(const std::string& name) const { return root.path() + "/" + name; }
  std::string operator()(const std::string& name, const std::string& content) const {
    spill(path(name), content);
    return path(name);
  }
};

void gzip(const std::string& path, const std::string& content) {
  gzFile file = ::gzopen(path.c_str(), "wb");
  ASSERT_EQ(::gzwrite(file, content.data(), static_cast<unsigned>(content.size())),
            std::ssize(content));
  ::gzclose(file);
}

/// Where the project's own data is, if anywhere.
std::string data_at_hand(const std::string& name) {
  const char* folder = std::getenv("CONCERTINA_DATA");
  const std::string path =
      (folder != nullptr ? std::string(folder) : CONCERTINA_SOURCE "/../shared/data") + "/" + name;
  return std::filesystem::exists(path) ? path : "";
}

/// As many damaged copies of a file as CONCERTINA_MUTATIONS says, else some hundreds: `open` reads
/// the copy, and must accept it or throw bad input that names a place.
void survive_mutations(const std::string& path, const std::function<void()>& open) {
  const char* asked = std::getenv("CONCERTINA_MUTATIONS");
  const std::uint64_t turns = asked != nullptr ? std::strtoull(asked, nullptr, 10) : 300;
  const std::string whole = slurp(path);
  std::uint64_t refused = 0;
  for (std::uint64_t seed = 0; seed < turns; ++seed) {
    Random random(seed);
    std::string bytes = whole;
    const auto end = std::ssize(bytes);
    for (std::int64_t i = draw(random, 1, 3); i > 0 && !bytes.empty(); --i) {
      // Headers are where the lies are.
      const std::int64_t last = std::ssize(bytes) - 1;
      const auto at = static_cast<std::size_t>(
          draw(random, 0, draw(random, 0, 1) == 0 ? std::min<std::int64_t>(last, 48) : last));
      switch (draw(random, 0, 4)) {
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
          bytes.insert(at, bytes.substr(at, static_cast<std::size_t>(draw(random, 1, 9))));
          break;
        default:
          bytes.erase(at,
                      static_cast<std::size_t>(draw(random, 1, std::min<std::int64_t>(end, 9))));
      }
    }
    spill(path, bytes);
    try {
      open();
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), Exit::bad_input) << "seed " << seed << ": " << error.what();
      ASSERT_FALSE(error.where().empty()) << "seed " << seed;
      ++refused;
    }
  }
  EXPECT_GT(refused, turns / 10) << "hardly any lie was seen";
  spill(path, whole);
}

struct Mnist : Folder {
  std::string images = (*this)("images", idx(0x803, {5, 2, 3}, ramp(30)));
  std::string labels = (*this)("labels", idx(0x801, {5}, std::string("\x00\x09\x03\x03\x01", 5)));
  DataOptions options{.format = "mnist", .files = {images, labels}, .validation = 0.4};
};

TEST(Mnist, ImagesAndLabelsAreThoseOfTheFiles) {
  Mnist folder;
  const auto dataset = open_dataset(folder.options);
  EXPECT_EQ(dataset->samples(Split::train), 3U);
  EXPECT_EQ(dataset->samples(Split::validation), 2U);
  EXPECT_EQ(dataset->classes().size(), 10U);
  EXPECT_TRUE(dataset->repeats());
  const std::string pixels = ramp(30);
  for (std::uint64_t i = 0; i < 5; ++i) {
    const Sample sample =
        sample_of(*dataset, i < 3 ? SampleAt{.sample = i, .seed = 4, .epoch = 2}
                                  : SampleAt{.split = Split::validation, .sample = i - 3});
    EXPECT_EQ(sample.of.at("label")[0], (std::array{0, 9, 3, 3, 1}[i]));
    for (std::size_t p = 0; p < 6; ++p)
      EXPECT_NEAR(sample.image[p], static_cast<unsigned char>(pixels[i * 6 + p]) / 127.5 - 1, 1e-6);
  }
}

TEST(Mnist, GzipIsReadAsThePlainFile) {
  Mnist folder;
  gzip(folder.path("labels.gz"), slurp(folder.labels));
  DataOptions options = folder.options;
  options.files = {folder.path("labels.gz"), folder.images};
  EXPECT_EQ(sample_of(*open_dataset(options), {.sample = 1}).of.at("label")[0], 9);
  const std::string packed = slurp(folder.path("labels.gz"));
  folder("labels.gz", packed.substr(0, packed.size() - 5));
  EXPECT_ERROR(open_dataset(options), "cut short");
  folder("labels.gz", packed + "more");
  EXPECT_ERROR(open_dataset(options), "labels.gz: byte");
}

TEST(Mnist, LiesAreNamed) {
  Mnist folder;
  const auto refused = [&](const std::string& images, const std::string& labels,
                           const std::string& what) {
    folder("images", images);
    folder("labels", labels);
    EXPECT_ERROR(open_dataset(folder.options), what);
  };
  const std::string images = slurp(folder.images), labels = slurp(folder.labels);
  refused(images.substr(0, 40), labels, "images: byte 16");
  refused(images.substr(0, 10), labels, "images: byte 10");
  refused(images + "x", labels, "the header says 30 bytes of data, the file has 31");
  refused(idx(0x803, {5, 2, 0}, ""), labels, "images: byte 12");
  refused(idx(0x803, {0xffffffff, 0xffffffff, 0xffffffff}, "abc"), labels, "do not fit");
  refused(idx(0xd03, {5, 2, 3}, ramp(30)), labels, "magic number 0xd03");
  refused(images, idx(0x801, {4}, "\1\2\3\4"), "4 labels for the 5 images");
  refused(images, idx(0x801, {5}, "\1\2\3\4\12"), "label 10 of image 4 is not in [0, 10)");
  refused(images, images, "2 files of images and 0 of labels");
}

TEST(Mnist, DamagedFilesAreRefusedOrRead) {
  Mnist folder;
  const auto open = [&] { read_all(*open_dataset(folder.options)); };
  survive_mutations(folder.images, open);
  survive_mutations(folder.labels, open);
  gzip(folder.path("packed"), slurp(folder.images));
  folder.options.files[0] = folder.path("packed");
  survive_mutations(folder.path("packed"), open);
}

TEST(Images, AugmentationFollowsFromSeedEpochAndSampleAlone) {
  Mnist folder;
  folder("images", idx(0x803, {5, 4, 5}, ramp(100)));
  DataOptions options = folder.options;
  const auto plain = open_dataset(options);
  options.crop = 1;
  options.flip = true;
  const auto dataset = open_dataset(options), again = open_dataset(options);
  EXPECT_FALSE(dataset->repeats());
  std::set<std::vector<float>> seen;
  for (std::uint64_t epoch = 0; epoch < 200; ++epoch) {
    const SampleAt at{.sample = 1, .seed = 3, .epoch = epoch};
    const Sample sample = sample_of(*dataset, at);
    ASSERT_EQ(sample.image, sample_of(*again, at).image);
    seen.insert(sample.image);
  }
  // Each of the 3 x 3 places and both sides, and no other.
  std::set<std::vector<float>> expected;
  const std::vector<float> whole = sample_of(*plain, {.sample = 1}).image;
  for (int down = -1; down <= 1; ++down)
    for (int right = -1; right <= 1; ++right)
      for (const bool mirrored : {false, true}) {
        std::vector<float> image(20, -1.0F);
        for (int y = 0; y < 4; ++y)
          for (int x = 0; x < 5; ++x) {
            const int v = y + down, u = (mirrored ? 4 - x : x) + right;
            if (v >= 0 && v < 4 && u >= 0 && u < 5) image[y * 5 + x] = whole[v * 5 + u];
          }
        expected.insert(image);
      }
  EXPECT_EQ(seen, expected);
  const SampleAt held{.split = Split::validation, .sample = 1, .seed = 5, .epoch = 9};
  EXPECT_EQ(sample_of(*dataset, held).image, sample_of(*plain, held).image);
}

TEST(Mnist, ThePublishedFilesAreRead) {
  const std::string folder = data_at_hand("mnist");
  if (folder.empty()) GTEST_SKIP() << "no MNIST here";
  const auto dataset = open_dataset(
      {.format = "mnist",
       .files = {folder + "/t10k-images-idx3-ubyte.gz", folder + "/t10k-labels-idx1-ubyte.gz"},
       .validation = 0.1});
  EXPECT_EQ(dataset->samples(Split::train), 9000U);
  EXPECT_EQ(dataset->samples(Split::validation), 1000U);
  EXPECT_EQ(dataset->fields()[0], image_field(1, 28, 28));
  const std::array first{7, 2, 1, 0, 4, 1, 4, 9, 5, 9};
  for (std::uint64_t i = 0; i < first.size(); ++i)
    EXPECT_EQ(sample_of(*dataset, {.sample = i}).of.at("label")[0], first[i]);
}

struct Tsv : Folder {
  std::string file = (*this)("a.tsv", "sentence\tlabel\ngood\t1\nbad \t0\nvery, very long\t1\n");
  DataOptions options{.format = "tsv", .files = {file}, .validation = 0, .tokens_per_sample = 8};
};

TEST(Tsv, ASentenceStandsBetweenItsMarks) {
  const Tsv folder;
  const auto dataset = open_dataset(folder.options);
  const SentenceEncoder marks(nullptr);
  const std::int32_t cls = marks.classify(), sep = marks.separator(), pad = marks.padding();
  EXPECT_EQ(dataset->vocabulary(), 260);
  EXPECT_EQ(dataset->samples(Split::train), 3U);
  ASSERT_EQ(dataset->classes().size(), 2U);
  const Sample bad = sample_of(*dataset, {.sample = 1});
  EXPECT_EQ(bad.of.at("tokens"),
            (std::vector<std::int32_t>{cls, 'b', 'a', 'd', ' ', sep, pad, pad}));
  EXPECT_EQ(bad.of.at("types"), std::vector<std::int32_t>(8, 0));
  EXPECT_EQ(bad.of.at("lengths")[0], 6);
  EXPECT_EQ(bad.of.at("label")[0], 0);
  const Sample cut = sample_of(*dataset, {.sample = 2});
  EXPECT_EQ(cut.of.at("tokens"),
            (std::vector<std::int32_t>{cls, 'v', 'e', 'r', 'y', ',', ' ', sep}));
  EXPECT_EQ(cut.of.at("lengths")[0], 8);
}

TEST(Tsv, PairsAreCutFromTheLongerAndLabelsMayBeNames) {
  const Tsv folder;
  folder("a.tsv", "idx\tsentence1\tlabel\tsentence2\r\n0\tabcdef\tno\txy\r\n1\tab\tyes\tc");
  DataOptions options = folder.options;
  options.tokens_per_sample = 9;
  const auto dataset = open_dataset(options);
  const SentenceEncoder marks(nullptr);
  const std::int32_t cls = marks.classify(), sep = marks.separator(), pad = marks.padding();
  EXPECT_EQ(std::vector(dataset->classes().begin(), dataset->classes().end()),
            (std::vector<std::string>{"no", "yes"}));
  const Sample cut = sample_of(*dataset, {.sample = 0});
  EXPECT_EQ(cut.of.at("tokens"),
            (std::vector<std::int32_t>{cls, 'a', 'b', 'c', 'd', sep, 'x', 'y', sep}));
  EXPECT_EQ(cut.of.at("types"), (std::vector<std::int32_t>{0, 0, 0, 0, 0, 0, 1, 1, 1}));
  const Sample whole = sample_of(*dataset, {.sample = 1});
  EXPECT_EQ(whole.of.at("tokens"),
            (std::vector<std::int32_t>{cls, 'a', 'b', sep, 'c', sep, pad, pad, pad}));
  EXPECT_EQ(whole.of.at("types"), (std::vector<std::int32_t>{0, 0, 0, 0, 1, 1, 0, 0, 0}));
  EXPECT_EQ(whole.of.at("label")[0], 1);
  std::vector<std::int32_t> a(7), b(7);
  truncate_pair(a, b, 5);
  EXPECT_EQ(a.size(), 3U);  // b first where both are as long
  EXPECT_EQ(b.size(), 2U);
}

TEST(Tsv, LiesAreNamed) {
  const Tsv folder;
  const auto refused = [&](const std::string& text, const std::string& where,
                           const std::string& what) {
    folder("a.tsv", text);
    EXPECT_ERROR(open_dataset(folder.options), what);
    EXPECT_ERROR(open_dataset(folder.options), where);
  };
  refused("good\t1\nbad\t0\n", "a.tsv:1", "the column 'good' is unknown");
  refused("sentence\tsentence\n", "a.tsv:1", "there twice");
  refused("sentence\n", "a.tsv:1", "no column is called 'label'");
  refused("label\n", "a.tsv:1", "no column is called 'sentence'");
  refused("sentence\tlabel\na\t1\nb\n", "a.tsv:3", "1 columns where the first line names 2");
  refused("sentence\tlabel\na\t1\n\nb\t0\n", "a.tsv:3", "1 columns");
  refused("sentence\tlabel\na\t1\nb\t\n", "a.tsv:3", "the label is empty");
  refused("sentence\tlabel\na\t1\nb\t0\nc\t7\n", "a.tsv:4", "label 7 is out of range");
  refused("sentence\tlabel\na\t1\nb\tO\n", "a.tsv:3", "the label 'O' is no number");
  refused("sentence\tlabel\n", "data.files", "no sample is left");
}

TEST(Tsv, DamagedFilesAreRefusedOrRead) {
  const Tsv folder;
  survive_mutations(folder.file, [&] { read_all(*open_dataset(folder.options)); });
}

TEST(Tsv, ThePublishedFilesAreRead) {
  const std::string folder = data_at_hand("sst2");
  if (folder.empty()) GTEST_SKIP() << "no SST-2 here";
  const auto dataset = open_dataset({.format = "tsv",
                                     .files = {folder + "/train.tsv"},
                                     .validation_files = {folder + "/dev.tsv"},
                                     .tokens_per_sample = 64});
  EXPECT_EQ(dataset->samples(Split::train), 67349U);
  EXPECT_EQ(dataset->samples(Split::validation), 872U);
  EXPECT_EQ(dataset->classes().size(), 2U);
  ValidationSource held(dataset, 100);
  EXPECT_EQ(held.targets(), 872);
  EXPECT_EQ(held.batches(), 9);
  EXPECT_EQ(held.samples(8), 72);
  EXPECT_EQ(held.valid_targets(8, 100), 72);
}

/// Samples come again in each epoch, in another order, the same after a resume.
TEST(Tsv, EpochsHaveTheSameSamplesAndTheLastBatchIsBlankAtItsEnd) {
  Tsv folder;
  folder.options.validation_files = {folder.file};
  const auto dataset = open_dataset(folder.options);
  TrainingSource source(dataset, 3, 2);
  EXPECT_EQ(source.samples_per_epoch(), 3U);
  EXPECT_EQ(source.valid_targets(5, 2), 2);
  for (std::uint64_t epoch = 0; epoch < 5; ++epoch) {
    std::set<std::uint64_t> seen;
    for (std::uint64_t i = 0; i < 3; ++i) seen.insert(source.place(epoch * 3 + i).sample);
    EXPECT_EQ(seen.size(), 3U);
  }
  ValidationSource held(dataset, 2);
  Buffer labels(2, DType::i32), lengths(2, DType::i32);
  held.load(1, 0, 2, std::array{View{}, View{}, lengths.view(), labels.view()});
  EXPECT_EQ(labels.view().i32()[0], 1);
  EXPECT_EQ(labels.view().i32()[1], kIgnored);
  EXPECT_EQ(lengths.view().i32()[1], 1);
}

template <class T>
std::string little_endian(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::string llmc(std::int32_t magic, std::int32_t version, std::int32_t tokens,
                 const std::string& data) {
  std::vector<std::int32_t> header(256);
  header[0] = magic, header[1] = version, header[2] = tokens;
  return little_endian(header) + data;
}

/// Sequences of 3, 0 and 4 tokens, in two documents.
struct MegatronIndex {
  std::uint64_t version = 1, sequences = 3, bounds = 3;
  std::uint8_t type = 8;
  std::vector<std::int32_t> lengths{3, 0, 4};
  std::vector<std::int64_t> offsets{0, 6, 6}, documents{0, 1, 3};

  std::string text() const {
    return std::string("MMIDIDX\0\0", 9) + little_endian(std::vector{version}) +
           static_cast<char>(type) + little_endian(std::vector{sequences, bounds}) +
           little_endian(lengths) + little_endian(offsets) + little_endian(documents);
  }
};

struct Tokens : Folder {
  std::vector<std::uint16_t> ids{1, 50000, 3, 4, 5, 6, 7};
  std::string file = (*this)("train.bin", little_endian(ids));
  DataOptions options{.format = "tokens",
                      .files = {file},
                      .validation = 0,
                      .tokens_per_sample = 3,
                      .windows = "fixed",
                      .vocabulary = 50257};

  void expect_tokens() const {
    const auto dataset = open_dataset(options);
    EXPECT_EQ(dataset->samples(Split::train), 2U);
    EXPECT_EQ(sample_of(*dataset, {}).of.at("tokens"), (std::vector<std::int32_t>{1, 50000, 3}));
    EXPECT_EQ(sample_of(*dataset, {}).of.at("targets"), (std::vector<std::int32_t>{50000, 3, 4}));
    EXPECT_EQ(sample_of(*dataset, {.sample = 1}).of.at("targets"),
              (std::vector<std::int32_t>{5, 6, 7}));
  }
};

TEST(Tokens, FilesOfNanoGptLlmcAndMegatronAreRead) {
  const Tokens folder;
  folder.expect_tokens();
  const std::string data = little_endian(folder.ids);
  folder("train.bin", llmc(20240520, 1, 7, data));
  folder.expect_tokens();
  const std::vector<std::int32_t> wide(folder.ids.begin(), folder.ids.end());
  folder("train.bin", llmc(20240801, 7, 7, little_endian(wide)));
  folder.expect_tokens();
  folder("train.bin", data);
  folder("train.idx", MegatronIndex().text());
  folder.expect_tokens();
  folder("train.bin", little_endian(wide));
  folder("train.idx", MegatronIndex{.type = 4, .offsets = {0, 12, 12}}.text());
  folder.expect_tokens();
}

TEST(Tokens, SeveralFilesAreOneText) {
  Tokens folder;
  folder("train.bin", little_endian(std::vector<std::uint16_t>{1, 50000}));
  folder.options.files.push_back(folder(
      "more.bin", llmc(20240801, 7, 5, little_endian(std::vector<std::int32_t>{3, 4, 5, 6, 7}))));
  folder.expect_tokens();
}

TEST(Tokens, LiesAreNamed) {
  const Tokens folder;
  const std::string data = little_endian(folder.ids);
  const auto refused = [&](const std::string& file, const std::string& what) {
    folder("train.bin", file);
    EXPECT_ERROR(read_all(*open_dataset(folder.options)), what);
  };
  refused(data + "x", "train.bin: byte 15");
  refused(little_endian(std::vector<std::uint16_t>{1, 2, 3, 4, 50257, 6, 7}),
          "token 50257 is not in the vocabulary [0, 50257)");
  refused(little_endian(std::vector<std::uint16_t>{1, 2, 3, 4, 50257, 6, 7}), "train.bin: byte 8");
  refused(llmc(20240520, 2, 7, data), "version 2");
  refused(llmc(20240520, 1, 8, data), "the header says 8 tokens");
  refused(llmc(20240520, 1, -1, data), "the header says -1 tokens");
  refused(llmc(20240522, 1, 7, data), "evaluation file");
  refused(llmc(20240520, 1, 7, "").substr(0, 500), "1024 bytes");
  folder("train.bin", data);
  const auto index_refused = [&](const std::string& index, const std::string& what) {
    folder("train.idx", index);
    EXPECT_ERROR(open_dataset(folder.options), what);
  };
  index_refused("MMIDIDY", "does not begin with MMIDIDX");
  index_refused(MegatronIndex{.version = 2}.text(), "version 2");
  index_refused(MegatronIndex{.type = 7}.text(), "type 7");
  index_refused(MegatronIndex{.sequences = 1ULL << 62}.text(), "do not make a file");
  index_refused(MegatronIndex{.lengths = {3, -1, 4}}.text(), "sequence 1 has length -1");
  index_refused(MegatronIndex{.offsets = {0, 4, 6}}.text(), "sequence 1 begins at byte 4");
  index_refused(MegatronIndex{.lengths = {3, 0, 5}}.text(), "the .bin file has 14");
  index_refused(MegatronIndex{.documents = {0, 2, 1}}.text(), "document 2 begins");
  index_refused(MegatronIndex{.documents = {1, 2, 3}}.text(), "document 0 begins");
}

TEST(Tokens, DamagedFilesAreRefusedOrRead) {
  const Tokens folder;
  const auto open = [&] { read_all(*open_dataset(folder.options)); };
  survive_mutations(folder("train.bin", llmc(20240520, 1, 7, little_endian(folder.ids))), open);
  folder("train.bin", little_endian(folder.ids));
  survive_mutations(folder("train.idx", MegatronIndex().text()), open);
}

/// `offset` is in code points: the letters before it take two bytes each.
std::string squad_json(const std::string& text, int offset, const std::string& more = "") {
  return R"({"version": "1.1", "data": [{"title": "t", "paragraphs": [{"context": "Über Köln: the )"
         R"(river Rhine, 1,233 km.", "qas": [{"id": "1", "question": "What?", "answers": [)" +
         fmt::format(R"({{"text": "{}", "answer_start": {}}}{}]}}]}}]}}]}})", text, offset, more);
}

struct Squad : Folder {
  std::string file = (*this)("s.json", squad_json("river Rhine", 15));
  DataOptions options{
      .format = "squad", .files = {file}, .validation = 0, .tokens_per_sample = 68, .stride = 4};
};

TEST(Squad, TheAnswerStandsWhereTheSampleSays) {
  const Squad folder;
  const auto dataset = open_dataset(folder.options);
  ASSERT_EQ(dataset->samples(Split::train), 1U);
  const QuestionAnswers* const asked = questions_of(*dataset);
  ASSERT_NE(asked, nullptr);
  const Sample sample = sample_of(*dataset, {});
  const std::int32_t start = sample.of.at("start")[0], end = sample.of.at("end")[0];
  std::string text;
  for (std::int32_t i = start; i <= end; ++i)
    text += static_cast<char>(sample.of.at("tokens")[static_cast<std::size_t>(i)]);
  EXPECT_EQ(text, "river Rhine");
  EXPECT_EQ(asked->text(Split::train, 0, start, end), "river Rhine");
  EXPECT_EQ(asked->answers(Split::train, 0)[0], "river Rhine");
  EXPECT_EQ(asked->text(Split::train, 0, 0, 0), "") << "no place in the text";
  EXPECT_EQ(asked->text(Split::train, 0, end, start), "");
  // [CLS] What? [SEP]: the rest is the text.
  EXPECT_EQ(sample.of.at("types")[6], 0);
  EXPECT_EQ(sample.of.at("types")[7], 1);
}

TEST(Squad, AWindowWithoutTheAnswerSaysSoAndOneWindowAnswers) {
  Squad folder;
  folder("s.json", R"({"data": [{"paragraphs": [{"context": ")" + std::string(100, 'x') +
                       R"( end", "qas": [{"question": "Where?", "answers": [{"text": "end", )"
                       R"("answer_start": 101}]}]}]}]})");
  folder.options.stride = 20;
  const auto dataset = open_dataset(folder.options);
  const QuestionAnswers& asked = *questions_of(*dataset);
  // 104 tokens, 59 fit: [0, 59), [20, 79), [40, 99), [60, 104).
  ASSERT_EQ(dataset->samples(Split::train), 4U);
  for (std::uint64_t i = 0; i < 4; ++i) {
    const Sample sample = sample_of(*dataset, {.sample = i});
    EXPECT_EQ(sample.of.at("start")[0] > 0, i == 3);
    EXPECT_EQ(asked.question(Split::train, i), 0U);
  }
  // Token 50 of the text is in three windows; [20, 79) has the most around it.
  for (std::uint64_t i = 0; i < 3; ++i)
    EXPECT_EQ(asked
                  .text(Split::train, i, 8 + 50 - 20 * static_cast<int>(i),
                        8 + 50 - 20 * static_cast<int>(i))
                  .empty(),
              i != 1);
}

TEST(Squad, LiesAreNamed) {
  const Squad folder;
  const auto refused = [&](const std::string& json, const std::string& what) {
    folder("s.json", json);
    EXPECT_ERROR(open_dataset(folder.options), what);
    EXPECT_ERROR(open_dataset(folder.options), "s.json: ");
  };
  const std::string place = "data[0].paragraphs[0].qas[0].answers[0]";
  refused(squad_json("river Rhine", 17), place);  // counted in bytes
  refused(squad_json("river Rhine", 17), "does not have the answer 'river Rhine'");
  refused(squad_json("river", 4000), place);
  refused(squad_json("", 3), place);
  refused(squad_json("river", -1), "'answer_start' is number, not a whole number");
  refused(squad_json("river Rhine", 15, ", {}"), "answers[1]");
  refused("{\"data\": [\n{\"paragraphs\": 3}]}", "data[0]");
  refused("{\"data\": [\n{\"paragraphs\": [}]}", "line 2");
  refused("{\"data\": [], \"data\": []}", "has 'data' twice");
  refused(std::string(5000, '['), "nested too deep");
  refused(
      R"({"data": [{"paragraphs": [{"context": "a", "qas": [{"question": "", "answers": []}]}]}]})",
      "no answer");
}

TEST(Squad, DamagedFilesAreRefusedOrRead) {
  const Squad folder;
  survive_mutations(folder.file, [&] { read_all(*open_dataset(folder.options)); });
}

/// By evaluate-v1.1.py's own rules, worked out by hand.
TEST(SquadScore, NormalizesAndScoresAsTheOfficialScript) {
  EXPECT_EQ(normalize_answer("  The  Köln-Bonn, An (area)  "), "kölnbonn area");
  EXPECT_EQ(normalize_answer("theatre a.b ÜBER\u00a0x"), "theatre ab über x");
  EXPECT_EQ(normalize_answer("a\u2019s"), "\u2019s") << "an article before what is no letter";
  EXPECT_EQ(normalize_answer("The A an"), "");
  const std::vector<std::string> answers{"the Denver Broncos", "Carolina"};
  const auto expect = [&](const std::string& prediction, double exact, double f1) {
    const AnswerScore score = score_answer(prediction, answers);
    EXPECT_DOUBLE_EQ(score.exact, exact) << prediction;
    EXPECT_DOUBLE_EQ(score.f1, f1) << prediction;
  };
  expect("Denver Broncos.", 1, 1);
  expect("Denver", 0, 2.0 / 3);
  expect("Denver Denver Broncos", 0, 0.8);  // 2 of 3, 2 of 2
  expect("carolina panthers of the south", 0, 0.4);
  expect("", 0, 0);
  EXPECT_DOUBLE_EQ(score_answer("the", std::vector<std::string>{"a"}).exact, 1);
  EXPECT_DOUBLE_EQ(score_answer("the", std::vector<std::string>{"a"}).f1, 0);  // as the script
  EXPECT_DOUBLE_EQ(score_answer("x", {}).exact, 0);
}

TEST(MaskedTokens, ASampleHasItsShareOfTargetsAndTheirTokensAreHidden) {
  Folder folder;
  const auto text = open_dataset({.files = {folder("text", ramp(4001))},
                                  .validation = 0.3,
                                  .tokens_per_sample = 100,
                                  .windows = "fixed"});
  const auto dataset = masked_tokens(text, nullptr);
  const SentenceEncoder marks(nullptr);
  EXPECT_EQ(masked_count(100), 15);
  EXPECT_EQ(masked_count(1), 1);
  std::array<int, 3> seen{};  // masked, as it was, another
  for (std::uint64_t epoch = 0; epoch < 50; ++epoch)
    for (std::uint64_t i = 0; i < text->samples(Split::train); ++i) {
      const SampleAt at{.sample = i, .seed = 2, .epoch = epoch};
      const Sample plain = sample_of(*text, at), masked = sample_of(*dataset, at);
      int targets = 0;
      for (std::size_t t = 0; t < 100; ++t) {
        const std::int32_t was = plain.of.at("tokens")[t], is = masked.of.at("tokens")[t];
        if (masked.of.at("targets")[t] == kIgnored) {
          ASSERT_EQ(is, was);
          continue;
        }
        ++targets;
        ASSERT_EQ(masked.of.at("targets")[t], was);
        ++seen[is == marks.mask() ? 0 : is == was ? 1 : 2];
        ASSERT_TRUE(is == marks.mask() || !marks.is_mark(is));
      }
      ASSERT_EQ(targets, 15);
    }
  const double all = seen[0] + seen[1] + seen[2];
  EXPECT_NEAR(seen[0] / all, 0.8, 0.01);
  EXPECT_NEAR(seen[2] / all, 0.1, 0.01);
}

TEST(MaskedTokens, MasksFollowFromSeedEpochAndSampleAlone) {
  Folder folder;
  const auto text = open_dataset(
      {.files = {folder("text", ramp(4001))}, .validation = 0.3, .tokens_per_sample = 100});
  const auto dataset = masked_tokens(text, nullptr);
  EXPECT_FALSE(dataset->repeats());
  const auto targets = [&](std::uint64_t seed, std::uint64_t epoch, std::uint64_t sample) {
    return sample_of(*dataset, {.sample = sample, .seed = seed, .epoch = epoch}).of.at("targets");
  };
  EXPECT_EQ(targets(1, 2, 3), targets(1, 2, 3));
  EXPECT_NE(targets(1, 2, 3), targets(1, 3, 3));
  EXPECT_NE(targets(1, 2, 3), targets(2, 2, 3));
  // What is counted is what is there, whatever the number of targets asked for.
  for (const std::int64_t most : {0, 1, 17, 30, 1000}) {
    ValidationSource held(dataset, 4, most);
    std::int64_t count = 0;
    for (std::int64_t step = 0; step < held.batches(); ++step) {
      Buffer out(400, DType::i32);
      held.load(step, 0, 4, std::array{View{}, View{}, View{}, out.view()});
      const auto found = 400 - std::count(out.view().i32(), out.view().i32() + 400, kIgnored);
      EXPECT_EQ(found, held.valid_targets(step, 4));
      count += found;
    }
    EXPECT_EQ(count, held.targets());
    EXPECT_GT(count, 0);
  }
}

TEST(MaskedTokens, SentencesKeepTheirMarks) {
  const Tsv folder;
  const auto dataset = masked_tokens(open_dataset(folder.options), nullptr);
  const std::array counts{1, 1, 1};  // of 4, 4 and 6 tokens
  for (std::uint64_t i = 0; i < 3; ++i)
    for (std::uint64_t epoch = 0; epoch < 100; ++epoch) {
      const Sample sample = sample_of(*dataset, {.sample = i, .seed = 1, .epoch = epoch});
      const auto& targets = sample.of.at("targets");
      EXPECT_EQ(8 - std::ranges::count(targets, kIgnored), counts[i]);
      for (const std::int32_t target : targets) EXPECT_LT(target, 256);
      EXPECT_EQ(dataset->targets_before(Split::train, i + 1), static_cast<std::int64_t>(i) + 1);
    }
}

}  // namespace
}  // namespace concertina
