// The record of a device that lags behind its host.
#include "parallel/runtime/trace_recorder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "parallel/runtime/unit_clock.h"

namespace concertina {
namespace {

/// Marks pass when the device reaches them, on a clock that is not read before settle().
class LaggingClock final : public KernelClock {
 public:
  void kernels(double seconds) { device_ = std::max(device_, host_) + seconds; }
  void host_passes(double seconds) { host_ += seconds; }

  void reserve(std::size_t marks) override { room_ += marks; }
  void forget_room() override { room_ = 0; }
  double mark() override {
    if (settled_) times_.clear(), settled_ = false;
    times_.push_back(std::max(device_, host_));
    EXPECT_LE(times_.size(), room_);
    return -static_cast<double>(times_.size());
  }
  void settle() override { settled_ = true, host_ = std::max(device_, host_); }
  double time(double mark) const override {
    EXPECT_TRUE(settled_);
    return times_.at(static_cast<std::size_t>(-mark) - 1);
  }
  double mark_seconds() const override { return 1e-6; }
  void enter(const char* name) override { ranges_.emplace_back(name); }
  void leave() override { ranges_.emplace_back("-"); }
  std::vector<std::string> ranges() { return std::exchange(ranges_, {}); }

 private:
  std::size_t room_ = 0;
  std::vector<double> times_;
  bool settled_ = false;
  double host_ = 100, device_ = 0;
  std::vector<std::string> ranges_;
};

const Action kForward{Kind::F, 0, 0}, kReceive{Kind::RECV_B, 0, 0}, kBackward{Kind::B, 0, 0};

/// A recorder of rank 7 with such a clock.
struct Recording {
  explicit Recording(std::vector<Action> actions, std::size_t turns = 0)
      : row(std::move(actions)), recorder(row, 7, turns, clock) {}
  /// Records an action whose kernels take this long, while the host continues.
  void run(std::size_t action, double seconds = 0) {
    recorder.begin(action);
    if (seconds > 0) clock.kernels(seconds);
    recorder.end(action);
  }
  void wait(double seconds) {
    const double start = recorder.mark();
    clock.host_passes(seconds);
    recorder.waited(WaitFor::receive, kReceive, start);
  }
  /// Records a forward of 5 s, the wait for a message, and a backward of 4 s.
  const StepRecord& step(int number, double wait_seconds) {
    recorder.begin_step(number);
    run(0, 5);
    run(1);
    wait(wait_seconds);
    run(2, 4);
    recorder.end_step();
    return recorder.last();
  }

  LaggingClock clock;
  const std::vector<Action> row;
  TraceRecorder recorder;
};

TEST(TraceRecorder, IdleIsWhereTheDeviceHasNothingToDo) {
  Recording of({kForward, kReceive, kBackward});
  const StepRecord& record = of.step(1, 7);
  EXPECT_EQ(record.start, 100);
  EXPECT_EQ(record.end, 111);
  EXPECT_EQ(record.actions[0].busy, 5);
  EXPECT_EQ(record.actions[1].busy, 0);
  EXPECT_EQ(record.actions[2].start, 107);
  EXPECT_EQ(record.actions[2].busy, 4);
  ASSERT_EQ(record.waits.size(), 1U);
  EXPECT_EQ(record.waits[0].start, 105);
  EXPECT_EQ(record.waits[0].end, 107);
  EXPECT_EQ(busy_seconds(of.row, record), 9);
  EXPECT_EQ(of.clock.ranges(), (std::vector<std::string>{"rank 7: 0F0", "-", "rank 7: 0RECV_B0",
                                                         "-", "rank 7: 0B0", "-"}));
}

TEST(TraceRecorder, AWaitBesideKernelsIsNone) {
  Recording of({kForward, kReceive, kBackward});
  for (int number = 1; number <= 2; ++number) {
    const StepRecord& record = of.step(number, 3);
    EXPECT_TRUE(record.waits.empty());
    EXPECT_EQ(busy_seconds(of.row, record), record.end - record.start);
  }
}

TEST(TraceRecorder, AnOverlappedPairSharesItsTimeByTurns) {
  Action forward = kForward;
  forward.overlapped = true;
  Recording of({forward, {Kind::B, 0, 1}, {Kind::F, 0, 2}}, 4);
  auto& [clock, row, recorder] = of;
  recorder.begin_step(1);
  recorder.begin(0);
  clock.kernels(0.5);  // of the first turn
  for (const std::size_t action : {1U, 0U, 1U, 0U}) {
    recorder.turn(action);
    clock.kernels(action == 0 ? 2 : 3);
  }
  recorder.end(0);
  of.run(2, 8);
  recorder.end_step();
  const StepRecord& record = recorder.last();
  EXPECT_EQ(record.actions[0].busy, 4);
  EXPECT_EQ(record.actions[1].busy, 6.5);
  EXPECT_EQ(record.actions[1].start, record.actions[0].start);
  EXPECT_EQ(record.actions[1].end, record.actions[0].end);
  EXPECT_EQ(record.actions[0].end - record.actions[0].start, 10.5);
  EXPECT_EQ(record.actions[2].busy, 8);
  EXPECT_EQ(clock.ranges(),
            (std::vector<std::string>{"rank 7: 0F0 and 0B1", "-", "rank 7: 0F2", "-"}));
}

TEST(TraceRecorder, NothingIsRecordedOutsideOfAStep) {
  Recording of({kForward, kReceive});
  TraceRecorder& recorder = of.recorder;
  recorder.begin_step(1);
  of.run(0);
  of.run(1);
  recorder.end_step();
  for (int i = 0; i < 10; ++i) {
    of.wait(1);
    recorder.completed(kReceive);
  }
  EXPECT_TRUE(recorder.last().waits.empty());
  EXPECT_TRUE(recorder.last().completions.empty());
}

/// Frozen units may not run, if their outputs are known: that does not count as a step of 0 s.
TEST(UnitClock, AUnitThatDoesNotRunKeepsItsTime) {
  LaggingClock clock;
  UnitClock units(2, 16, clock);
  units.measure_every_step();
  for (int step = 0; step < 8; ++step) {
    units.begin_step();
    for (int unit = step < 4 ? 0 : 1; unit < 2; ++unit) {
      units.start();
      clock.kernels(1.0 + unit);
      units.unit_done(unit, Pass::forward);
    }
    clock.settle();
    EXPECT_DOUBLE_EQ(units.end_step(), step < 4 ? 3.0 : 2.0) << "what has run";
  }
  EXPECT_DOUBLE_EQ(units.seconds()[0].forward, 1);
  EXPECT_DOUBLE_EQ(units.seconds()[1].forward, 2);
  EXPECT_EQ(units.seconds()[1].weight, 0);
}

}  // namespace
}  // namespace concertina
