// Scalars for TensorBoard: an event file of length-prefixed, CRC-checked protobuf records, encoded
// by hand (format: tensorflow/core/lib/io/record_writer.cc and core/util/event.proto). Invariant:
// each record is written in a single call.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "io/file.h"

namespace concertina {

/// CRC-32C (Castagnoli), RFC 3720.
std::uint32_t crc32c(std::string_view bytes);

class TensorBoardWriter {
 public:
  /// Creates an event file in `directory` (created if absent). If `last_step` > 0, tells
  /// TensorBoard to discard what earlier files contain for later steps.
  TensorBoardWriter(const std::string& directory, std::int64_t last_step);

  void scalar(std::string_view tag, std::int64_t step, double value);
  const std::string& path() const { return file_.path(); }

 private:
  void record(const std::string& event);

  File file_;
};

}  // namespace concertina
