// Tensors in Hugging Face's safetensors format: a length, a JSON header, then the bytes of all
// tensors without gaps. Invariant: a file that violates the format is rejected before any of it is
// used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "io/file.h"

namespace concertina {

/// Element types. Files may contain tensors of the last six types, but these cannot be read.
enum class StoredType : std::uint8_t { f64, f32, f16, bf16, i64, i32, i16, i8, u8, boolean };

struct StoredTensor {
  std::string name;
  StoredType type = StoredType::f32;
  std::vector<std::int64_t> shape{};  // empty: a scalar
  std::uint64_t begin = 0;            // offset in the file
  std::uint64_t elements() const;
  std::uint64_t bytes() const;
  /// Whether the tensor can be read.
  bool is_real() const { return type <= StoredType::bf16; }
};

/// A file opened for reading; thread-safe.
class SafetensorsFile {
 public:
  /// Throws Error{bad_input} naming the file, the tensor and the violated rule.
  explicit SafetensorsFile(const std::string& path);

  const std::string& path() const { return file_.path(); }

  const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }
  /// Returns the text of the header, including padding.
  const std::string& header() const { return header_; }
  /// Reads elements [first, first + out.size()) of a flattened tensor of this file. Throws
  /// Error{bad_input} if it is not of a floating-point type.
  void read(const StoredTensor& tensor, std::uint64_t first, std::span<float> out) const;

 private:
  File file_;
  std::string header_;
  std::map<std::string, StoredTensor> tensors_;
};

/// Writes one new file, tensor by tensor. If that fails, the caller must remove the file.
class SafetensorsWriter {
 public:
  /// `tensors` must be f32 or bf16; their `begin` is ignored. They are written in the reference
  /// library's order: by name.
  SafetensorsWriter(const std::string& path, std::vector<StoredTensor> tensors);

  /// Appends elements until the file is full and returns the number appended. Elements of bf16
  /// tensors are rounded, with ties to even.
  std::size_t append(std::span<const float> values);
  /// Completes the file after the last element and syncs it.
  void finish();

 private:
  void append_bytes(std::span<const std::byte> bytes);

  std::vector<StoredTensor> tensors_;
  File file_;
  std::uint64_t at_ = 0, end_ = 0;  // bytes written, bytes in total
  std::size_t current_ = 0;         // tensor of the next element
  std::uint64_t left_ = 0;          // elements of that tensor still to be written
};

}  // namespace concertina
