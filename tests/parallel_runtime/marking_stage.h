// A stage that checks all it is given: every buffer holds the mark of what was put into it, until
// the last that may read it has.
#pragma once

#include <array>
#include <map>
#include <utility>
#include <vector>

#include "parallel/plan/job.h"
#include "tests/parallel_runtime/test_stage.h"

namespace concertina {

inline constexpr int kMarkedUnits = 7, kMarkedRows = 3;  // rows of a microbatch
inline constexpr float kMarkedLossScale = 0.25F;

/// What the buffer `kind` of a microbatch holds at the boundary before `unit`: 's' saved, 'x' the
/// activation, 'g' its gradient, 'i' what lies between I and W.
float mark(char kind, int unit, int microbatch);

/// A job whose first unit reads "tokens", one in the middle "lengths", the last one "targets".
Job marked_job(int microbatches, int leaves);

/// Writes and checks marks; poisons what it is the last to read. Row r of microbatch m has
/// m * kMarkedRows + r in every field. Each element of each gradient gets 1 for each
/// microbatch and use.
class MarkingStage : public TestStage {
 public:
  MarkingStage(const StagePlacement& at, const std::vector<Bucket>& buckets, int frozen)
      : TestStage(at, buckets, frozen), gives_gradient_(at.first_unit > frozen) {}

  StageMemory memory() const override;
  void forward_unit(int unit, const MicrobatchIo& io) override;
  void backward_unit(int unit, const MicrobatchIo& io, GradientSink& sink) override;
  void backward_input_unit(int unit, const MicrobatchIo& io) override;
  void backward_weight_unit(int unit, const MicrobatchIo& io, GradientSink& sink) override;
  View row_loss(const MicrobatchIo& io) const override;
  View logits(const MicrobatchIo& io) const override;

  /// Passes by kind and microbatch since the last time.
  std::map<std::pair<char, int>, int> take_calls();
  /// Times that a unit ran between two units of another pass of this stage.
  int interleaved() const { return interleaved_; }

 private:
  bool trains() const { return first_trained_ < at_.last_unit; }
  void enter(char kind, int unit, const MicrobatchIo& io, int first);
  void expect_outside(const MicrobatchIo& io, bool input) const;
  void expect_inside(const MicrobatchIo& io) const;
  void write_input_grad(const MicrobatchIo& io) const;
  void contribute(int unit, const MicrobatchIo& io, GradientSink& sink) const {
    give_gradients(unit, io, sink, [](std::size_t) { return 1.0F; });
  }

  const bool gives_gradient_;
  std::map<std::pair<char, int>, int> calls_, next_;  // next_: unit of each open pass
  int interleaved_ = 0;
  mutable std::array<float, kMarkedRows> losses_{};  // of the microbatch before
};

}  // namespace concertina
