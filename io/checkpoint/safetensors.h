// Tensors in the files of Hugging Face's safetensors: a length, a JSON header, then the bytes of
// all tensors without gaps.
// Invariant: a file that breaks a rule of the format is refused before any of it is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "io/file.h"

namespace concertina {

/// The last six may be in a file, and are never read.
enum class StoredType : std::uint8_t { f64, f32, f16, bf16, i64, i32, i16, i8, u8, boolean };

struct StoredTensor {
  std::string name;
  StoredType type = StoredType::f32;
  std::vector<std::int64_t> shape{};  // none: one element
  std::uint64_t begin = 0;            // in the file
  std::uint64_t elements() const;
  std::uint64_t bytes() const;
  /// Whether it can be read.
  bool is_real() const { return type <= StoredType::bf16; }
};

/// A file for reading. For several threads at once.
class SafetensorsFile {
 public:
  /// Input errors name the file, the tensor and the rule.
  explicit SafetensorsFile(const std::string& path);

  const std::string& path() const { return file_.path(); }
  /// The tensors by name.
  const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }
  /// The header's text, padding included.
  const std::string& header() const { return header_; }
  /// Elements [first, first + out.size()) of the flattened tensor, which is of this file. Input
  /// error: it is not of real numbers.
  void read(const StoredTensor& tensor, std::uint64_t first, std::span<float> out) const;

 private:
  File file_;
  std::string header_;
  std::map<std::string, StoredTensor> tensors_;
};

/// Writes one new file, tensor after tensor. It stays where that fails: its folder is of the
/// caller.
class SafetensorsWriter {
 public:
  /// `tensors`: all of them, f32 or bf16; `begin` is not read. They are written in the order that
  /// the format's own library has: by name.
  SafetensorsWriter(const std::string& path, std::vector<StoredTensor> tensors);

  /// Takes the next elements until the file has all, and returns how many it took; bf16 is rounded
  /// to the nearest, ties to even.
  std::size_t append(std::span<const float> values);
  /// After the last element: on the storage.
  void finish();

 private:
  void append_bytes(std::span<const std::byte> bytes);

  std::vector<StoredTensor> tensors_;
  File file_;
  std::uint64_t at_ = 0, end_ = 0;  // bytes of the file that are written, and in all
  std::size_t current_ = 0;         // the tensor that the next element is of
  std::uint64_t left_ = 0;          // of its elements
};

}  // namespace concertina
