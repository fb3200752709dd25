// What a sample is made of, and where samples come from.
// Invariant: what a step holds is a pure function of (seed, step); a field is known by its name,
// type and shape, never by which stage reads it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace concertina {

/// One named tensor of a sample: tokens [T], an image [3, H, W], a label [].
struct Field {
  std::string name;
  DType type = DType::i32;
  std::vector<std::int64_t> shape;  // of one sample

  /// Elements of one sample.
  std::int64_t elements() const {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) count *= extent;
    return count;
  }
  bool operator==(const Field&) const = default;
};

class BatchSource {
 public:
  virtual ~BatchSource() = default;
  /// What its samples have; the same at every call.
  virtual std::span<const Field> fields() const = 0;
  /// Writes samples [first, first + count) of `step`'s global batch: `views[i]` gets
  /// count x elements of fields()[i], one sample after the other. An empty view is not wanted.
  virtual void load(std::int64_t step, std::int64_t first, std::int64_t count,
                    std::span<const View> views) = 0;
  /// Targets of samples [0, samples) of `step` that are valid. Every rank asks for the global batch
  /// before it loads its own part: a loss is a mean over these.
  virtual std::int64_t valid_targets(std::int64_t step, std::int64_t samples) const = 0;
};

/// Writes to `indices`, for each of the fields that a model reads, where it is in source.fields().
/// Throws bad input if the source lacks one of them or has it in another type or shape.
void find_fields(const BatchSource& source, std::span<const Field> wanted, std::span<int> indices);

/// A text as tokens [T] and what comes after each of them; a target of -1 is scored by nobody.
std::vector<Field> text_fields(std::int64_t tokens);

}  // namespace concertina
