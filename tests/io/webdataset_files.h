// Tars and images for tests, written byte by byte without the libraries that read them, except for
// two JPEG images from libjpeg-turbo (quality 90, 4:2:0, optimized codes).
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/io/reader_files.h"

namespace concertina {

inline std::string from_hex(std::string_view digits) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16));
  return bytes;
}

/// 3 rows of 20, 80, 140, 200: gray.
inline std::string grey_jpeg() {
  return from_hex(
      "ffd8ffe000104a46494600010100000100010000ffdb00430003020203020203030303040303040508050504"
      "04050a070706080c0a0c0c0b0a0b0b0d0e12100d0e110e0b0b1016101113141515150c0f1718161418121415"
      "14ffc0000b080003000401011100ffc40014000100000000000000000000000000000007ffc4001a10000007"
      "00000000000000000000000000000206083881b2ffda0008010100003f00486491e53f7928ffd9");
}

/// 3 x 4 pixels of (200, 60, 30).
inline std::string color_jpeg() {
  return from_hex(
      "ffd8ffe000104a46494600010100000100010000ffdb00430003020203020203030303040303040508050504"
      "04050a070706080c0a0c0c0b0a0b0b0d0e12100d0e110e0b0b1016101113141515150c0f1718161418121415"
      "14ffdb00430103040405040509050509140d0b0d141414141414141414141414141414141414141414141414"
      "1414141414141414141414141414141414141414141414141414ffc000110800030004030122000211010311"
      "01ffc4001500010100000000000000000000000000000007ffc4001410010000000000000000000000000000"
      "0000ffc4001501010100000000000000000000000000000708ffc40014110100000000000000000000000000"
      "000000ffda000c03010002110311003f00978017580fffd9");
}

inline std::string png_chunk(const std::string& kind, const std::string& data) {
  const std::string body = kind + data;
  const auto sum =
      ::crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return big_endian(static_cast<std::uint32_t>(data.size())) + body +
         big_endian(static_cast<std::uint32_t>(sum));
}

/// Returns a PNG with `height` rows of bytes, or with three if it is rotated; `kind`: 0 gray, 2
/// color, 4 gray with alpha.
inline std::string png(std::uint32_t width, std::uint32_t height, int kind, const std::string& data,
                       int depth = 8) {
  const std::size_t row = data.size() / (height <= data.size() ? height : 3);
  std::string plain;
  for (std::size_t at = 0; row > 0 && at < data.size(); at += row)
    plain += std::string(1, '\0') + data.substr(at, row);
  std::string packed(::compressBound(plain.size()), '\0');
  uLongf size = packed.size();
  ::compress(reinterpret_cast<Bytef*>(packed.data()), &size,
             reinterpret_cast<const Bytef*>(plain.data()), plain.size());
  packed.resize(size);
  const std::string header = big_endian(width) + big_endian(height) + static_cast<char>(depth) +
                             static_cast<char>(kind) + std::string(3, '\0');
  return "\x89PNG\r\n\x1a\n" + png_chunk("IHDR", header) + png_chunk("IDAT", packed) +
         png_chunk("IEND", "");
}

/// Returns an Exif block with an orientation, big-endian.
inline std::string exif(int orientation) {
  return std::string("MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0", 19) +
         static_cast<char>(orientation) + std::string(6, '\0');
}

/// Returns `image`, a PNG, with another chunk after its header.
inline std::string with_chunk(const std::string& image, const std::string& kind,
                              const std::string& data) {
  constexpr std::size_t kHeader = 33;
  return image.substr(0, kHeader) + png_chunk(kind, data) + image.substr(kHeader);
}

/// Returns `image`, a JPEG, with an orientation.
inline std::string with_exif(const std::string& image, int orientation) {
  const std::string block = std::string("Exif\0\0", 6) + exif(orientation);
  return image.substr(0, 2) + "\xff\xe1" + std::string(1, '\0') +
         static_cast<char>(block.size() + 2) + block + image.substr(2);
}

/// Members of a tar: names and contents. A name ending in '/' is a folder.
using Members = std::vector<std::pair<std::string, std::string>>;

inline std::string tar_member(const std::string& name, const std::string& content) {
  std::string header(512, '\0');
  const auto put = [&](std::size_t at, const std::string& text) {
    header.replace(at, text.size(), text);
  };
  put(0, name);
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  put(124, fmt::format("{:011o}", content.size()));
  put(136, "00000000000");
  put(148, "        ");
  put(156, name.ends_with('/') ? "5" : "0");
  put(257, std::string("ustar\0", 6) + "00");
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put(148, fmt::format("{:06o}", sum) + std::string(1, '\0') + " ");
  return header + content + std::string((512 - content.size() % 512) % 512, '\0');
}

inline std::string tar(const Members& members) {
  std::string bytes;
  for (const auto& [name, content] : members) bytes += tar_member(name, content);
  return bytes + std::string(1024, '\0');
}

}  // namespace concertina
