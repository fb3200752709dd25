// Shared by the tests of readers: small files of each format, and samples read from them.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "io/datasets/dataset.h"
#include "tests/buffer.h"
#include "tests/io/io_test.h"

namespace concertina {

/// Fields of one sample: integers by name, or an image.
struct ReadSample {
  std::map<std::string, std::vector<std::int32_t>> of;
  std::vector<float> image;
};

inline ReadSample sample_of(const Dataset& dataset, const SampleAt& at) {
  std::vector<Buffer> buffers;
  std::vector<View> views;
  for (const Field& field : dataset.fields())
    buffers.emplace_back(static_cast<std::size_t>(field.elements()), field.type);
  for (Buffer& buffer : buffers) views.push_back(buffer.view());
  dataset.write(at, views);
  ReadSample sample;
  for (std::size_t f = 0; f < views.size(); ++f)
    if (views[f].dtype == DType::f32)
      sample.image.assign(views[f].f32(), views[f].f32() + views[f].count);
    else
      sample.of[dataset.fields()[f].name].assign(views[f].i32(), views[f].i32() + views[f].count);
  return sample;
}

/// Reads every sample: what a reader accepts must be complete.
inline void read_all(const Dataset& dataset) {
  for (const Split split : {Split::train, Split::validation, Split::test})
    for (std::uint64_t i = 0; i < dataset.samples(split); ++i)
      sample_of(dataset, {.split = split, .sample = i, .seed = 1});
}

inline std::string big_endian(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
          static_cast<char>(value >> 8), static_cast<char>(value)};
}

inline std::string idx(std::uint32_t magic, const std::vector<std::uint32_t>& sizes,
                       const std::string& data) {
  std::string bytes = big_endian(magic);
  for (const std::uint32_t size : sizes) bytes += big_endian(size);
  return bytes + data;
}

inline std::string ramp(std::size_t bytes) {
  std::string data(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<char>(i * 7);
  return data;
}

struct Folder {
  TemporaryDirectory root;
  std::string path(const std::string& name) const { return root.path() + "/" + name; }
  std::string operator()(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    spill(path(name), content);
    return path(name);
  }
};

inline void gzip(const std::string& path, const std::string& content) {
  gzFile file = ::gzopen(path.c_str(), "wb");
  ASSERT_EQ(::gzwrite(file, content.data(), static_cast<unsigned>(content.size())),
            std::ssize(content));
  ::gzclose(file);
}

/// Returns where the project's own data is, or an empty string.
inline std::string data_at_hand(const std::string& name) {
  const char* folder = std::getenv("CONCERTINA_DATA");
  const std::string path =
      (folder != nullptr ? std::string(folder) : CONCERTINA_SOURCE "/../shared/data") + "/" + name;
  return std::filesystem::exists(path) ? path : "";
}

/// Returns a record of CIFAR's binary version: label bytes, then pixels that increase from `first`.
inline std::string cifar_record(const std::string& labels, int first) {
  std::string record = labels;
  for (int i = 0; i < 3 * 32 * 32; ++i) record += static_cast<char>(first + i * 3);
  return record;
}

template <class T>
inline std::string little_endian(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace concertina
