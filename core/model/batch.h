// The fields that a sample is made of, and where samples come from.
// Invariant: what a step holds is a pure function of (seed, step); a field is known by its name,
// type and shape, never by which stage reads it.
#pragma once

#include <cstdint>
#include <limits>
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
  std::int64_t most = 0;            // of its elements are not kIgnored; 0: all may be
  bool target = false;              // a loss compares with it; one that is missing counts nothing

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
  /// The fields of its samples; the same at every call.
  virtual std::span<const Field> fields() const = 0;
  /// Writes samples [first, first + count) of `step`'s global batch: `views[i]` gets
  /// count x elements of fields()[i], one sample after the other. An empty view is not wanted.
  virtual void load(std::int64_t step, std::int64_t first, std::int64_t count,
                    std::span<const View> views) = 0;
  /// Targets of samples [0, samples) of `step` that are valid. Every rank asks for the global batch
  /// before it loads its own part: a loss is a mean over these.
  virtual std::int64_t valid_targets(std::int64_t step, std::int64_t samples) const = 0;
};

/// Writes to `places`, for each of the fields that a model reads, where it is in `offered`, what
/// data has. Throws bad input if the data lacks one of them or has it in another type or shape, or
/// does not promise that as many of its elements are ignored.
void find_fields(std::span<const Field> offered, std::span<const Field> wanted,
                 std::span<int> places);

/// A target, label or place that no loss and no figure counts.
inline constexpr std::int32_t kIgnored = -1;
/// The same of a score: the least float, which no data may have.
inline constexpr float kNoScore = std::numeric_limits<float>::lowest();

/// Tokens that a masked language model is to tell, of `tokens` that could be masked: 15%, rounded
/// to the nearest, at least 1 (Devlin et al. 2019, 3.1).
std::int64_t masked_count(std::int64_t tokens);

/// What a sample's target is: a task says it, and data is read by it.
enum class TargetKind {
  label,   // one class, or what is no table's to say
  scores,  // numbers
  labels,  // any number of classes
  tags     // a class per word
};

// The fields that datasets write and models read, by one name and shape each.
Field tokens_field(std::int64_t tokens);                          // i32 [T]
Field targets_field(std::int64_t tokens, std::int64_t most = 0);  // i32 [T], or kIgnored
Field types_field(std::int64_t tokens);   // i32 [T]: 0 in the first sentence, 1 in the second
Field lengths_field();                    // i32 []: tokens that are not padding, at least 1
Field label_field();                      // i32 [], or kIgnored
Field scores_field(std::int64_t scores);  // f32 [K], or kNoScore
Field tags_field(std::int64_t tokens);    // i32 [T]: a class per token, or kIgnored
Field start_field();                      // i32 []: an answer's first token, or kIgnored
Field end_field();                        // i32 []: an answer's last token, or kIgnored
/// i32 [T]: of packed documents, the place in the sample at which each token's begins.
Field starts_field(std::int64_t tokens);
Field image_field(std::int64_t channels, std::int64_t height, std::int64_t width);  // f32 [C, H, W]

/// A text as tokens and what comes after each of them.
std::vector<Field> text_fields(std::int64_t tokens);
/// Makes one sample nobody's: no target is valid, a length is 1, all else 0. `views[i]` has the
/// elements of fields[i], or is empty.
void blank_sample(std::span<const Field> fields, std::span<const View> views);

}  // namespace concertina
