#include "tests/parallel_runtime/marking_stage.h"

#include <gtest/gtest.h>

#include "tests/parallel_runtime/test_rank.h"

namespace concertina {
namespace {

constexpr std::size_t kBoundary = 10, kSaved = 20, kGrads = 7;  // floats
constexpr float kPoisoned = -1e30F;
constexpr std::array kReaders{0, 3, kMarkedUnits - 1};  // units that read a field

void fill(void* memory, std::size_t count, float value) {
  ASSERT_NE(memory, nullptr);
  std::fill_n(static_cast<float*>(memory), count, value);
}

void expect(const void* memory, std::size_t count, float value, const char* what) {
  ASSERT_NE(memory, nullptr) << what;
  for (std::size_t i = 0; i < count; ++i)
    ASSERT_EQ(static_cast<const float*>(memory)[i], value) << what;
}

void poison(const MicrobatchIo& io) {
  fill(io.saved, kSaved, kPoisoned);
  if (!io.input.empty()) fill(io.input.data, kBoundary, kPoisoned);
  if (!io.output_grad.empty()) fill(io.output_grad.data, kBoundary, kPoisoned);
}

}  // namespace

Job marked_job(int microbatches, int leaves) {
  return tied_job(kMarkedUnits, 5, 3, microbatches, leaves, kMarkedRows,
                  {"tokens", "", "", "lengths", "", "", "targets"});
}

float mark(char kind, int unit, int microbatch) {
  return static_cast<float>(kind * 10000 + unit * 100 + microbatch);
}

StageMemory MarkingStage::memory() const {
  return {.saved_bytes = kSaved * sizeof(float),
          .grad_bytes = kGrads * sizeof(float),
          .boundary_bytes = kBoundary * sizeof(float),
          .loss_rows = kMarkedRows};
}

View MarkingStage::row_loss(const MicrobatchIo& io) const {
  losses_.fill(0);
  losses_[0] = static_cast<float>(io.microbatch) + 0.5F;
  return {losses_.data(), losses_.size(), DType::f32};
}

/// Units of a pass are called in order.
void MarkingStage::enter(char kind, int unit, const MicrobatchIo& io, int first) {
  const std::pair pass(kind, io.microbatch);
  const auto [at, fresh] = next_.try_emplace(pass, first);
  EXPECT_EQ(at->second, unit);
  calls_[pass] += fresh;
  interleaved_ += next_.size() > 1;
  at->second += kind == 'F' ? 1 : -1;
  if (at->second == (kind == 'F' ? at_.last_unit : first_trained_ - 1)) next_.erase(at);
}

void MarkingStage::forward_unit(int unit, const MicrobatchIo& io) {
  enter('F', unit, io, at_.first_unit);
  expect_outside(io, at_.first_unit > 0);
  EXPECT_EQ(io.saved == nullptr, !trains());
  if (unit + 1 < at_.last_unit) return;
  if (trains()) fill(io.saved, kSaved, mark('s', at_.first_unit, io.microbatch));
  if (at_.last_unit < kMarkedUnits)
    fill(io.output.data, kBoundary, mark('x', at_.last_unit, io.microbatch));
  if (first_trained_ > at_.first_unit && !io.input.empty())
    fill(io.input.data, kBoundary, kPoisoned);
}

void MarkingStage::backward_unit(int unit, const MicrobatchIo& io, GradientSink& sink) {
  enter('B', unit, io, at_.last_unit - 1);
  expect_inside(io);
  if (unit == first_trained_) write_input_grad(io);
  contribute(unit, io, sink);
  if (unit == first_trained_) poison(io);
}

void MarkingStage::backward_input_unit(int unit, const MicrobatchIo& io) {
  enter('I', unit, io, at_.last_unit - 1);
  expect_inside(io);
  if (unit > first_trained_) return;
  write_input_grad(io);
  fill(io.grads, kGrads, mark('i', at_.first_unit, io.microbatch));
}

void MarkingStage::backward_weight_unit(int unit, const MicrobatchIo& io, GradientSink& sink) {
  enter('W', unit, io, at_.last_unit - 1);
  expect_inside(io);
  expect(io.grads, kGrads, mark('i', at_.first_unit, io.microbatch), "grads");
  contribute(unit, io, sink);
  if (unit > first_trained_) return;
  poison(io);
  fill(io.grads, kGrads, kPoisoned);
}

View MarkingStage::logits(const MicrobatchIo& io) const {
  return {io.saved, kSaved, DType::f32};
}

std::map<std::pair<char, int>, int> MarkingStage::take_calls() {
  EXPECT_TRUE(next_.empty()) << "a pass did not end";
  return std::exchange(calls_, {});
}

/// Expects fields and input to exist exactly when they must, from F to the end.
void MarkingStage::expect_outside(const MicrobatchIo& io, bool input) const {
  EXPECT_EQ(io.input.empty(), !input);
  EXPECT_EQ(io.output.empty(), at_.last_unit == kMarkedUnits);
  EXPECT_EQ(io.loss_scale, kMarkedLossScale);
  for (std::size_t f = 0; f < kReaders.size(); ++f) {
    if (kReaders[f] < at_.first_unit || kReaders[f] >= at_.last_unit) continue;
    const View rows = io.fields[f];
    ASSERT_EQ(rows.count, kMarkedRows);
    for (int i = 0; i < kMarkedRows; ++i) ASSERT_EQ(rows.i32()[i], io.microbatch * kMarkedRows + i);
  }
  if (input) expect(io.input.data, kBoundary, mark('x', at_.first_unit, io.microbatch), "input");
}

void MarkingStage::expect_inside(const MicrobatchIo& io) const {
  expect_outside(io, at_.first_unit > 0 && first_trained_ == at_.first_unit);
  EXPECT_EQ(io.output_grad.empty(), at_.last_unit == kMarkedUnits);
  expect(io.saved, kSaved, mark('s', at_.first_unit, io.microbatch), "saved");
  if (at_.last_unit < kMarkedUnits)
    expect(io.output_grad.data, kBoundary, mark('g', at_.last_unit, io.microbatch), "output_grad");
}

void MarkingStage::write_input_grad(const MicrobatchIo& io) const {
  EXPECT_EQ(io.input_grad.empty(), !gives_gradient_);
  if (gives_gradient_)
    fill(io.input_grad.data, kBoundary, mark('g', at_.first_unit, io.microbatch));
}

}  // namespace concertina
