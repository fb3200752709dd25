// Images with labels: MNIST's and CIFAR's files, and how images are augmented.
#include <gtest/gtest.h>

#include <array>
#include <set>

#include "tests/io/reader_files.h"

namespace concertina {
namespace {

TEST(Mnist, ImagesAndLabelsAreThoseOfTheFiles) {
  Mnist folder;
  const auto dataset = open_dataset(folder.options);
  EXPECT_EQ(dataset->samples(Split::train), 3U);
  EXPECT_EQ(dataset->samples(Split::validation), 2U);
  EXPECT_EQ(dataset->classes().size(), 10U);
  EXPECT_TRUE(dataset->repeats());
  const std::string pixels = ramp(30);
  for (std::uint64_t i = 0; i < 5; ++i) {
    const ReadSample sample =
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
  refused(images, images, "2 files of images and 0 of labels");
}

TEST(Mnist, ThereAreAsManyClassesAsTheLabelsNeedAndAtLeastTen) {
  Mnist folder;
  folder("labels", idx(0x801, {5}, "\1\2\3\4\5"));
  EXPECT_EQ(open_dataset(folder.options)->classes().size(), 10);
  folder("labels", idx(0x801, {5}, "\1\2\32\4\5"));
  EXPECT_EQ(open_dataset(folder.options)->classes().size(), 27);
}

TEST(Images, AugmentationFollowsFromSeedEpochAndSampleAlone) {
  Mnist folder;
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

/// torchvision's Normalize: (p - mean[c]) / deviation[c].
TEST(Images, EachChannelHasItsMeanAndDeviation) {
  const Cifar folder;
  const auto plain = open_dataset(folder.options);
  DataOptions options = folder.options;
  const std::vector<float> whole = sample_of(*plain, {}).image;
  options.options["mean"] = std::vector<double>{0.5, 0.5, 0.5};
  EXPECT_EQ(sample_of(*open_dataset(options), {}).image, whole);
  options.options["mean"] = std::vector<double>{0.485, 0.456, 0.406};
  options.options["deviation"] = std::vector<double>{0.229, 0.224, 0.225};
  const std::vector<float> image = sample_of(*open_dataset(options), {}).image;
  const std::string file = slurp(folder.file);
  for (std::size_t p = 0; p < 3072; ++p)
    ASSERT_NEAR(image[p],
                (static_cast<unsigned char>(file[1 + p]) / 255.0 -
                 options.own<std::vector<double>>("mean")[p / 1024]) /
                    options.own<std::vector<double>>("deviation")[p / 1024],
                1e-6);
  options.options["mean"] = std::vector<double>{0.5, 0.5};
  EXPECT_ERROR(open_dataset(options), "2 numbers for images of 3 channels\n  at: data.mean");
  options.options["mean"] = std::vector<double>{0.5};
  options.options["deviation"] = std::vector<double>{};
  EXPECT_ERROR(open_dataset(options), "0 numbers for images of 3 channels\n  at: data.deviation");
  options.options["deviation"] = std::vector<double>{1, 0, 1};
  EXPECT_ERROR(open_dataset(options), "a deviation of 0");
  Mnist grey;
  grey.options.options["mean"] = std::vector<double>{0.1, 0.2, 0.3};
  EXPECT_ERROR(open_dataset(grey.options), "3 numbers for images of 1 channels");
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

TEST(Cifar, ImagesAndLabelsAreThoseOfTheFiles) {
  const Cifar folder;
  const auto dataset = open_dataset(folder.options);
  EXPECT_EQ(dataset->fields()[0], image_field(3, 32, 32));
  EXPECT_EQ(dataset->samples(Split::train), 2U);
  EXPECT_EQ(dataset->samples(Split::validation), 1U);
  EXPECT_EQ(dataset->classes()[9], "9");
  const std::string file = slurp(folder.file);
  for (std::uint64_t i = 0; i < 3; ++i) {
    const ReadSample sample =
        sample_of(*dataset, i < 2 ? SampleAt{.sample = i, .seed = 1}
                                  : SampleAt{.split = Split::validation, .sample = i - 2});
    EXPECT_EQ(sample.of.at("label")[0], (std::array{7, 3, 9}[i]));
    for (std::size_t p = 0; p < 3072; ++p)
      ASSERT_NEAR(sample.image[p], static_cast<unsigned char>(file[i * 3073 + 1 + p]) / 127.5 - 1,
                  1e-6);
  }
}

TEST(Cifar, FineAndCoarseLabelsHaveTheNamesBesideTheFiles) {
  const Cifar folder;
  std::string fine, coarse;
  for (int i = 0; i < 100; ++i) fine += fmt::format("fine {}\n", i);
  for (int i = 0; i < 20; ++i) coarse += fmt::format("coarse {}\r\n", i);
  DataOptions options = folder.options;
  options.validation = 0;
  gzip(folder.path("batch.bin"), cifar_record("\x13\x63", 4) + cifar_record("\x02\x05", 5));
  options.format = "cifar100";
  EXPECT_EQ(open_dataset(options)->classes()[99], "99");
  folder("fine_label_names.txt", fine);
  folder("coarse_label_names.txt", coarse + "\n");
  auto dataset = open_dataset(options);
  EXPECT_EQ(dataset->classes()[99], "fine 99");
  EXPECT_EQ(sample_of(*dataset, {}).of.at("label")[0], 99);
  options.format = "cifar100-coarse";
  dataset = open_dataset(options);
  ASSERT_EQ(dataset->classes().size(), 20U);
  EXPECT_EQ(dataset->classes()[19], "coarse 19");
  EXPECT_EQ(sample_of(*dataset, {.sample = 1}).of.at("label")[0], 2);
  folder("coarse_label_names.txt", fine);
  EXPECT_ERROR(open_dataset(options), "100 names for 20 classes");
  folder("coarse_label_names.txt", "a\n\nb\n");
  EXPECT_ERROR(open_dataset(options), "coarse_label_names.txt:2");
}

TEST(Cifar, LiesAreNamed) {
  const Cifar folder;
  const auto refused = [&](const std::string& bytes, const std::string& format,
                           const std::string& where, const std::string& what) {
    folder("batch.bin", bytes);
    DataOptions options = folder.options;
    options.format = format;
    EXPECT_ERROR(open_dataset(options), where);
    EXPECT_ERROR(open_dataset(options), what);
  };
  const std::string whole = slurp(folder.file);
  refused(whole.substr(0, 7000), "cifar10", "batch.bin: byte 6146", "no whole number of images");
  refused(whole, "cifar100", "batch.bin: byte 6148", "records of 3074 bytes");
  refused(whole + cifar_record("\x0a", 0), "cifar10", "batch.bin: byte 9219",
          "label 10 of image 3 is not in [0, 10)");
  refused(cifar_record("\x14\x01", 0), "cifar100", "batch.bin: byte 0",
          "coarse label 20 of image 0 is not in [0, 20)");
  refused(cifar_record("\x01\x64", 0), "cifar100-coarse", "batch.bin: byte 1",
          "fine label 100 of image 0 is not in [0, 100)");
}

}  // namespace
}  // namespace concertina
