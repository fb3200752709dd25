// Tests of image readers beyond reader_table_test.cc: augmentation, links and file names.
#include <gtest/gtest.h>

#include <array>
#include <set>

#include "io/images/image_codec.h"
#include "io/images/webdataset_samples.h"
#include "tests/io/reader_cases.h"
#include "tests/io/webdataset_files.h"

namespace concertina {
namespace {

TEST(Images, AugmentationFollowsFromSeedEpochAndSampleAlone) {
  const CaseFolder folder(reader_case("Images and labels are those of the files"));
  folder("images", idx(0x803, {5, 4, 5}, ramp(100)));
  DataOptions options = folder.options;
  const auto plain = open_dataset(options);
  options.options["crop"] = 1;
  options.options["flip"] = true;
  const auto dataset = open_dataset(options), again = open_dataset(options);
  EXPECT_FALSE(dataset->repeats());
  std::set<std::vector<float>> seen;
  for (std::uint64_t epoch = 0; epoch < 200; ++epoch) {
    const SampleAt at{.sample = 1, .seed = 3, .epoch = epoch};
    const ReadSample sample = sample_of(*dataset, at);
    ASSERT_EQ(sample.image, sample_of(*again, at).image);
    seen.insert(sample.image);
  }
  // Exactly each of the 3 x 3 places, flipped and not.
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

// Like torchvision's ImageFolder.
TEST(ImageFolder, LinksAreFollowed) {
  if (!png_codec().available() || !jpeg_codec().available())
    GTEST_SKIP() << "built without libpng or libjpeg";
  namespace fs = std::filesystem;
  const Folder folder;
  const DataOptions options{
      .format = "image-folder", .files = {folder.path("root")}, .validation = 0};
  const auto put = [&](const std::string& name) { folder(name, png(4, 3, 0, ramp(12))); };
  put("root/a/1.png");
  put("root/b/1.png");
  put("elsewhere/2.png");
  put("elsewhere/deep/3.png");
  put("elsewhere/.hidden/4.png");
  fs::create_directory_symlink("../../elsewhere", folder.path("root/a/more"));
  EXPECT_EQ(open_dataset(options)->samples(Split::train), 4U);
  fs::create_symlink(folder.path("nothing"), folder.path("root/a/.#lock"));
  fs::create_symlink(folder.path("nothing"), folder.path("root/.#lock"));
  EXPECT_EQ(open_dataset(options)->samples(Split::train), 4U);
  const auto refused = [&](const std::string& where, const std::string& to) {
    const std::string link = folder.path(where);
    fs::create_symlink(to, link);
    EXPECT_ERROR(open_dataset(options), link);
    fs::remove(link);
  };
  refused("root/a/1-copy.png", "1.png");             // the same image twice
  refused("root/b/more", folder.path("elsewhere"));  // in two classes
  for (const char* to : {".", "..", "loop", "../../root", "../b/../a"}) refused("root/a/loop", to);
  fs::create_symlink("..", folder.path("elsewhere/deep/loop"));
  EXPECT_ERROR(open_dataset(options), folder.path("root/a/more/deep/loop"));
  fs::remove(folder.path("elsewhere/deep/loop"));
  refused("root/c", "c");
  refused("root/c", "nothing");
  refused("root/a/2.png", "nothing");
  refused("root/a/more2", "nothing");
  refused("root/a/null.png", "/dev/null");
}

TEST(ImageFolder, ANameThatIsNotUtf8IsRefused) {
  const Folder folder;
  folder("root/\xff/1.png", png(4, 3, 0, ramp(12)));
  EXPECT_ERROR(open_dataset({.format = "image-folder", .files = {folder.path("root")}}),
               "not UTF-8");
}

TEST(Webdataset, BracesAreCounted) {
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

}  // namespace
}  // namespace concertina
