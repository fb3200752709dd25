// The fields of a sample, and the sources of samples.
// Invariants: the samples of a step are a pure function of (seed, step). A field is identified by
// its name, type and shape, not by the stage that reads it.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace concertina {

/// A named tensor of a sample: tokens [T], an image [3, H, W], a label [].
struct Field {
  std::string name;
  DType type = DType::i32;
  std::vector<std::int64_t> shape;  // shape of one sample
  std::int64_t most = 0;            // maximum number of elements other than kIgnored; 0: all
  bool target = false;              // used by a loss; missing targets are ignored

  /// Returns the number of elements per sample.
  std::int64_t elements() const { return elements_of(shape); }
  bool operator==(const Field&) const = default;
};

class BatchSource {
 public:
  virtual ~BatchSource() = default;
  /// Returns the fields of the samples, which never change.
  virtual std::span<const Field> fields() const = 0;
  /// Writes samples [first, first + count) of the global batch of `step`: `views[i]` receives count
  /// x elements of fields()[i], sample by sample. Fields with an empty view are skipped.
  virtual void load(std::int64_t step, std::int64_t first, std::int64_t count,
                    std::span<const View> views) = 0;
  /// Returns the number of valid targets in samples [0, samples) of `step`. Every rank calls this
  /// for the global batch before it loads its part, because a loss is a mean over all of them.
  virtual std::int64_t valid_targets(std::int64_t step, std::int64_t samples) const = 0;
};

/// Writes to `places` the index in `offered` (the data's fields) of each field in `wanted` (the
/// model's). Throws Error{bad_input} if a field is missing, has another type or shape, or may have
/// too many elements that are not ignored.
void find_fields(std::span<const Field> offered, std::span<const Field> wanted,
                 std::span<int> places);

/// A target, label or position that losses and metrics ignore.
inline constexpr std::int32_t kIgnored = -1;
/// Likewise for a score: the lowest float, which data must not contain.
inline constexpr float kNoScore = std::numeric_limits<float>::lowest();

/// Returns how many of `tokens` candidates to mask for masked language modeling: 15%, rounded to
/// the nearest integer, at least 1 (Devlin et al. 2019, section 3.1).
std::int64_t masked_count(std::int64_t tokens);

/// The kind of target per sample: a task determines it, and data is read accordingly.
enum class TargetKind {
  label,   // one class, or a target that is not from a table
  scores,  // numbers
  labels,  // any number of classes
  tags     // one class per word
};

// The fields that datasets write and models read, each with one name and shape.
Field tokens_field(std::int64_t tokens);                          // i32 [T]
Field targets_field(std::int64_t tokens, std::int64_t most = 0);  // i32 [T], or kIgnored
Field types_field(std::int64_t tokens);   // i32 [T]: 0 in the first sentence, 1 in the second
Field lengths_field();                    // i32 []: number of tokens, without padding; at least 1
Field label_field();                      // i32 [], or kIgnored
Field scores_field(std::int64_t scores);  // f32 [K], or kNoScore
Field tags_field(std::int64_t tokens);    // i32 [T]: a class per token, or kIgnored
Field start_field();                      // i32 []: first token of an answer, or kIgnored
Field end_field();                        // i32 []: last token of an answer, or kIgnored
Field teacher_field(std::int64_t rows, std::int64_t columns);  // f32 [rows, columns]: logits
/// i32 [T]: the position in the sample at which each token's document starts (packed documents).
Field starts_field(std::int64_t tokens);
Field image_field(std::int64_t channels, std::int64_t height, std::int64_t width);  // f32 [C, H, W]

/// Returns the fields of a text: its tokens and the token after each.
std::vector<Field> text_fields(std::int64_t tokens);
/// Blanks a sample: no target is valid, lengths are 1, everything else is 0. `views[i]` holds the
/// elements of fields[i], or is empty.
void blank_sample(std::span<const Field> fields, std::span<const View> views);

}  // namespace concertina
