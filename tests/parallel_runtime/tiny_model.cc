#include "tests/parallel_runtime/tiny_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>

#include "core/error.h"
#include "tests/parallel_runtime/test_rank.h"
#include "tests/threads/thread_communicator.h"

namespace concertina {
namespace {

constexpr int kTied = 3, kSteps = 2;

float weight(int unit, int i) {
  return 0.75F + 0.05F * static_cast<float>((5 * unit + 3 * i) % 11);
}
float embedding(int token, int i) {
  return std::sin(1.7F * static_cast<float>(token) + static_cast<float>(i));
}
void fill_nan(View view) {
  if (!view.empty()) std::fill_n(view.f32(), view.count, std::numeric_limits<float>::quiet_NaN());
}

/// Each rank writes the parts that it owns.
void collect(const TestRank& rank, TinyResult& result) {
  for (std::size_t b = 0; b < rank.buckets().size(); ++b)
    if (const Part* part = rank.own_part(b))
      std::copy_n(rank.reduced(b).f32(), part->count(), result.gradients[b].begin() + part->begin);
}

void step(TestRank& rank, TinyResult& result) {
  rank.executor().run(rank.input(0.125F), [&] { collect(rank, result); });
  for (std::size_t m = 0; m < result.losses.size(); ++m)
    if (const double loss = rank.executor().losses()[m]; loss != 0.0) result.losses[m] = loss;
}

}  // namespace

StageMemory TinyStage::memory() const {
  const auto floats = [](int count) { return static_cast<std::size_t>(count) * sizeof(float); };
  return {.saved_bytes = floats((units() + 1) * kTinyWidth),
          .grad_bytes = floats(units() * kTinyWidth),
          .boundary_bytes = floats(kTinyWidth),
          .loss_rows = kTinyWidth};
}

/// Returns the input of a unit, [kTinyWidth]; for the last unit + 1, the output of the stage.
float* TinyStage::saved(const MicrobatchIo& io, int unit) const {
  auto* memory = first_trained_ < at_.last_unit ? static_cast<float*>(io.saved) : scratch_;
  return memory + (unit - at_.first_unit) * kTinyWidth;
}

void TinyStage::forward_unit(int unit, const MicrobatchIo& io) {
  float *x = saved(io, unit), *y = saved(io, unit + 1);
  for (int i = 0; i < kTinyWidth && unit == at_.first_unit; ++i)
    x[i] = unit == 0 ? embedding(io.fields[0].i32()[0], i) : io.input.f32()[i];
  for (int i = 0; i < kTinyWidth; ++i)
    y[i] = x[i] * weight(unit, i) + 0.3F * x[(i + 1) % kTinyWidth];
  if (unit + 1 == at_.last_unit && unit + 1 < kTinyUnits)
    std::copy_n(y, kTinyWidth, io.output.f32());
  if (unit + 1 == at_.last_unit && first_trained_ > at_.first_unit) fill_nan(io.input);
}

View TinyStage::row_loss(const MicrobatchIo& io) const {
  const float* y = saved(io, kTinyUnits);
  for (int i = 0; i < kTinyWidth; ++i) losses_[i] = y[i] * y[i];
  return {losses_, kTinyWidth, DType::f32};
}

View TinyStage::logits(const MicrobatchIo& io) const {
  return {saved(io, kTinyUnits), kTinyWidth, DType::f32};
}

/// Computes the gradient of `unit`'s input from that of its output; `grads`: [units, kTinyWidth].
void TinyStage::input_gradient(int unit, const MicrobatchIo& io, float* grads) const {
  float* dy = grads + (unit - at_.first_unit) * kTinyWidth;
  for (int i = 0; i < kTinyWidth && unit + 1 == at_.last_unit; ++i)
    dy[i] = unit + 1 == kTinyUnits ? 2 * io.loss_scale * saved(io, kTinyUnits)[i]
                                   : io.output_grad.f32()[i];
  float* dx = unit > at_.first_unit ? dy - kTinyWidth : io.input_grad.f32();
  const bool wanted = unit > first_trained_ || !io.input_grad.empty();
  for (int i = 0; i < kTinyWidth && wanted; ++i)
    dx[i] = dy[i] * weight(unit, i) + 0.3F * dy[(i + kTinyWidth - 1) % kTinyWidth];
}

void TinyStage::weight_gradient(int unit, const MicrobatchIo& io, const float* grads,
                                GradientSink& sink) const {
  const float *dy = grads + (unit - at_.first_unit) * kTinyWidth, *x = saved(io, unit);
  give_gradients(unit, io, sink,
                 [&](std::size_t e) { return dy[e % kTinyWidth] * x[e % kTinyWidth]; });
}

void TinyStage::forget(const MicrobatchIo& io) const {
  fill_nan({io.saved, static_cast<std::size_t>((units() + 1) * kTinyWidth), DType::f32});
  fill_nan(io.input);
  fill_nan(io.output_grad);
}

void TinyStage::backward_unit(int unit, const MicrobatchIo& io, GradientSink& sink) {
  input_gradient(unit, io, grads_);
  weight_gradient(unit, io, grads_, sink);
  if (unit == first_trained_) forget(io);
}

void TinyStage::backward_input_unit(int unit, const MicrobatchIo& io) {
  input_gradient(unit, io, static_cast<float*>(io.grads));
}

void TinyStage::backward_weight_unit(int unit, const MicrobatchIo& io, GradientSink& sink) {
  weight_gradient(unit, io, static_cast<const float*>(io.grads), sink);
  if (unit > first_trained_) return;
  forget(io);
  fill_nan({io.grads, static_cast<std::size_t>(units() * kTinyWidth), DType::f32});
}

bool TinyResult::operator==(const TinyResult& other) const {
  const auto same = [](const auto& a, const auto& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])) == 0;
  };
  return std::ranges::equal(gradients, other.gradients, same) && same(losses, other.losses);
}

TinyResult run_tiny(const Plan& plan, const Layout& layout, int microbatches, int leaves) {
  std::vector<TinyResult> results(kSteps);
  const Job job = tied_job(kTinyUnits, kTinyWidth, kTied, microbatches, leaves, 1, {"tokens"});
  for (TinyResult& result : results) {
    for (const Bucket& bucket : make_buckets(job.model))
      result.gradients.emplace_back(bucket.elements, std::numeric_limits<float>::quiet_NaN());
    result.losses.resize(static_cast<std::size_t>(microbatches));
  }
  run_threads(static_cast<int>(plan.rows.size()), [&](Communicator& world) {
    TestRank rank(plan, layout, job, world,
                  [](const StagePlacement& at, const std::vector<Bucket>& buckets, int frozen) {
                    return std::make_unique<TinyStage>(at, buckets, frozen);
                  });
    for (TinyResult& result : results) step(rank, result);
    world.barrier();
  });
  CONCERTINA_CHECK(results[0] == results[1], "two equal steps gave different bits");
  return results[0];
}

}  // namespace concertina
