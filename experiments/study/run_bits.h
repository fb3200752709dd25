// Whether two runs are the same bits, and where they first are not.
// Invariant: it only reads. A checkpoint counts where both runs still have one of the step, and a
// damaged one is an input error, never a difference.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "experiments/results/results.h"

namespace concertina {

/// The first element in which two checkpoints of a step differ.
struct TensorDifference {
  std::int64_t step = 0;
  std::string tensor, part;  // of the first tensor by name; part: weight, or of the optimizer state
  std::uint64_t element = 0;
  double one = 0, other = 0;
  std::size_t tensors = 0, of = 0;  // that differ, of all
};

struct BitsOfTwo {
  std::int64_t steps = 0;                 // that both have in their logs
  std::int64_t last = 0, other_last = 0;  // step of each log
  /// The first of these whose loss or gradient norm differs, and both values of `figure`.
  std::optional<std::int64_t> step{};
  std::string figure{};
  double one = 0, other = 0;
  /// Whether their final state is the same; nothing where one of them does not say.
  std::optional<bool> same_state{};
  std::string state{};                       // state_sha256, where it is
  std::int64_t checkpoints = 0;              // of the same step
  std::optional<TensorDifference> tensor{};  // at the first of these that differs
  std::string why_no_tensor{};               // the shapes differ: these are two models

  bool differ() const { return step || tensor || !same_state.value_or(true); }
};

/// Returns where two runs of read_runs() first differ. Throws Error{bad_input} for a damaged
/// checkpoint. `steps` are compared by log; then checkpoints from the first one on.
BitsOfTwo compare_bits(const TrialRecord& one, const TrialRecord& other);

/// "the same bits over 60 steps; the same final state (cc520f29...)".
std::string bits_text(const BitsOfTwo& bits);
nlohmann::ordered_json to_json(const BitsOfTwo& bits);

}  // namespace concertina
