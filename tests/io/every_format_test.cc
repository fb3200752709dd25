// Tests protections against bad data with the first example of every format in readers/*.cases.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "io/images/image_codec.h"
#include "tests/io/reader_cases.h"
#include "tests/io/webdataset_files.h"

namespace concertina {
namespace {

std::vector<ReaderCase> examples() {
  std::vector<ReaderCase> first;
  for (const ReaderCase& one : reader_cases())
    if (first.empty() || first.back().format != one.format) first.push_back(one);
  return first;
}

class EveryFormat : public testing::TestWithParam<ReaderCase> {
 protected:
  bool is(const std::string& format) const { return GetParam().format == format; }
  /// Returns the file that tests change: an image, or the first of data.files.
  static std::string file_of(const DataOptions& options) {
    return options.files[0] + (options.format == "image-folder" ? "/cat/1.png" : "");
  }

  const CaseFolder folder_{GetParam()};
};

TEST_P(EveryFormat, AFileThatIsNamedTwiceIsRefused) {
  DataOptions twice = folder_.options, linked = twice;
  twice.files.insert(twice.files.end(), linked.files.begin(), linked.files.end());
  EXPECT_ERROR(open_dataset(twice), "is listed twice");
  if (is("image-folder")) {
    std::filesystem::create_hard_link(file_of(linked), linked.files[0] + "/cat/2.png");
  } else {
    linked.files.push_back(folder_.path("link"));
    std::filesystem::create_symlink(linked.files[0], linked.files.back());
  }
  EXPECT_ERROR(open_dataset(linked), "are the same");
}

/// Returns `text` in units of `width` bytes, in little- or big-endian order.
std::string widened(const std::string& text, std::size_t width, bool lowest_first) {
  std::string wide;
  for (const char c : text) {
    if (lowest_first) wide += c;
    wide.append(width - 1, '\0');
    if (!lowest_first) wide += c;
  }
  return wide;
}

TEST_P(EveryFormat, Utf16AndUtf32AreRefused) {
  const bool binary = find_format(GetParam().format).binary;
  const std::string file = file_of(folder_.options), text = is("image-folder") || is("tokens")
                                                                ? "sentence,label\ngood,1\nbad,0\n"
                                                                : slurp(file);
  std::vector<std::string> wide{"\xff\xfe" + widened(text, 2, true),
                                "\xfe\xff" + widened(text, 2, false)};
  if (!binary)  // else these may be numbers below 256
    for (const std::size_t width : {2, 4})
      for (const bool lowest_first : {false, true})
        wide.push_back(widened(text, width, lowest_first));
  for (const std::string& bytes : wide) {
    spill(file, bytes);
    EXPECT_THROW(open_dataset(folder_.options)->verify([] {}), Error) << escape_bytes(bytes);
  }
}

/// A byte order mark is skipped or rejected: it never becomes part of a name, a word or a text.
TEST_P(EveryFormat, AByteOrderMarkIsNoData) {
  if (is("image-folder") || is("tokens")) GTEST_SKIP();
  const auto sound = folder_.open();
  const ReadSample sample = sample_of(*sound, {});
  const std::string file = folder_.options.files[0];
  spill(file, "\xef\xbb\xbf" + slurp(file));
  try {
    const auto dataset = folder_.open();
    EXPECT_EQ(dataset->summary(), sound->summary());
    EXPECT_EQ(sample_of(*dataset, {}).of, sample.of);
  } catch (const Error&) {
  }
}

/// Files that Jupyter, macOS and editors create next to data.
TEST_P(EveryFormat, WhatIsHiddenIsNotRead) {
  DataOptions options = folder_.options;
  const std::string sound = open_dataset(options)->summary(), file = options.files[0];
  if (is("image-folder")) {
    for (const char* const hidden :
         {"/cat/.ipynb_checkpoints/1-checkpoint.png", "/cat/deep/.trash/1.png", "/.git/1.png"})
      folder_("root" + std::string(hidden), slurp(file_of(options)));
  } else if (is("webdataset")) {
    std::string members = slurp(file);
    members.resize(members.size() - 1024);
    spill(file, members + tar({{".ipynb_checkpoints/x.png", png(4, 3, 0, ramp(12))},
                               {"./deep/.hidden/y.png", png(4, 3, 0, ramp(12))}}));
  } else {
    const std::string extension = std::filesystem::path(file).extension().string();
    folder_(".hidden" + extension, slurp(file));
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

/// The digest decides which results are comparable: it depends on the data, not on the place.
TEST_P(EveryFormat, ItsDigestChangesWithAnyByteThatASampleHas) {
  const CaseFolder other(GetParam());
  DataOptions options = folder_.options;
  options.test_files = other.options.files;
  options.validation = 0;
  options.most_overlap = 1;
  const auto content = [](const Dataset& set) { return set.content(Split::test, [] {}).sha256; };
  const auto sound = open_dataset(options);
  const std::string samples = held_out_samples(*sound), digest = content(*sound);
  std::swap(options.files, options.test_files);
  EXPECT_EQ(content(*open_dataset(options)), digest) << "the same data in another folder";

  std::swap(options.files, options.test_files);
  const std::string file = file_of(other.options), bytes = slurp(file);
  const std::size_t most = is("webdataset") ? 4000 : 400;  // bytes, mostly headers
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
  if (is("image-folder")) {  // a checksum covers each bit of a PNG
    spill(file, png(4, 3, 0, std::string(12, 7)));
    changed += content(*open_dataset(options)) != digest ? 1 : 0;
  }
  EXPECT_GT(changed, 0);
}

INSTANTIATE_TEST_SUITE_P(Of, EveryFormat, testing::ValuesIn(examples()),
                         [](const auto& one) { return one.param.test_name(); });

}  // namespace
}  // namespace concertina
