// A stage that checks all its arguments: every buffer keeps the mark written into it until its last
// reader has read it.
#pragma once

#include <array>
#include <map>
#include <utility>
#include <vector>

#include "parallel/plan/job.h"
#include "tests/parallel_runtime/test_stage.h"

namespace concertina {

inline constexpr int kMarkedUnits = 7, kMarkedRows = 3;  // rows per microbatch
inline constexpr float kMarkedLossScale = 0.25F;

/// Returns the content of the buffer `kind` of a microbatch at the boundary before `unit`: 's'
/// saved, 'x' the activation, 'g' its gradient, 'i' what is kept between I and W.
float mark(char kind, int unit, int microbatch);

/// Returns a job whose first unit reads "tokens", a middle one "lengths", the last "targets".
Job marked_job(int microbatches, int leaves);

/// Writes and checks marks; poisons a buffer after its last read. Row r of microbatch m has m *
/// kMarkedRows + r in every field. Each element of each gradient gets 1 for each microbatch and
/// use.
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

  /// Returns the passes by kind and microbatch since the last call.
  std::map<std::pair<char, int>, int> take_calls();
  /// Returns how often a unit ran between two units of another pass of this stage.
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
  std::map<std::pair<char, int>, int> calls_, next_;  // next_: the unit of each open pass
  int interleaved_ = 0;
  mutable std::array<float, kMarkedRows> losses_{};  // of the previous microbatch
};

}  // namespace concertina
