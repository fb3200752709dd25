// Tars of images and labels: what is read, and what is refused by which words.
#include "tests/io/webdataset_files.h"

#include <gtest/gtest.h>

#include <array>

#include "io/images/image_codec.h"
#include "io/images/webdataset_samples.h"

namespace concertina {
namespace {

class Webdataset : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_libarchive() || !png_codec().available() || !jpeg_codec().available())
      GTEST_SKIP() << "built without libarchive, libpng or libjpeg";
  }

  /// Opens a tar of `members` and reads all of it.
  void read(const Members& members) {
    shards_("s-000.tar", tar(members));
    read_all(*open_dataset(shards_.options));
  }
  void expect_refused(const Members& members, const std::string& where, const std::string& what) {
    EXPECT_ERROR(read(members), shards_.file + where);
    EXPECT_ERROR(read(members), what);
  }
  float value(int pixel) const { return static_cast<float>(pixel / 127.5 - 1); }

  Shards shards_;
};

TEST_F(Webdataset, ImagesAndLabelsAreThoseOfTheMembers) {
  const auto dataset = open_dataset(shards_.options);
  EXPECT_EQ(dataset->fields()[0], image_field(3, 3, 4));
  ASSERT_EQ(dataset->samples(Split::train), 3U);
  EXPECT_EQ(dataset->classes().size(), 3U);
  const std::string pixels = ramp(12);
  const ReadSample grey = sample_of(*dataset, {});
  EXPECT_EQ(grey.of.at("label")[0], 2);
  for (std::size_t i = 0; i < 36; ++i)
    EXPECT_NEAR(grey.image[i], value(static_cast<unsigned char>(pixels[i % 12])), 1e-6);
  const ReadSample colour = sample_of(*dataset, {.sample = 1});
  EXPECT_EQ(colour.of.at("label")[0], 0);
  for (std::size_t i = 0; i < 36; ++i)
    EXPECT_NEAR(colour.image[i], value(std::array{200, 60, 30}[i / 12]), 4 / 127.5);
  const ReadSample steps = sample_of(*dataset, {.sample = 2});
  EXPECT_EQ(steps.of.at("label")[0], 1);
  for (std::size_t i = 0; i < 36; ++i)
    EXPECT_NEAR(steps.image[i], value(20 + 60 * static_cast<int>(i % 4)), 6 / 127.5);
}

TEST_F(Webdataset, ColourPngsAreReadByChannel) {
  read({{"0.png", png(4, 3, 2, ramp(36))}, {"0.cls", "0"}});
  const ReadSample sample = sample_of(*open_dataset(shards_.options), {});
  const std::string pixels = ramp(36);
  for (std::size_t c = 0; c < 3; ++c)
    for (std::size_t i = 0; i < 12; ++i)
      EXPECT_NEAR(sample.image[c * 12 + i], value(static_cast<unsigned char>(pixels[3 * i + c])),
                  1e-6);
}

TEST_F(Webdataset, CompressedTarsAreReadAsPlainOnes) {
  const auto plain = open_dataset(shards_.options);
  DataOptions options = shards_.options;
  options.files = {shards_.path("s.tar.gz")};
  gzip(options.files[0], slurp(shards_.file));
  const auto packed = open_dataset(options);
  for (std::uint64_t i = 0; i < 3; ++i)
    EXPECT_EQ(sample_of(*packed, {.sample = i}).image, sample_of(*plain, {.sample = i}).image);
  const std::string bytes = slurp(options.files[0]);
  shards_("s.tar.gz", bytes.substr(0, bytes.size() / 2));
  EXPECT_ERROR(open_dataset(options), "s.tar.gz");
}

TEST_F(Webdataset, BracesCountShardsAndABoundaryEndsASample) {
  shards_("s-001.tar", tar({{"b/0.png", png(4, 3, 0, ramp(12))}, {"b/0.cls", "1"}}));
  DataOptions options = shards_.options;
  options.files = {shards_.path("s-{000..001}.tar")};
  EXPECT_EQ(open_dataset(options)->samples(Split::train), 4U);
  options.files = {shards_.path("s-{000..002}.tar")};
  EXPECT_ERROR(open_dataset(options), "s-002.tar");
  options.files = {shards_.path("s-{3..1}.tar")};
  EXPECT_ERROR(open_dataset(options), "data.files");
  EXPECT_EQ(
      expand_braces("a{08..10}{1..2}{x}", "k"),
      (std::vector<std::string>{"a081{x}", "a082{x}", "a091{x}", "a092{x}", "a101{x}", "a102{x}"}));
  EXPECT_ERROR(expand_braces("{0..999999}{0..999999}", "k"), "too many files");
}

TEST(WebdatasetKeys, EndAtTheFirstDotOfTheBaseName) {
  EXPECT_EQ(member_key("a.b/c.seg.PNG").key, "a.b/c");
  EXPECT_EQ(member_key("a.b/c.seg.PNG").extension, "seg.png");
  for (const char* none : {"a", "a.b/c", ".hidden.png", "a/.png", "__m__/a.png", "__m.x__"})
    EXPECT_EQ(member_key(none).key, "") << none;
  EXPECT_EQ(member_key("a/__m__/b.png").key, "a/__m__/b");
}

TEST_F(Webdataset, LiesAboutSamplesAreNamed) {
  const std::string image = png(4, 3, 0, ramp(12));
  expect_refused({{"k.png", image}, {"k.cls", "0"}, {"k.png", image}}, ": member 'k.png'",
                 "the extension 'png' comes twice in sample 'k'");
  expect_refused({{"k.png", image},
                  {"k.cls", "0"},
                  {"l.png", image},
                  {"l.cls", "0"},
                  {"k.png", image},
                  {"k.cls", "0"}},
                 ": member 'k.png'", "members that do not stand together in sample 'k'");
  expect_refused({{"k.png", image}, {"k.jpg", colour_jpeg()}}, ": member 'k.jpg'",
                 "a second image in sample 'k'");
  expect_refused({{"k.png", image}, {"l.png", image}}, ": member 'k.png'", "no .cls in sample 'k'");
  expect_refused({{"k.cls", "0"}}, ": member 'k.cls'", "no image in sample 'k'");
  for (const char* label : {"", "x", "-1", "1.5", "1 2", "99999999999", "1048576"})
    expect_refused({{"k.png", image}, {"k.cls", label}}, ": member 'k.cls'",
                   "not the number of a class");
  expect_refused(
      {{"k.png", image}, {"k.cls", "0"}, {"l.png", png(5, 3, 0, ramp(15))}, {"l.cls", "0"}},
      ": member 'l.png'", "an image of 3 x 5 among others of 3 x 4");
}

TEST_F(Webdataset, LabelsAreThoseOfTheClasses) {
  const std::string held =
      shards_("v.tar", tar({{"k.png", png(4, 3, 0, ramp(12))}, {"k.cls", "3"}}));
  DataOptions options = shards_.options;
  options.validation_files = {held};
  options.options["missing_classes"] = true;
  options.most_overlap = 1;  // it is one of those trained on
  EXPECT_ERROR(open_dataset(options), held + ": member 'k.cls'");
  EXPECT_ERROR(open_dataset(options), "label 3 is not in [0, 3)");
  shards_("classes.txt", "cat\ndog\nemu\nfox\n");
  EXPECT_EQ(open_dataset(options)->classes()[3], "fox");
  shards_("classes.txt", "cat\ndog\n");
  EXPECT_ERROR(open_dataset(options), "s-000.tar: member 'a/0.cls'");
}

TEST_F(Webdataset, DamagedImagesAreNamed) {
  const auto refused = [&](const std::string& name, const std::string& image,
                           const std::string& what) {
    expect_refused({{name, image}, {"k.cls", "0"}}, ": member '" + name + "'", what);
  };
  const std::string whole = png(4, 3, 0, ramp(12));
  refused("k.png", whole.substr(0, whole.size() - 20), "the file is cut short");
  refused("k.png", "", "cannot be read");
  refused("k.png", colour_jpeg(), "cannot be read");
  refused("k.png", png(60000, 60000, 0, ramp(12)), "60000 x 60000 pixels");
  refused("k.png", png(4, 3, 4, ramp(24)), "transparent");
  refused("k.png", png(4, 3, 0, ramp(24), 16), "16 bits");
  std::string flipped = whole;
  flipped[45] = static_cast<char>(flipped[45] ^ 1);  // in the pixels: the checksum is wrong
  refused("k.png", flipped, "cannot be read");
  for (const std::string& image : {grey_jpeg(), colour_jpeg()})
    for (const std::size_t cut : {std::size_t{1}, std::size_t{40}, image.size() - 6})
      refused("k.jpg", image.substr(0, cut), "cannot be read");
  refused("k.jpg", "", "empty");
  std::string large = grey_jpeg();
  const std::size_t frame = large.find("\xff\xc0");
  large.replace(frame + 5, 4, "\xea\x60\xea\x60");
  refused("k.jpg", large, "60000 x 60000 pixels");
}

TEST_F(Webdataset, DamagedTarsAreNamed) {
  const std::string whole = slurp(shards_.file);
  const auto refused = [&](const std::string& bytes, const std::string& what) {
    shards_("s-000.tar", bytes);
    EXPECT_ERROR(open_dataset(shards_.options), shards_.file);
    EXPECT_ERROR(open_dataset(shards_.options), what);
  };
  refused(whole.substr(0, whole.size() - 1024), "the mark of its end is missing");
  refused(whole.substr(0, 2200), "cannot be read");
  refused("no tar at all", "cannot be read");
  std::string zeroed = whole;
  zeroed.replace(1536, 512, std::string(512, '\0'));  // the header of a/0.PNG
  refused(zeroed, "cannot be read");
}

}  // namespace
}  // namespace concertina
