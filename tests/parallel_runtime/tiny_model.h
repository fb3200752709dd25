// A model that trains a step in microseconds, but realistically: every bit of loss and gradients
// depends on every input, on the combination of microbatches and the order of additions.
#pragma once

#include <vector>

#include "parallel/plan/schedule.h"
#include "tests/parallel_runtime/test_stage.h"

namespace concertina {

inline constexpr int kTinyUnits = 4, kTinyWidth = 4;

/// Units [first, last): y = x * w + a neighbor's x, elementwise; the loss is the sum of squares. It
/// overwrites buffers with NaN after their last read.
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

  float grads_[kTinyUnits * kTinyWidth] = {};                  // of one B
  mutable float losses_[kTinyWidth] = {};                      // of the previous microbatch
  mutable float scratch_[(kTinyUnits + 1) * kTinyWidth] = {};  // for an F of only frozen units
};

/// Results of two steps: gradients of all buckets (NaN if frozen) and losses of all microbatches,
/// as bits.
struct TinyResult {
  std::vector<std::vector<float>> gradients;
  std::vector<double> losses;
  /// Compares bits.
  bool operator==(const TinyResult& other) const;
};

/// Runs the plan with a thread per row and unbuffered sends. `plan` must be complete; a wrong one
/// may throw, or never return.
TinyResult run_tiny(const Plan& plan, const Layout& layout, int microbatches, int leaves);

}  // namespace concertina
