// A model small enough to train a step in microseconds, and real: every bit of its loss and
// gradients depends on every input, on which microbatch met which, and on the order of additions.
#pragma once

#include <vector>

#include "parallel/plan/schedule.h"
#include "tests/parallel_runtime/test_stage.h"

namespace concertina {

inline constexpr int kTinyUnits = 4, kTinyWidth = 4;

/// Units [first, last): y = x * w + a neighbour's x, elementwise; the loss is the sum of squares.
/// What it is the last to read it overwrites with NaN.
class TinyStage final : public TestStage {
 public:
  using TestStage::TestStage;

  StageMemory memory() const override;
  void forward_unit(int unit, const MicrobatchIo& io) override;
  void backward_unit(int unit, const MicrobatchIo& io, GradientSink& sink) override;
  void backward_input_unit(int unit, const MicrobatchIo& io) override;
  void backward_weight_unit(int unit, const MicrobatchIo& io, GradientSink& sink) override;
  View row_loss(const MicrobatchIo& io) const override;
  View logits(const MicrobatchIo& io) const override;

 private:
  int units() const { return at_.last_unit - at_.first_unit; }
  float* saved(const MicrobatchIo& io, int unit) const;
  void input_gradient(int unit, const MicrobatchIo& io, float* grads) const;
  void weight_gradient(int unit, const MicrobatchIo& io, const float* grads,
                       GradientSink& sink) const;
  void forget(const MicrobatchIo& io) const;

  float grads_[kTinyUnits * kTinyWidth] = {};                  // of a B
  mutable float losses_[kTinyWidth] = {};                      // of the microbatch before
  mutable float scratch_[(kTinyUnits + 1) * kTinyWidth] = {};  // of an F of frozen units alone
};

/// What two steps made: gradients of all buckets (NaN where they are frozen) and losses of all
/// microbatches, as bits.
struct TinyResult {
  std::vector<std::vector<float>> gradients;
  std::vector<double> losses;
  /// Equal bits.
  bool operator==(const TinyResult& other) const;
};

/// Runs the plan on as many threads as it has rows, sends without buffering. `plan` must be
/// complete; one that is wrong may throw, or never return.
TinyResult run_tiny(const Plan& plan, const Layout& layout, int microbatches, int leaves);

}  // namespace concertina
