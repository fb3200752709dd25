// What protects a run from its data, over all decorators and all formats: a check that one of them
// forgets is the fault that nobody sees.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "io/corpus.h"
#include "io/datasets/masked_tokens.h"
#include "io/datasets/views.h"
#include "io/images/image_codec.h"
#include "io/images/tar_shard.h"
#include "io/sha256.h"
#include "io/tables/table.h"
#include "tests/io/reader_files.h"
#include "tests/io/token_files.h"
#include "tests/io/webdataset_files.h"

namespace concertina {
namespace {

/// A dataset that says of each call that it came.
class Recorder final : public FileDataset {
 public:
  explicit Recorder(std::shared_ptr<const Dataset> inner) : inner_(std::move(inner)) {}

  std::span<const Field> fields() const override { return called("fields"), inner_->fields(); }
  std::int64_t vocabulary() const override { return called("vocabulary"), 256; }
  std::span<const std::string> classes() const override { return called("classes"), names_; }
  const Splits* splits() const override { return called("splits"), nullptr; }
  const QuestionAnswers* questions() const override { return called("questions"), nullptr; }
  std::uint64_t samples(Split split) const override {
    return called("samples"), inner_->samples(split);
  }
  std::uint64_t samples_of_epoch(std::uint64_t seed, std::uint64_t epoch) const override {
    return called("samples_of_epoch"), inner_->samples_of_epoch(seed, epoch);
  }
  std::int64_t targets_before(Split split, std::uint64_t sample) const override {
    return called("targets_before"), inner_->targets_before(split, sample);
  }
  void write(const SampleAt& at, std::span<const View> views) const override {
    called("write");
    inner_->write(at, views);
  }
  bool repeats() const override { return called("repeats"), false; }
  std::uint64_t views() const override { return called("views"), 1; }
  const Corpus& corpus() const override { return called("corpus"), inner_->corpus(); }
  void verify(const std::function<void()>&) const override { called("verify"); }
  SplitContent content(Split, const std::function<void()>&) const override {
    return called("content"), SplitContent{};
  }
  std::string summary() const override { return called("summary"), "summary"; }
  std::vector<std::string> notes(std::uint64_t) const override {
    return called("notes"), std::vector<std::string>{"note"};
  }

  mutable std::set<std::string> calls;

 private:
  void called(const char* name) const { calls.insert(name); }
  std::shared_ptr<const Dataset> inner_;
  std::vector<std::string> names_{"a", "b"};
};

/// The bodies of classes in a header, and the names of their virtual functions.
std::set<std::string> virtuals_of(const std::string& header, const std::string& name, bool pure) {
  const std::string text = slurp(CONCERTINA_SOURCE "/" + header);
  const std::size_t begin = text.find("class " + name + " "), end = text.find("\n};", begin);
  EXPECT_NE(begin, std::string::npos) << name;
  const std::string body = text.substr(begin, end - begin);
  const std::regex declared(R"(virtual [^;{~]*?(\w+)\([^;{]*?\)( const)?( noexcept)?( = 0)?[;{ ])");
  std::set<std::string> names;
  for (std::sregex_iterator at(body.begin(), body.end(), declared), none; at != none; ++at)
    if (!pure || !(*at)[4].matched) names.insert((*at)[1]);
  return names;
}

TEST(DatasetDecorators, EveryFunctionOfADatasetIsPure) {
  EXPECT_EQ(virtuals_of("io/datasets/dataset.h", "Dataset", true), std::set<std::string>{})
      << "a decorator would compile without it: the default belongs to FileDataset";
}

/// Every decorator passes on every call, but for those that it answers itself.
TEST(DatasetDecorators, EveryCallReachesTheInnerDataset) {
  const Folder folder;
  std::string text;
  for (int i = 0; i < 300; ++i) text += "line " + std::to_string(i * i) + "\n";
  const std::shared_ptr<const Dataset> plain =
      open_dataset({.files = {folder("a.txt", text)}, .tokens_per_sample = 16});
  struct Around final : DatasetAround {
    using DatasetAround::DatasetAround;
  };
  const std::set<std::string> all = virtuals_of("io/datasets/dataset.h", "Dataset", false);
  const std::map<std::string, std::set<std::string>> own{
      {"around", {}}, {"views", {"repeats", "views"}}, {"masked", {"repeats", "classes"}}};
  for (const auto& [name, answers] : own) {
    const auto recorder = std::make_shared<const Recorder>(plain);
    std::shared_ptr<const Dataset> made = std::make_shared<const Around>(recorder);
    if (name == "views") made = with_views(recorder, 3);
    if (name == "masked") made = masked_tokens(recorder, nullptr);
    recorder->calls.clear();
    made->fields(), made->vocabulary(), made->classes(), made->splits(), made->questions();
    made->samples(Split::train), made->samples_of_epoch(1, 2);
    made->targets_before(Split::train, 1);
    sample_of(*made, {});
    made->repeats(), made->views(), made->corpus(), made->verify([] {});
    made->content(Split::train, [] {});
    EXPECT_EQ(made->summary(), "summary");
    EXPECT_EQ(made->notes(1), std::vector<std::string>{"note"});
    std::set<std::string> expected = all;
    for (const std::string& one : answers) expected.erase(one);
    for (const std::string& one : expected)
      EXPECT_TRUE(recorder->calls.contains(one)) << name << " keeps " << one << "() to itself";
  }
}

/// The other decorators of the program name every function of what they wrap.
TEST(Decorators, ForgetNoVirtualFunction) {
  struct Pair {
    const char *header, *interface, *decorator;
    std::set<std::string> own;  // answered by the interface's default, which is right for it
  };
  const std::vector<Pair> pairs{
      {"core/backend.h", "Backend", "core/backend_around.h", {"records_passes", "repeat"}},
      {"core/kernel_clock.h", "KernelClock", "core/profile_backend.cc", {}},
      {"models/units/unit.h", "Unit", "models/units/rows_read.cc", {"result"}},
      {"parallel/comm/communicator.h",
       "Communicator",
       "parallel/comm/staged_communicator.cc",
       {"start_all_gather"}},
      {"io/datasets/dataset.h", "Dataset", "io/datasets/dataset.h", {}}};
  for (const Pair& pair : pairs) {
    const std::string text = slurp(CONCERTINA_SOURCE "/" + std::string(pair.decorator));
    for (const std::string& name : virtuals_of(pair.header, pair.interface, false))
      EXPECT_TRUE(pair.own.contains(name) ||
                  std::regex_search(text, std::regex("\\b" + name + R"(\([^;{]*override)")))
          << pair.decorator << " forgets " << name << "()";
  }
}

// --- of every format ---

/// A sound example: the entries of data.files, in a folder.
DataOptions example_of(const std::string& format, const Folder& folder) {
  DataOptions options{.format = format,
                      .validation = 0,
                      .tokens_per_sample = 12,
                      .vocabulary = 60000,
                      .options = {{"missing_classes", true}, {"windows", "fixed"}}};
  const auto one = [&](const std::string& name, const std::string& content) {
    options.files = {folder(name, content)};
  };
  const auto in_class = [&](const std::string& path, const std::string& image) {
    std::filesystem::create_directories(std::filesystem::path(folder.path(path)).parent_path());
    folder(path, image);
  };
  if (format == "text") one("a.txt", "To be, or not to be: that is the question.\n");
  if (format == "tokens")
    one("a.bin",
        little_endian(std::vector<std::uint16_t>{1, 500, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4}));
  if (format == "mnist") {
    options.files = {folder("images", idx(0x803, {5, 2, 3}, ramp(30))),
                     folder("labels", idx(0x801, {5}, std::string("\x00\x09\x03\x03\x01", 5)))};
  }
  if (format == "cifar10") one("a.bin", cifar_record("\x07", 1) + cifar_record("\x03", 2));
  if (format.starts_with("cifar100")) one("a.bin", cifar_record("\x13\x63", 1));
  if (format == "tsv") one("a.tsv", "sentence\tlabel\ngood\t1\nbad \t0\n");
  if (format == "csv") one("a.csv", "sentence,label\ngood,1\nbad,0\n");
  if (format == "jsonl")
    one("a.jsonl", "{\"text\": \"a\", \"label\": 1}\n{\"text\": \"b\", \"label\": 0}\n");
  if (format == "conll") {
    options.targets = TargetKind::tags;
    one("a.conll", "John B-PER\nlives O\n\nin O\n");
  }
  if (format == "squad") {
    options.tokens_per_sample = 68;
    options.options["stride"] = 4;
    one("s.json", squad_json("river Rhine", 15));
  }
  if (format == "webdataset") one("s.tar", tar(three_samples()));
  if (format == "image-folder") {
    in_class("root/cat/1.png", png(4, 3, 2, ramp(36)));
    in_class("root/dog/1.png", png(4, 3, 2, ramp(36)));
    options.files = {folder.path("root")};
    options.options["size"] = options.options["resize"] = 4;
  }
  EXPECT_FALSE(options.files.empty()) << "a new format needs an example here";
  return options;
}

bool is_readable(const std::string& format) {
  return (format != "webdataset" || has_libarchive()) &&
         ((format != "webdataset" && format != "image-folder") || png_codec().available());
}

class EveryFormat : public testing::TestWithParam<std::string> {
 protected:
  Folder folder_;
};

TEST_P(EveryFormat, ReadsItsExample) {
  if (!is_readable(GetParam())) GTEST_SKIP();
  const DataOptions options = example_of(GetParam(), folder_);
  const auto dataset = open_dataset(options);
  dataset->verify([] {});
  read_all(*dataset);
}

TEST_P(EveryFormat, AFileThatIsNamedTwiceIsRefused) {
  if (!is_readable(GetParam())) GTEST_SKIP();
  const DataOptions sound = example_of(GetParam(), folder_);
  DataOptions twice = sound;
  twice.files.insert(twice.files.end(), sound.files.begin(), sound.files.end());
  EXPECT_ERROR(open_dataset(twice), "is named twice");
  DataOptions linked = sound;
  const std::string link = folder_.path("link");
  std::filesystem::create_symlink(sound.files[0], link);
  linked.files.push_back(link);
  if (GetParam() == "image-folder") {
    const std::string root = sound.files[0];
    std::filesystem::create_hard_link(root + "/cat/1.png", root + "/cat/2.png");
    linked.files = sound.files;
  }
  EXPECT_ERROR(open_dataset(linked), "are the same");
}

TEST_P(EveryFormat, Utf16IsRefused) {
  if (!is_readable(GetParam())) GTEST_SKIP();
  for (const std::string& mark :
       {std::string("\xff\xfe"), std::string("\xfe\xff"), std::string()}) {
    const Folder folder;
    DataOptions options = example_of(GetParam(), folder);
    const std::string file =
        GetParam() == "image-folder" ? options.files[0] + "/cat/1.png" : options.files[0];
    const std::string text = GetParam() == "image-folder" || GetParam() == "tokens"
                                 ? "sentence,label\ngood,1\nbad,0\n"
                                 : slurp(file);
    std::string wide = mark;
    for (const char c : text)
      wide += mark == "\xfe\xff" ? std::string{'\0', c} : std::string{c, '\0'};
    spill(file, wide);
    if (find_format(GetParam()).binary && mark.empty()) continue;  // numbers below 256
    EXPECT_THROW(open_dataset(options)->verify([] {}), Error) << GetParam() << " " << mark;
    if (find_format(GetParam()).binary) continue;
    wide.clear();  // UTF-32 without a mark, at either byte order
    for (const char c : text)
      wide += {mark.empty() ? '\0' : c, '\0', '\0', mark.empty() ? c : '\0'};
    spill(file, wide);
    EXPECT_ERROR(open_dataset(options), "UTF-32");
  }
}

/// The mark is left out, or refused: it never becomes a part of a name, a word or a text.
TEST_P(EveryFormat, AByteOrderMarkIsNoData) {
  if (!is_readable(GetParam())) GTEST_SKIP();
  const DataOptions options = example_of(GetParam(), folder_);
  if (GetParam() == "image-folder" || GetParam() == "tokens") GTEST_SKIP();
  const std::string sound = open_dataset(options)->summary();
  const ReadSample sample = sample_of(*open_dataset(options), {});
  spill(options.files[0], "\xef\xbb\xbf" + slurp(options.files[0]));
  try {
    const auto dataset = open_dataset(options);
    EXPECT_EQ(dataset->summary(), sound);
    EXPECT_EQ(sample_of(*dataset, {}).of, sample.of);
  } catch (const Error&) {
  }
}

/// What Jupyter, macOS and editors leave beside data.
TEST_P(EveryFormat, WhatIsHiddenIsNotRead) {
  if (!is_readable(GetParam())) GTEST_SKIP();
  DataOptions options = example_of(GetParam(), folder_);
  const std::string sound = open_dataset(options)->summary();
  if (GetParam() == "image-folder") {
    for (const std::string hidden : {"/cat/.ipynb_checkpoints", "/cat/deep/.trash", "/.git"}) {
      std::filesystem::create_directories(options.files[0] + hidden);
      std::filesystem::copy(options.files[0] + "/cat/1.png",
                            options.files[0] + hidden + "/1-checkpoint.png");
    }
  } else if (GetParam() == "webdataset") {
    auto members = three_samples();
    members.emplace_back(".ipynb_checkpoints/x.png", png(4, 3, 2, ramp(36)));
    members.emplace_back("./deep/.hidden/y.png", png(4, 3, 2, ramp(36)));
    spill(options.files[0], tar(members));
  } else {
    const std::string extension = std::filesystem::path(options.files[0]).extension().string();
    spill(folder_.path(".hidden" + extension), slurp(options.files[0]));
    if (options.files.size() == 1) options.files = {folder_.path("*" + extension)};
  }
  EXPECT_EQ(open_dataset(options)->summary(), sound);
}

/// Returns all samples of the test split as one text, with the names of the labels.
std::string held_out_samples(const Dataset& dataset) {
  std::string text;
  for (std::uint64_t i = 0; i < dataset.samples(Split::test); ++i) {
    const ReadSample sample = sample_of(dataset, {.split = Split::test, .sample = i});
    text += fmt::format("{}", fmt::join(sample.image, " "));
    for (const auto& [name, values] : sample.of) {
      text += fmt::format("\n{}: {}", name, fmt::join(values, " "));
      if (name == "label" && !dataset.classes().empty() && values[0] >= 0)
        text += " " + dataset.classes()[static_cast<std::size_t>(values[0])];
    }
  }
  return text;
}

/// The digest decides which results may be compared: it follows the data, not the place.
TEST_P(EveryFormat, ItsDigestChangesWithAnyByteThatASampleHas) {
  if (!is_readable(GetParam())) GTEST_SKIP();
  const Folder other;
  DataOptions options = example_of(GetParam(), folder_);
  options.test_files = example_of(GetParam(), other).files;
  options.most_overlap = 1;
  const auto content = [](const Dataset& set) { return set.content(Split::test, [] {}).sha256; };
  const auto sound = open_dataset(options);
  const std::string samples = held_out_samples(*sound), digest = content(*sound);
  std::swap(options.files, options.test_files);
  EXPECT_EQ(content(*open_dataset(options)), digest) << "the same data in another folder";
  std::swap(options.files, options.test_files);

  const bool images = GetParam() == "image-folder";
  const std::string file = options.test_files[0] + (images ? "/cat/1.png" : "");
  const std::string bytes = slurp(file);
  const std::size_t most = GetParam() == "webdataset" ? 4000 : 400;  // bytes, of mostly headers
  int changed = 0;
  for (std::size_t at = 0; at < bytes.size(); at += 1 + bytes.size() / most) {
    std::string damaged = bytes;
    damaged[at] ^= 1;
    spill(file, damaged);
    try {
      const auto dataset = open_dataset(options);
      dataset->verify([] {});
      if (held_out_samples(*dataset) == samples) continue;
      ++changed;
      EXPECT_NE(content(*dataset), digest) << file << ": byte " << at;
    } catch (const Error&) {
    }
  }
  if (images) {  // each bit of a PNG is under its own checksum
    spill(file, png(4, 3, 2, std::string(36, 7)));
    changed += content(*open_dataset(options)) != digest ? 1 : 0;
  }
  EXPECT_GT(changed, 0);
}

INSTANTIATE_TEST_SUITE_P(Formats, EveryFormat, testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const auto& entry : dataset_formats())
                             names.emplace_back(entry.name);
                           return names;
                         }()),
                         [](const auto& one) {
                           std::string name = one.param;
                           std::erase(name, '-');
                           return name;
                         });

// --- bad data, before it is drawn ---

TEST(BadData, ATokenBeyondTheVocabularyIsFoundAhead) {
  const Folder folder;
  std::vector<std::uint16_t> tokens(5000, 7);
  tokens[1234] = 300;
  const std::string file = folder("a.bin", little_endian(tokens));
  for (const double share : {0.0, 0.9}) {  // in the training part and in what is held out
    const auto dataset = open_dataset({.format = "tokens",
                                       .files = {file},
                                       .validation = share,
                                       .most_overlap = 1,
                                       .tokens_per_sample = 8,
                                       .vocabulary = 300});
    EXPECT_ERROR(dataset->verify([] {}), "a.bin: byte 2468");
    EXPECT_ERROR(masked_tokens(dataset, nullptr)->verify([] {}), "token 300");
  }
}

TEST(BadData, AnImageThatCannotBeDecodedIsFoundAhead) {
  if (!is_readable("webdataset")) GTEST_SKIP();
  const Folder folder;
  std::string cut = png(4, 3, 2, ramp(36));
  cut[cut.size() - 20] ^= 1;  // within the pixels
  std::filesystem::create_directories(folder.path("root/cat"));
  folder("root/cat/1.png", png(4, 3, 2, ramp(36)));
  const std::string bad = folder("root/cat/2.png", cut);
  const auto of_folder =
      open_dataset({.format = "image-folder",
                    .files = {folder.path("root")},
                    .validation = 0,
                    .options = {{"missing_classes", true}, {"size", 4}, {"resize", 4}}});
  EXPECT_ERROR(of_folder->verify([] {}), bad);
  const std::string shard = folder(
      "s.tar",
      tar({{"a.png", png(4, 3, 2, ramp(36))}, {"a.cls", "0"}, {"b.png", cut}, {"b.cls", "1"}}));
  const auto of_tar = open_dataset({.format = "webdataset",
                                    .files = {shard},
                                    .validation = 0,
                                    .options = {{"missing_classes", true}}});
  EXPECT_ERROR(of_tar->verify([] {}), "s.tar: member 'b.png'");
}

/// A tokenizer that refuses what is not UTF-8, as all but bytes do.
class Strict final : public Tokenizer {
 public:
  std::int64_t vocabulary() const override { return 256; }
  void encode(std::string_view text, std::vector<std::int32_t>& tokens) const override {
    for (const char c : text) {
      if (static_cast<unsigned char>(c) >= 0x80) throw_input("not UTF-8", "the text", "UTF-8");
      tokens.push_back(static_cast<unsigned char>(c));
    }
  }
  std::string decode(std::span<const std::int32_t>) const override { return ""; }
  std::size_t cut(std::string_view text, std::size_t at) const override {
    return std::min(at, text.size());
  }
  std::string name(std::int32_t token) const override { return std::to_string(token); }
  std::string fingerprint() const override { return "strict"; }
  std::optional<std::int32_t> special(SpecialToken) const override { return std::nullopt; }
};

TEST(BadData, ARowThatTheTokenizerDoesNotReadIsFoundAheadWithItsLine) {
  const Folder folder;
  const std::string file = folder("a.csv", "text,label\ngood,1\nbad,0\ncaf\xe9,1\n");
  const auto dataset = open_dataset({.format = "csv",
                                     .files = {file},
                                     .tokenizer = std::make_shared<const Strict>(),
                                     .validation = 0,
                                     .tokens_per_sample = 12});
  EXPECT_ERROR(dataset->verify([] {}), "a.csv:4");
  EXPECT_ERROR(read_all(*dataset), "a.csv:4");
}

/// Two characters make a token, so that a text that is shifted by one has other tokens.
class Pairs final : public Tokenizer {
 public:
  std::int64_t vocabulary() const override { return 65537; }
  void encode(std::string_view text, std::vector<std::int32_t>& tokens) const override {
    for (std::size_t i = 0; i < text.size(); i += 2)
      tokens.push_back(static_cast<unsigned char>(text[i]) |
                       (i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) << 8 : 0));
  }
  std::string decode(std::span<const std::int32_t> tokens) const override {
    std::string text;
    for (const std::int32_t token : tokens) {
      text += static_cast<char>(token & 255);
      if (token > 255) text += static_cast<char>(token >> 8);
    }
    return text;
  }
  std::size_t cut(std::string_view text, std::size_t) const override { return text.size(); }
  std::string name(std::int32_t token) const override { return std::to_string(token); }
  std::string fingerprint() const override { return "pairs"; }
  std::optional<std::int32_t> special(SpecialToken which) const override {
    return which == SpecialToken::end ? std::optional(65536) : std::nullopt;
  }
};

// --- what is held out of a long text, and trained on too ---

std::string prose(int seed, int words) {
  Random random(static_cast<std::uint64_t>(seed));
  std::string text;
  for (int i = 0; i < words; ++i) text += std::to_string(draw(random, 0, 1 << 20)) + " ";
  return text;
}

struct Overlap : testing::Test {
  Folder folder;
  std::string own = prose(1, 4000), other = prose(2, 1000);

  /// The result of a text's check: empty, or the error.
  std::string check(const std::string& train, const std::string& held, double allowed = 0.2) {
    DataOptions options{.files = {folder("train.txt", train)},
                        .validation_files = {folder("held.txt", held)},
                        .most_overlap = allowed,
                        .tokens_per_sample = 16};
    try {
      open_dataset(options)->verify([] {});
      options.format = "tokens";
      options.vocabulary = 256;
      const auto tokens = [&](const std::string& name, const std::string& text) {
        std::vector<std::uint16_t> values;
        for (const char c : text) values.push_back(static_cast<unsigned char>(c));
        return folder(name, little_endian(values));
      };
      options.files = {tokens("train.bin", train)};
      options.validation_files = {tokens("held.bin", held)};
      open_dataset(options)->verify([] {});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(Overlap, OtherTextIsNone) {
  EXPECT_EQ(check(own, other), "");
}
TEST_F(Overlap, ACopyIsRefused) {
  EXPECT_TRUE(contains(check(own, own), "100.0% of"));
}
TEST_F(Overlap, AFileThatAnotherWasJoinedFromIsRefused) {
  EXPECT_TRUE(contains(check("x" + own + other, other), "data.validation_files"));
}
TEST_F(Overlap, APartCountsByItsShare) {
  const std::string half = other + prose(3, 1000);
  EXPECT_TRUE(contains(check(own + other, half), "data.most_overlap = 0.5"));
  EXPECT_EQ(check(own + other, half, 0.6), "");
}
TEST_F(Overlap, ALinkIsRefused) {
  const std::string train = folder("a.txt", own);
  std::filesystem::create_hard_link(train, folder.path("b.txt"));
  EXPECT_ERROR(
      open_dataset(
          {.files = {train}, .validation_files = {folder.path("b.txt")}, .tokens_per_sample = 16})
          ->verify([] {}),
      "is trained on too");
}

/// `text` with each run of white space as `space` makes it.
std::string respaced(const std::string& text, const std::function<std::string(int)>& space) {
  std::string other;
  int gap = 0;
  for (const char c : text) c == ' ' ? void(other += space(gap++)) : void(other += c);
  return other;
}

/// How a text may look elsewhere.
std::map<std::string, std::function<std::string(std::string)>> disguises() {
  const auto by = [](const std::function<std::string(int)>& space) {
    return [space](const std::string& text) { return respaced(text, space); };
  };
  return {{"CRLF", by([](int i) { return i % 9 == 0 ? "\r\n" : " "; })},
          {"wrapped at another length", by([](int i) { return i % 7 == 0 ? "\n" : " "; })},
          {"indented", by([](int i) { return i % 9 == 0 ? "\n\t    " : " "; })},
          {"tabs", by([](int) { return "\t"; })},
          {"no-break spaces", by([](int) { return "\xc2\xa0"; })},
          {"without space", by([](int) { return ""; })},
          {"upper case", [](std::string text) {
             for (char& c : text) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
             return text;
           }}};
}

/// Words with capitals, so that case matters.
std::string words(int seed, int count) {
  std::string text = prose(seed, count);
  for (char& c : text) c = static_cast<char>(c == ' ' ? ' ' : (c % 2 == 0 ? 'a' : 'A') + c - '0');
  return text;
}

TEST_F(Overlap, ACopyInAnotherFormIsRefused) {
  const std::string text = words(1, 40000), held = text.substr(1001, 60000);
  for (const auto& [name, disguise] : disguises())
    for (const std::shared_ptr<const Tokenizer>& tokenizer :
         {std::shared_ptr<const Tokenizer>(), std::shared_ptr<const Tokenizer>(new Pairs)}) {
      DataOptions options{.files = {folder("train.txt", text)},
                          .validation_files = {folder("held.txt", disguise(held))},
                          .tokenizer = tokenizer,
                          .tokens_per_sample = 16};
      SCOPED_TRACE(name);
      EXPECT_ERROR(open_dataset(options)->verify([] {}), "is trained on too");
      folder("held.txt", disguise(words(2, 3000)));
      EXPECT_NO_THROW(open_dataset(options)->verify([] {}));
    }
}

TEST_F(Overlap, DocumentsThatAreJoinedFromRowsAreRefused) {
  const std::string text = words(1, 6000);
  for (const std::string format : {"jsonl", "csv"})
    for (const std::string documents : {"joined", "packed"})
      for (const auto& [name, disguise] : disguises())
        for (const std::shared_ptr<const Tokenizer>& tokenizer :
             {std::shared_ptr<const Tokenizer>(), std::shared_ptr<const Tokenizer>(new Pairs)}) {
          /// The text in rows of about `size` bytes, of whole characters.
          const auto rows = [&](const std::string& whole, std::size_t size) {
            std::string all = format == "csv" ? "text\n" : "";
            for (std::size_t at = 0, end = 0; at < whole.size(); at = end) {
              end = std::min(at + size, whole.size());
              while (end < whole.size() && (whole[end] & 0xC0) == 0x80) ++end;
              const std::string row = whole.substr(at, end - at);
              all += format == "csv" ? "\"" + row + "\"\n"
                                     : nlohmann::json{{"text", row}}.dump() + "\n";
            }
            return all;
          };
          DataOptions options{.format = format,
                              .files = {folder("train", rows(text, 100))},
                              .validation_files = {folder("held", rows(disguise(text), 900))},
                              .tokenizer = tokenizer,
                              .validation = 0,
                              .tokens_per_sample = 16,
                              .labelled = false,
                              .documents = documents};
          SCOPED_TRACE(format + " " + documents + " " + name);
          EXPECT_ERROR(open_dataset(options)->verify([] {}), "is trained on too");
          folder("held", rows(disguise(words(2, 3000)), 900));
          EXPECT_NO_THROW(open_dataset(options)->verify([] {}));
        }
}

TEST_F(Overlap, PreparedFilesAreComparedAsText) {
  const auto pairs = std::make_shared<const Pairs>();
  const auto prepared = [&](const std::string& name, const std::string& text) {
    const std::vector<std::int32_t> tokens = pairs->tokens(text);
    write_token_file(folder.path(name), 65537, sha256_hex("pairs"), tokens, {0, tokens.size()});
    return folder.path(name);
  };
  const std::string text = words(1, 4000);
  DataOptions options{
      .format = "tokens", .validation = 0, .tokens_per_sample = 16, .vocabulary = 65537};
  options.files = {prepared("train", text)};
  options.validation_files = {prepared("held", text.substr(3001, 9000))};  // other pairs
  EXPECT_NO_THROW(open_dataset(options)->verify([] {})) << "nothing says what the tokens mean";
  struct Named final : Tokenizer {
    Pairs of;
    std::int64_t vocabulary() const override { return of.vocabulary(); }
    void encode(std::string_view text, std::vector<std::int32_t>& tokens) const override {
      of.encode(text, tokens);
    }
    std::string decode(std::span<const std::int32_t> tokens) const override {
      return of.decode(tokens);
    }
    std::size_t cut(std::string_view text, std::size_t at) const override {
      return of.cut(text, at);
    }
    std::string name(std::int32_t token) const override { return of.name(token); }
    std::string fingerprint() const override { return sha256_hex("pairs"); }
    std::optional<std::int32_t> special(SpecialToken which) const override {
      return of.special(which);
    }
  };
  options.tokenizer = std::make_shared<const Named>();
  EXPECT_ERROR(open_dataset(options)->verify([] {}), "is trained on too");
}

// --- classes that nothing to train on has ---

TEST(HeldOutClass, IsRefusedForEveryLabelledFormat) {
  const Folder folder;
  const auto png_of = [&](const std::string& path, int seed) {
    std::filesystem::create_directories(std::filesystem::path(folder.path(path)).parent_path());
    folder(path, png(4, 3, 2, ramp(36 + static_cast<std::size_t>(seed)).substr(seed)));
  };
  for (int i = 0; i < 4; ++i)
    for (const char* root : {"t/a/", "t/b/", "v/a/", "v/b/", "w/a/", "w/b/", "w/c/"})
      png_of(root + std::to_string(i) + ".png", i);
  struct One {
    const char* format;
    TargetKind targets;
    std::string train, sound, bad;
  };
  const std::vector<One> all{
      {"csv", TargetKind::label, "text,label\na,x\nb,y\n", "text,label\nc,x\nd,y\n",
       "text,label\nc,x\nd,y\ne,z\n"},
      {"tsv", TargetKind::label, "text\tlabel\na\t0\nb\t1\n", "text\tlabel\nc\t0\nd\t1\n",
       "text\tlabel\nc\t0\nd\t1\ne\t2\n"},
      {"jsonl", TargetKind::labels, "{\"text\":\"a\",\"labels\":[\"x\",\"y\"]}\n",
       "{\"text\":\"b\",\"labels\":[\"x\"]}\n", "{\"text\":\"b\",\"labels\":[\"x\",\"z\"]}\n"},
      {"conll", TargetKind::tags, "a X\nb Y\n", "c X\n", "c X\nd Z\n"},
      {"jsonl", TargetKind::tags, "{\"tokens\":[\"a\",\"b\"],\"tags\":[\"X\",\"Y\"]}\n",
       "{\"tokens\":[\"c\"],\"tags\":[\"X\"]}\n",
       "{\"tokens\":[\"c\",\"d\"],\"tags\":[\"X\",\"Z\"]}\n"},
      {"jsonl", TargetKind::tags, "{\"tokens\":[\"a\",\"b\"],\"tags\":[0,1]}\n",
       "{\"tokens\":[\"c\"],\"tags\":[1]}\n", "{\"tokens\":[\"c\",\"d\"],\"tags\":[1,2]}\n"},
      {"image-folder", TargetKind::label, "t", "v", "w"}};
  for (const One& one : all) {
    const bool images = one.format == std::string("image-folder");
    if (images && !png_codec().available()) continue;
    const auto file = [&](const std::string& name, const std::string& text) {
      return images ? folder.path(text) : folder(name, text);
    };
    DataOptions options{.format = one.format,
                        .files = {file("train", one.train)},
                        .validation_files = {file("held", one.sound)},
                        .most_overlap = 1,
                        .tokens_per_sample = 12,
                        .targets = one.targets};
    SCOPED_TRACE(one.format + one.train);
    EXPECT_NO_THROW(open_dataset(options));
    const std::string bad = file("held", one.bad);
    options.validation_files = {bad};
    EXPECT_ERROR(open_dataset(options), "of data.files");
    EXPECT_ERROR(open_dataset(options), bad);
    options.validation_files.clear();
    options.validation = 0;
    options.test_files = {bad};
    EXPECT_ERROR(open_dataset(options), bad);
  }
}

// A tag of one sentence, which may be drawn into what is held out.
TEST(HeldOutClass, IsRefusedWhereItIsDrawn) {
  const Folder folder;
  int refused = 0, read = 0;
  for (int rare = 0; rare < 20; ++rare) {
    std::string text;
    for (int i = 0; i < 20; ++i)
      text += fmt::format("w{} X\nv{} {}\n\n", i, i, i == rare ? "R" : "Y");
    DataOptions options{.format = "conll",
                        .files = {folder("a", text)},
                        .validation = 0.3,
                        .tokens_per_sample = 16,
                        .targets = TargetKind::tags};
    try {
      open_dataset(options);
      ++read;
    } catch (const Error& error) {
      EXPECT_TRUE(contains(error.what(), "the label 'R' is that of no sentence to train on"));
      EXPECT_TRUE(contains(error.what(), fmt::format("a:{}", 3 * rare + 1))) << error.what();
      ++refused;
    }
    options.options["missing_classes"] = true;
    EXPECT_NO_THROW(open_dataset(options));
  }
  EXPECT_EQ(refused, 6);
  EXPECT_EQ(read, 14);
}

// --- tables as programs write them ---

struct Tables : testing::Test {
  Folder folder;
  /// "LINE:cell|cell" of each row.
  std::vector<std::string> rows(const std::string& format, const std::string& text) {
    const auto table = open_table(format, folder("a." + format, text));
    std::vector<std::string> all;
    for (RowCells row; table->next(row);) {
      all.push_back(std::to_string(row.line) + ":");
      for (const CellText& cell : row.cells) all.back() += std::string(cell.text) + "|";
    }
    return all;
  }
  using Rows = std::vector<std::string>;
};

TEST_F(Tables, AListOfObjectsIsReadAsJsonLines) {
  const Rows each{"1:a|0|", "2:b|1|"};
  EXPECT_EQ(rows("jsonl", R"([{"text": "a", "x": 0}, {"text": "b", "x": 1}])"), each);
  EXPECT_EQ(rows("jsonl", "[\n{\"text\": \"a\", \"x\": 0},\n{\"text\": \"b\", \"x\": 1}\n]\n"),
            (Rows{"2:a|0|", "3:b|1|"}));
  EXPECT_EQ(rows("jsonl",
                 "\n [\n  {\n    \"text\": \"[{,}]\\\"\\\\\",\n    \"x\": 0\n  },\n  {\n"
                 "    \"x\": [1, {}],\n    \"text\": \"b\"\n  }\n]"),
            (Rows{"3:[{,}]\"\\|0|", "7:b|[1,{}]|"}));
  EXPECT_ERROR(rows("jsonl", R"([{"text": "a"}, {"text": "b")"), "begins as a list");
  EXPECT_ERROR(rows("jsonl", R"([{"text": "a"} {"text": "b"}])"), "begins as a list");
  EXPECT_ERROR(rows("jsonl", "[1, 2]"), "no object");
  EXPECT_ERROR(rows("jsonl", R"([{"text": "a"}, {"text": "b", "text": "c"}])"), "a.jsonl:2");
  EXPECT_ERROR(rows("jsonl", "[]"), "the file is empty");
}

TEST_F(Tables, ALoneSurrogateIsNamed) {
  for (const char* half : {"\\ud83d", "\\ude00", "\\ud83dx", "\\ud83d\\u0041"})
    EXPECT_ERROR(rows("jsonl", "{\"text\": \"a\"}\n{\"text\": \"" + std::string(half) + "\"}\n"),
                 "surrogate");
}

TEST_F(Tables, LinesMayAllEndInCarriageReturns) {
  EXPECT_EQ(rows("csv", "text,x\ra,0\rb,1\r"), (Rows{"2:a|0|", "3:b|1|"}));
  EXPECT_EQ(rows("tsv", "text\tx\ra\t0"), (Rows{"2:a|0|"}));
  EXPECT_EQ(rows("jsonl", "{\"x\": 1}\r{\"x\": 2}\r"), (Rows{"1:1|", "2:2|"}));
}

TEST_F(Tables, ExcelsLineOfTheSeparatorIsNoRow) {
  for (const std::string end : {"\n", "\r\n", "\r"})
    for (const std::string by : {";", ",", "|", "\t"})
      EXPECT_EQ(rows("csv", "sep=" + by + end + "text" + by + "x" + end + "a" + by + "0" + end),
                (Rows{"3:a|0|"}));
  EXPECT_EQ(rows("csv", "sep=x,y\n1,2\n"), (Rows{"2:1|2|"})) << "a name like any other";
}

TEST_F(Tables, ConllFilesWhoseWordsAreNumberedAreRefused) {
  const auto read = [&](const std::string& text) {
    return open_dataset({.format = "conll",
                         .files = {folder("a.conll", text)},
                         .validation = 0,
                         .tokens_per_sample = 32,
                         .targets = TargetKind::tags});
  };
  const std::string tail = "\t_\t_\t0\troot\t_\t_\n";
  const std::string rows = "1\tIt\tit\tPRON" + tail + "2-3\tisn't\t_\t_" + tail + "2\tis\tbe\tAUX" +
                           tail + "3\tn't\tnot\tPART" + tail + "\n1\tYes\tyes\tINTJ" + tail;
  EXPECT_ERROR(read(rows), "CoNLL-U");
  EXPECT_ERROR(read("# sent_id = 1\n# text = It is not\n" + rows), "CoNLL-U");
  EXPECT_NO_THROW(read("1 CD B-N\nof IN O\n\n2 CD B-N\nmore JJ O\n")) << "numbers that are words";
}

}  // namespace
}  // namespace concertina
