// A model small enough to train a step in microseconds, and real: every bit of its loss and
// gradients depends on every input, on which microbatch met which, and on the order of additions.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "core/backend.h"
#include "core/model/stage.h"
#include "parallel/plan/schedule.h"

namespace concertina {

inline constexpr int kTinyUnits = 4, kTinyWidth = 4;

/// Units [first, last): y = x * w + a neighbour's x, elementwise; the loss is the sum of squares.
/// What it is the last to read it overwrites with NaN.
class TinyStage final : public Stage {
 public:
  TinyStage(const StagePlacement& at, const std::vector<Bucket>& buckets, int frozen)
      : at_(at),
        first_trained_(std::clamp(frozen, at.first_unit, at.last_unit)),
        buckets_(buckets) {}

  StageMemory memory() const override;
  int first_unit() const override { return at_.first_unit; }
  int last_unit() const override { return at_.last_unit; }
  int first_trained() const override { return first_trained_; }
  void forward_unit(int unit, const MicrobatchIo& io) override;
  void backward_unit(int unit, const MicrobatchIo& io, GradientSink& sink) override;
  void backward_input_unit(int unit, const MicrobatchIo& io) override;
  void backward_weight_unit(int unit, const MicrobatchIo& io, GradientSink& sink) override;
  View row_loss(const MicrobatchIo& io) const override;
  View logits(const MicrobatchIo& io) const override;
  void set_workspace(void*, void*) override {}
  void refresh() override {}

 private:
  int units() const { return at_.last_unit - at_.first_unit; }
  float* saved(const MicrobatchIo& io, int unit) const;
  void input_gradient(int unit, const MicrobatchIo& io, float* grads) const;
  void weight_gradient(int unit, const MicrobatchIo& io, const float* grads,
                       GradientSink& sink) const;
  void forget(const MicrobatchIo& io) const;

  StagePlacement at_;
  int first_trained_;
  const std::vector<Bucket>& buckets_;
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
