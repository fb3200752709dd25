// Folders of images by class, and images that are turned and scaled.
#include <gtest/gtest.h>

#include <algorithm>

#include "io/images/image_codec.h"
#include "tests/io/webdataset_files.h"

namespace concertina {
namespace {

class ImageFolder : public testing::Test {
 protected:
  void SetUp() override {
    if (!png_codec().available() || !jpeg_codec().available())
      GTEST_SKIP() << "built without libpng or libjpeg";
    options_.format = "image-folder";
    options_.files = {folder_.path("root")};
    options_.validation = 0;
    options_.most_overlap = 1;
  }
  void put(const std::string& name, const std::string& content) {
    std::filesystem::create_directories(std::filesystem::path(folder_.path(name)).parent_path());
    folder_(name, content);
  }
  void expect_refused(const std::string& where, const std::string& what) {
    EXPECT_ERROR(read_all(*open_dataset(options_)), folder_.path(where));
    EXPECT_ERROR(read_all(*open_dataset(options_)), what);
  }
  static std::string grey(int height = 3, int first = 0) {
    return png(4, static_cast<std::uint32_t>(height), 0,
               ramp(static_cast<std::size_t>(4 * height + first)).substr(first), 8);
  }

  Folder folder_;
  DataOptions options_;
};

TEST_F(ImageFolder, ClassesAreFoldersInOrder) {
  put("root/dog/2.png", grey());
  put("root/dog/a/1.JPG", grey_jpeg());
  put("root/Zebra/x.jpeg", colour_jpeg());
  put("root/cat/1.png", grey());
  put("root/cat/notes.txt", "no image");
  put("root/.cache/1.png", grey());
  const auto dataset = open_dataset(options_);
  EXPECT_EQ(std::vector<std::string>(dataset->classes().begin(), dataset->classes().end()),
            (std::vector<std::string>{"Zebra", "cat", "dog"}));
  ASSERT_EQ(dataset->samples(Split::train), 4U);
  EXPECT_EQ(dataset->fields()[0], image_field(3, 3, 4));
  for (std::uint64_t i = 0; i < 4; ++i)
    EXPECT_EQ(sample_of(*dataset, {.sample = i}).of.at("label")[0], (std::array{0, 1, 2, 2}[i]));
  const std::string pixels = ramp(12);
  for (const std::uint64_t i : {1, 2})
    for (std::size_t p = 0; p < 36; ++p)
      EXPECT_NEAR(sample_of(*dataset, {.sample = i}).image[p],
                  static_cast<unsigned char>(pixels[p % 12]) / 127.5 - 1, 1e-6);
}

TEST_F(ImageFolder, TrainValAndTestAreParts) {
  for (const char* name : {"root/train/a/1.png", "root/train/b/1.png", "root/val/a/1.png",
                           "root/val/b/1.png", "root/test/a/1.png", "root/test/b/1.png"})
    put(name, grey());
  put("root/train/a/2.png", grey());
  auto dataset = open_dataset(options_);
  EXPECT_EQ(dataset->classes().size(), 2U);
  EXPECT_EQ(dataset->samples(Split::train), 3U);
  EXPECT_EQ(dataset->samples(Split::validation), 2U);
  EXPECT_EQ(dataset->samples(Split::test), 2U);
  options_.validation_files = {folder_.path("root/test")};
  options_.test_files = options_.validation_files;
  EXPECT_EQ(open_dataset(options_)->samples(Split::validation), 2U);
  put("root/train/train/1.png", grey());  // a class of that name
  options_ = {.format = "image-folder", .files = {folder_.path("root/train")}, .validation = 0};
  EXPECT_EQ(open_dataset(options_)->classes()[2], "train");
}

TEST_F(ImageFolder, PicturesOfAnySizeBecomeSquares) {
  put("root/a/1.png", grey(3));
  put("root/a/2.png", grey(5));
  put("root/b/1.png", grey(9));
  expect_refused("root/a/2.png", "an image of 5 x 4 among others of 3 x 4");
  options_.options = {{"size", 2}, {"resize", 3}};
  const auto dataset = open_dataset(options_);
  EXPECT_EQ(dataset->fields()[0], image_field(1, 2, 2));
  read_all(*dataset);
  put("root/b/2.png", png(60000, 1, 0, ramp(60000)));
  options_.options = {{"size", 40}};
  expect_refused("root/b/2.png", "would be scaled to 40 x 2400000");
}

TEST_F(ImageFolder, ImagesAreTurnedAsTheirExifSays) {
  // From rows "abcd", "efgh", "ijkl", as ImageOps.exif_transpose() turns them.
  const std::pair<int, std::string> turned[] = {
      {1, "abcdefghijkl"}, {2, "dcbahgfelkji"}, {3, "lkjihgfedcba"}, {4, "ijklefghabcd"},
      {5, "aeibfjcgkdhl"}, {6, "ieajfbkgclhd"}, {7, "lhdkgcjfbiea"}, {8, "dhlcgkbfjaei"}};
  for (const auto& [orientation, pixels] : turned) {
    put("root/a/1.png", with_chunk(png(4, 3, 0, "abcdefghijkl"), "eXIf", exif(orientation)));
    const auto dataset = open_dataset(options_);
    EXPECT_EQ(dataset->fields()[0], orientation < 5 ? image_field(1, 3, 4) : image_field(1, 4, 3));
    const ReadSample sample = sample_of(*dataset, {});
    for (std::size_t i = 0; i < 12; ++i)
      EXPECT_NEAR(sample.image[i], pixels[i] / 127.5 - 1, 1e-6) << orientation;
  }
  put("root/a/1.png", png(3, 4, 0, ramp(12)));
  put("root/a/2.jpg", with_exif(grey_jpeg(), 6));
  EXPECT_EQ(open_dataset(options_)->fields()[0], image_field(1, 4, 3));
}

// As torchvision's ImageFolder does it.
TEST_F(ImageFolder, LinksAreFollowed) {
  namespace fs = std::filesystem;
  put("root/a/1.png", grey());
  put("root/b/1.png", grey());
  put("elsewhere/2.png", grey());
  put("elsewhere/deep/3.png", grey());
  put("elsewhere/.hidden/4.png", grey());
  fs::create_directory_symlink("../../elsewhere", folder_.path("root/a/more"));
  EXPECT_EQ(open_dataset(options_)->samples(Split::train), 4U);
  fs::create_symlink(folder_.path("nothing"), folder_.path("root/a/.#lock"));
  fs::create_symlink(folder_.path("nothing"), folder_.path("root/.#lock"));
  EXPECT_EQ(open_dataset(options_)->samples(Split::train), 4U);
  const auto refused = [&](const std::string& where, const std::string& to) {
    const std::string link = folder_.path(where);
    fs::create_symlink(to, link);
    EXPECT_ERROR(open_dataset(options_), link);
    fs::remove(link);
  };
  refused("root/a/1-copy.png", "1.png");              // the same image twice
  refused("root/b/more", folder_.path("elsewhere"));  // in two classes
  for (const char* to : {".", "..", "loop", "../../root", "../b/../a"}) refused("root/a/loop", to);
  fs::create_symlink("..", folder_.path("elsewhere/deep/loop"));
  EXPECT_ERROR(open_dataset(options_), folder_.path("root/a/more/deep/loop"));
  fs::remove(folder_.path("elsewhere/deep/loop"));
  refused("root/c", "c");
  refused("root/c", "nothing");
  refused("root/a/2.png", "nothing");
  refused("root/a/more2", "nothing");
  refused("root/a/null.png", "/dev/null");
}

TEST_F(ImageFolder, WrongFoldersAreNamed) {
  options_.files = {folder_.path("none")};
  expect_refused("none", "is no folder");
  options_.files = {folder_.path("root")};
  put("root/.hidden", "");
  expect_refused("root", "has no folders of classes");
  put("root/a/1.png", grey());
  put("root/b/1.txt", "");
  expect_refused("root/b", "a class without an image");
  put("root/b/1.webp", "");
  expect_refused("root/b/1.webp", "no images of .webp are read");
  std::filesystem::remove(folder_.path("root/b/1.webp"));
  put("root/b/1.png", grey());
  put("root/1.png", grey());
  expect_refused("root/1.png", "an image that is in no folder of a class");
  std::filesystem::remove(folder_.path("root/1.png"));
  put("held/c/1.png", grey());
  options_.validation_files = {folder_.path("held")};
  expect_refused("held/c/1.png", "'c' is no class of data.files");
  options_.validation_files.clear();
  put("root/\xff/1.png", grey());
  expect_refused("root/\xff", "not UTF-8");
}

TEST_F(ImageFolder, DamagedImagesAreNamed) {
  put("root/a/1.png", grey());
  const auto refused = [&](const std::string& image, const std::string& what) {
    put("root/b/1.png", image);
    expect_refused("root/b/1.png", what);
  };
  refused("", "cannot be read");
  refused(grey().substr(0, 50), "the file is cut short");
  refused(png(4, 3, 4, ramp(24)), "transparent");
  refused(png(4, 3, 0, ramp(24), 16), "16 bits");
  // A header that is longer than what is read at first.
  put("root/b/1.png", with_chunk(grey(), "teXt", ramp(70000)));
  read_all(*open_dataset(options_));
}

}  // namespace
}  // namespace concertina
