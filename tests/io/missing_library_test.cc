// Error messages of a program built without libarchive, libpng or libjpeg for data that needs them:
// meson.build links it with their stubs.
#include <gtest/gtest.h>

#include "io/images/image_codec.h"
#include "io/images/tar_shard.h"
#include "tests/io/webdataset_files.h"

namespace concertina {
namespace {

/// Returns the error for one sample with an image of this kind.
std::string declared_value(const std::string& image, const std::string& content) {
  const Folder folder;
  const std::string file = folder("s-000.tar", tar({{image, content}, {"a.cls", "0"}}));
  return thrown_by(
             [&] { open_dataset({.format = "webdataset", .files = {file}, .validation = 0}); })
      .what();
}

/// The error names the library, the place and the package to install.
void expect_named(const std::string& error, const std::string& library, const std::string& place,
                  const std::string& package) {
  expect_has(error, "this program was built without " + library);
  expect_has(error, place);
  expect_has(error, "install " + package + " and rebuild");
}

TEST(MissingLibrary, IsNamedWithItsPackageAndTheFile) {
  ASSERT_FALSE(has_libarchive() && png_codec().available() && jpeg_codec().available())
      << "no stub was linked";
  if (!has_libarchive()) {
    expect_named(declared_value("a.png", ""), "libarchive", "s-000.tar", "libarchive-dev");
    return;
  }
  if (!png_codec().available())
    expect_named(declared_value("a.png", png(4, 3, 0, ramp(12))), "libpng",
                 "s-000.tar: member 'a.png'", "libpng-dev");
  if (!jpeg_codec().available())
    expect_named(declared_value("a.jpg", grey_jpeg()), "libjpeg", "s-000.tar: member 'a.jpg'",
                 "libjpeg62-turbo-dev");
}

/// Formats that need no library can still be read.
TEST(MissingLibrary, OtherFormatsAreRead) {
  const Folder folder;
  const std::string file = folder("a.bin", cifar_record("\x07", 1));
  read_all(*open_dataset({.format = "cifar10", .files = {file}, .validation = 0}));
}

}  // namespace
}  // namespace concertina
