// The common part of test stages, without their passes: units [first, last); the model's frozen
// units have no gradients.
#pragma once

#include <algorithm>
#include <vector>

#include "core/model/stage.h"
#include "parallel/plan/layout.h"

namespace concertina {

/// Writes or adds value(e) to each element e of a gradient.
template <class Value>
void give(const GradientTarget& target, std::size_t begin, std::size_t end, const Value& value) {
  for (std::size_t e = begin; e < end; ++e)
    target.gradient.f32()[e] = target.accumulate ? target.gradient.f32()[e] + value(e) : value(e);
}

class TestStage : public Stage {
 public:
  TestStage(const StagePlacement& at, const std::vector<Bucket>& buckets, int frozen)
      : at_(at),
        first_trained_(std::clamp(frozen, at.first_unit, at.last_unit)),
        buckets_(buckets) {}

  int first_unit() const override { return at_.first_unit; }
  int last_unit() const override { return at_.last_unit; }
  int first_trained() const override { return first_trained_; }
  void set_workspace(void*, void*) override {}
  void refresh() override {}

 protected:
  /// Gives value(e) to each element e of the buckets that `unit` trains.
  template <class Value>
  void give_gradients(int unit, const MicrobatchIo& io, GradientSink& sink,
                      const Value& value) const {
    for (int b = 0; b < std::ssize(buckets_); ++b) {
      if (buckets_[b].frozen || std::ranges::count(buckets_[b].uses, unit) == 0) continue;
      const GradientTarget target = sink.begin(b, unit, io.microbatch);
      give(target, 0, target.gradient.count, value);
      sink.end(b, unit, io.microbatch);
    }
  }

  const StagePlacement at_;
  const int first_trained_;
  const std::vector<Bucket>& buckets_;
};

}  // namespace concertina
