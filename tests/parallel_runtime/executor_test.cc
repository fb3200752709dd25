// The executor against a stage that checks all it is given: buffers live as long as they must, hold
// what was put into them, and are as many as the plan predicts, for every schedule of the registry.
#include "parallel/runtime/executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>

#include "parallel/comm/thread_communicator.h"
#include "parallel/generate/overlap.h"
#include "parallel/generate/passes.h"
#include "tests/parallel_runtime/layouts.h"

namespace concertina {
namespace {

constexpr int kUnits = 7, kRows = 3, kMicrobatches = 8, kLeaves = 4;
constexpr std::size_t kBoundary = 10, kSaved = 20, kGrads = 7;  // floats
constexpr float kPoisoned = -1e30F;

/// What the buffer `kind` of a microbatch holds at the boundary before `unit`.
float mark(char kind, int unit, int microbatch) {
  return static_cast<float>(kind * 10000 + unit * 100 + microbatch);
}

/// Writes and checks marks; poisons what it is the last to read.
class MarkingStage final : public Stage {
 public:
  MarkingStage(StagePlacement at, const std::vector<Bucket>& buckets, int frozen)
      : at_(at),
        first_trained_(std::clamp(frozen, at.first_unit, at.last_unit)),
        gives_gradient_(at.first_unit > frozen),
        buckets_(buckets) {}

  StageMemory memory() const override {
    return {kSaved * sizeof(float), kGrads * sizeof(float), kBoundary * sizeof(float), 0};
  }
  int first_unit() const override { return at_.first_unit; }
  int last_unit() const override { return at_.last_unit; }
  int first_trained() const override { return first_trained_; }

  void forward_unit(int unit, const MicrobatchIo& io) override {
    enter('F', unit, io, at_.first_unit);
    expect_outside(io, at_.first_unit > 0);
    EXPECT_EQ(io.saved == nullptr, !trains());
    if (unit + 1 < at_.last_unit) return;
    if (trains()) fill(io.saved, kSaved, mark('s', at_.first_unit, io.microbatch));
    if (at_.last_unit < kUnits)
      fill(io.output.data, kBoundary, mark('x', at_.last_unit, io.microbatch));
    if (first_trained_ > at_.first_unit && !io.input.empty())
      fill(io.input.data, kBoundary, kPoisoned);
  }

  void backward_unit(int unit, const MicrobatchIo& io, GradientSink& sink) override {
    enter('B', unit, io, at_.last_unit - 1);
    expect_inside(io);
    if (unit == first_trained_) write_input_grad(io);
    contribute(unit, io, sink);
    if (unit == first_trained_) poison(io);
  }
  void backward_input_unit(int unit, const MicrobatchIo& io) override {
    enter('I', unit, io, at_.last_unit - 1);
    expect_inside(io);
    if (unit > first_trained_) return;
    write_input_grad(io);
    fill(io.grads, kGrads, mark('i', at_.first_unit, io.microbatch));
  }
  void backward_weight_unit(int unit, const MicrobatchIo& io, GradientSink& sink) override {
    enter('W', unit, io, at_.last_unit - 1);
    expect_inside(io);
    expect(io.grads, kGrads, mark('i', at_.first_unit, io.microbatch), "grads");
    contribute(unit, io, sink);
    if (unit > first_trained_) return;
    poison(io);
    fill(io.grads, kGrads, kPoisoned);
  }

  double loss(const MicrobatchIo& io) const override { return io.microbatch + 0.5; }
  View logits(const MicrobatchIo& io) const override { return {io.saved, kSaved, DType::f32}; }
  void set_workspace(void*, void*) override {}
  void refresh() override {}

  /// Passes by kind and microbatch since the last time.
  std::map<std::pair<char, int>, int> take_calls() {
    EXPECT_TRUE(next_.empty()) << "a pass did not come to its end";
    return std::exchange(calls_, {});
  }
  /// Times that a unit ran between two units of another pass of this stage.
  int interleaved() const { return interleaved_; }

 private:
  /// Units of a pass come one after the other.
  void enter(char kind, int unit, const MicrobatchIo& io, int first) {
    const std::pair pass(kind, io.microbatch);
    const auto [at, fresh] = next_.try_emplace(pass, first);
    EXPECT_EQ(at->second, unit);
    calls_[pass] += fresh;
    interleaved_ += next_.size() > 1;
    at->second += kind == 'F' ? 1 : -1;
    if (at->second == (kind == 'F' ? at_.last_unit : first_trained_ - 1)) next_.erase(at);
  }

  static void fill(void* memory, std::size_t count, float value) {
    ASSERT_NE(memory, nullptr);
    std::fill_n(static_cast<float*>(memory), count, value);
  }
  void expect(const void* memory, std::size_t count, float value, const char* what) const {
    ASSERT_NE(memory, nullptr) << what;
    for (std::size_t i = 0; i < count; ++i)
      ASSERT_EQ(static_cast<const float*>(memory)[i], value) << what << ", unit " << at_.first_unit;
  }

  bool trains() const { return first_trained_ < at_.last_unit; }
  /// Tokens, targets and input: there where they have to be, from F to the end.
  void expect_outside(const MicrobatchIo& io, bool input) const {
    EXPECT_EQ(io.tokens.empty(), at_.first_unit > 0);
    EXPECT_EQ(io.targets.empty(), at_.last_unit < kUnits);
    EXPECT_EQ(io.input.empty(), !input);
    EXPECT_EQ(io.output.empty(), at_.last_unit == kUnits);
    EXPECT_EQ(io.loss_scale, 0.25F);
    for (const View& rows : {io.tokens, io.targets}) {
      if (rows.empty()) continue;
      ASSERT_EQ(rows.count, kRows);
      for (int i = 0; i < kRows; ++i) ASSERT_EQ(rows.i32()[i], io.microbatch * kRows + i);
    }
    if (input) expect(io.input.data, kBoundary, mark('x', at_.first_unit, io.microbatch), "input");
  }

  void expect_inside(const MicrobatchIo& io) const {
    expect_outside(io, at_.first_unit > 0 && first_trained_ == at_.first_unit);
    EXPECT_EQ(io.output_grad.empty(), at_.last_unit == kUnits);
    expect(io.saved, kSaved, mark('s', at_.first_unit, io.microbatch), "saved");
    if (at_.last_unit < kUnits)
      expect(io.output_grad.data, kBoundary, mark('g', at_.last_unit, io.microbatch),
             "output_grad");
  }

  void write_input_grad(const MicrobatchIo& io) const {
    EXPECT_EQ(io.input_grad.empty(), !gives_gradient_);
    if (gives_gradient_)
      fill(io.input_grad.data, kBoundary, mark('g', at_.first_unit, io.microbatch));
  }

  /// One for each microbatch and use.
  void contribute(int unit, const MicrobatchIo& io, GradientSink& sink) const {
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      if (buckets_[b].frozen || std::ranges::count(buckets_[b].uses, unit) == 0) continue;
      const GradientTarget target = sink.begin(static_cast<int>(b), unit, io.microbatch);
      for (std::size_t e = 0; e < target.gradient.count; ++e)
        target.gradient.f32()[e] = (target.accumulate ? target.gradient.f32()[e] : 0.0F) + 1.0F;
      sink.end(static_cast<int>(b), unit, io.microbatch);
    }
  }

  static void poison(const MicrobatchIo& io) {
    fill(io.saved, kSaved, kPoisoned);
    if (!io.input.empty()) fill(io.input.data, kBoundary, kPoisoned);
    if (!io.output_grad.empty()) fill(io.output_grad.data, kBoundary, kPoisoned);
  }

  StagePlacement at_;
  int first_trained_;
  bool gives_gradient_;
  const std::vector<Bucket>& buckets_;
  std::map<std::pair<char, int>, int> calls_, next_;  // next_: unit of each open pass
  int interleaved_ = 0;
};

std::vector<Bucket> make_test_buckets(int frozen) {
  ModelSpec model;
  model.units.resize(kUnits);
  for (int u = 0; u < kUnits; ++u) {
    UnitSpec& unit = model.units[static_cast<std::size_t>(u)];
    unit.name = std::to_string(u);
    unit.parameters.push_back({"own", {5}, false, {}, ""});
    if (u == 0 || u == kUnits - 1) unit.parameters.push_back({"tied", {3}, false, {}, "tied"});
  }
  return make_buckets(model, frozen);
}

/// Every B as I now and W at the end of the row: the most that a plan can keep.
Plan split_backwards(Plan plan) {
  for (std::vector<Action>& row : plan.rows) {
    std::vector<Action> weights;
    std::erase_if(row, [](const Action& action) { return action.kind == Kind::W; });
    for (Action& action : row) {
      if (action.kind == Kind::F) continue;
      weights.push_back({Kind::W, action.stage, action.microbatch});
      action.kind = Kind::I;
    }
    row.insert(row.end(), weights.begin(), weights.end());
  }
  return plan;
}

struct Case {
  NamedLayout layout;
  Plan plan;
  std::string name;
  Delivery delivery = Delivery::rendezvous;
};

/// One rank of a case.
class Rank {
 public:
  Rank(const Case& one, Communicator& world)
      : one_(one),
        world_(world),
        owners_(assign_owners(buckets_, one.layout.layout)),
        stages_(static_cast<std::size_t>(one.layout.layout.stage_count())),
        backend_(make_cpu_backend(1)),
        exchange_(buckets_, owners_, one.layout.layout, one.plan, world.rank(), kMicrobatches,
                  kLeaves),
        executor_(one.layout.layout, one.plan, make_stages(), world.rank(), kMicrobatches),
        groups_(world, sets()) {
    arena_.reserve(executor_.saved_bytes() + executor_.boundary_bytes() + exchange_.sum_bytes() +
                   exchange_.staging_bytes());
    executor_.attach(arena_);
    EXPECT_EQ(arena_.used(), executor_.saved_bytes() + executor_.boundary_bytes());
    exchange_.attach(arena_);
    exchange_.connect(groups_, *backend_);
    executor_.connect(world, exchange_, nullptr);
    executor_.on_step([this] { ++updates_, expect_gradients(); });
    for (std::size_t i = 0; i < rows_.size(); ++i) rows_[i] = static_cast<std::int32_t>(i);
    input_ = {
        {rows_.data(), rows_.size(), DType::i32}, {rows_.data(), rows_.size(), DType::i32}, 0.25F};
  }

  void step() {
    updates_ = 0;
    executor_.run(input_);
    EXPECT_EQ(updates_, 1);
    expect_calls();
    expect_interleaving();
    expect_losses(kMicrobatches);
    expect_times();
    const auto rank = static_cast<std::size_t>(world_.rank());
    EXPECT_EQ(executor_.measured(), plan_memory(one_.plan, one_.layout.layout)[rank]);
  }

  void evaluate(int count) {
    std::map<int, int> seen;
    executor_.evaluate(input_, count, [&](int m, View logits) {
      ++seen[m];
      EXPECT_EQ(logits.f32()[0], mark('s', last_stage(m).first_unit, m));
    });
    expect_losses(count);
    for (int m = 0; m < kMicrobatches; ++m)
      EXPECT_EQ(seen[m], m < count && last_stage(m).rank == world_.rank() ? 1 : 0);
    for (const auto& stage : stages_) {
      if (stage == nullptr) continue;
      for (const auto& [call, times] : stage->take_calls())
        EXPECT_TRUE(call.first == 'F' && times == 1 && call.second < count);
    }
  }

 private:
  std::vector<Stage*> make_stages() {
    std::vector<Stage*> result;
    for (int s = 0; s < one_.layout.layout.stage_count(); ++s) {
      const StagePlacement& at = one_.layout.layout.stage(s);
      if (at.rank == world_.rank())
        stages_[static_cast<std::size_t>(s)] =
            std::make_unique<MarkingStage>(at, buckets_, one_.layout.layout.frozen_units);
      result.push_back(stages_[static_cast<std::size_t>(s)].get());
    }
    return result;
  }
  std::vector<std::vector<int>> sets() const {
    std::vector<std::vector<int>> result;
    for (const BucketOwners& owners : owners_) result.push_back(owners.ranks);
    return result;
  }
  const StagePlacement& last_stage(int microbatch) const {
    const auto& pipelines = one_.layout.layout.pipelines;
    const auto it = std::ranges::find_if(
        pipelines, [&](const Pipeline& p) { return microbatch < p.last_microbatch; });
    return it->stages.back();
  }

  /// Each action of the row reached its stage once, and nothing else did.
  void expect_calls() {
    std::map<std::tuple<int, char, int>, int> planned, called;
    for (const Action& action : executor_.row())
      if (is_compute(action.kind))
        planned[{action.stage, to_text(Action{action.kind, 0, 0})[1], action.microbatch}] = 1;
    for (std::size_t s = 0; s < stages_.size(); ++s)
      if (stages_[s] != nullptr)
        for (const auto& [call, times] : stages_[s]->take_calls())
          called[{static_cast<int>(s), call.first, call.second}] = times;
    EXPECT_EQ(called, planned);
  }
  /// Overlapped pairs of one stage with several units took turns; nothing else did.
  void expect_interleaving() {
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      if (stages_[s] == nullptr) continue;
      bool due = false;
      for (std::size_t i = 0; i + 1 < executor_.row().size(); ++i)
        due |= executor_.row()[i].overlapped && executor_.row()[i].stage == static_cast<int>(s) &&
               executor_.row()[i + 1].stage == static_cast<int>(s);
      const bool several = stages_[s]->last_unit() - stages_[s]->first_unit() > 1;
      EXPECT_EQ(stages_[s]->interleaved() > 0, due && several) << "stage " << s;
    }
  }
  void expect_losses(int count) const {
    for (int m = 0; m < kMicrobatches; ++m)
      EXPECT_EQ(executor_.losses()[static_cast<std::size_t>(m)],
                m < count && last_stage(m).rank == world_.rank() ? m + 0.5 : 0.0);
  }
  void expect_times() const {
    double last = 0;
    for (std::size_t i = 0; i < executor_.row().size(); ++i) {
      const ActionTime& time = executor_.times()[i];
      EXPECT_GE(time.start, last);
      EXPECT_GE(time.end, time.start);
      if (executor_.row()[i].overlapped) {
        const ActionTime& partner = executor_.times()[++i];
        EXPECT_EQ(std::pair(partner.start, partner.end), std::pair(time.start, time.end));
        EXPECT_GT(time.busy, 0);
        EXPECT_GT(partner.busy, 0);
        EXPECT_LE(time.busy + partner.busy, time.end - time.start + 1e-9);
      } else {
        EXPECT_EQ(time.busy, time.end - time.start);
      }
      last = time.end;
    }
  }
  void expect_gradients() const {
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      if (owners_[b].index_of(world_.rank()) < 0 || buckets_[b].frozen) continue;
      const View sum = exchange_.reduced(static_cast<int>(b));
      for (std::size_t e = 0; e < sum.count; ++e)
        EXPECT_EQ(sum.f32()[e], static_cast<float>(kMicrobatches * std::ssize(buckets_[b].uses)));
    }
  }

  const Case& one_;
  Communicator& world_;
  const std::vector<Bucket> buckets_ = make_test_buckets(one_.layout.layout.frozen_units);
  std::vector<BucketOwners> owners_;
  std::vector<std::unique_ptr<MarkingStage>> stages_;
  std::unique_ptr<Backend> backend_;
  GradientExchange exchange_;
  Executor executor_;
  Groups groups_;
  Arena arena_;
  std::vector<std::int32_t> rows_ = std::vector<std::int32_t>(kMicrobatches * kRows);
  StepInput input_;
  int updates_ = 0;
};

void expect_runs(const Case& one) {
  SCOPED_TRACE(one.name);
  Limits limits;
  limits.leaf_microbatches = kMicrobatches / kLeaves;
  const auto violation = check(one.plan, one.layout.layout, limits);
  ASSERT_FALSE(violation.has_value()) << violation->text;
  run_threads(
      one.layout.world,
      [&](Communicator& world) {
        Rank rank(one, world);
        rank.step();
        rank.evaluate(3);
        rank.step();
        rank.evaluate(kMicrobatches);
        world.barrier();
      },
      one.delivery);
}

TEST(Executor, RunsEveryScheduleAtEveryLayoutInThePredictedMemory) {
  for (const Entry<Schedule>& schedule : schedules())
    for (const NamedLayout& layout : layouts_of(schedule.value, kUnits, kMicrobatches, kLeaves)) {
      const Plan compute = expand(layout.layout, schedule.value, schedule.name);
      const auto complete = [&](const Plan& plan) {
        return add_reduction(add_transfers(plan, layout.layout), layout.layout);
      };
      const std::string name = layout.name + ", " + std::string(schedule.name);
      expect_runs({layout, complete(merge_input_weight(compute, layout.layout)), name});
      expect_runs({layout, complete(split_backwards(compute)), name + ", split backwards",
                   Delivery::eager});
      expect_runs(
          {layout,
           complete(pair_overlaps(merge_input_weight(compute, layout.layout), layout.layout)),
           name + ", overlapped"});
      if (HasFatalFailure()) return;
    }
}

TEST(Executor, RunsFrozenUnitsForwardAlone) {
  for (const Entry<Schedule>& schedule : schedules())
    for (NamedLayout& layout : layouts_of(schedule.value, kUnits, kMicrobatches, kLeaves)) {
      const Plan compute = expand(layout.layout, schedule.value, schedule.name);
      for (const int frozen : {1, 2, 4, 6}) {
        layout.layout.frozen_units = frozen;
        const auto complete = [&](const Plan& plan) {
          return add_reduction(add_transfers(plan, layout.layout), layout.layout);
        };
        const Plan plan = drop_frozen(compute, layout.layout);
        const std::string name =
            fmt::format("{}, {}, {} frozen", layout.name, schedule.name, frozen);
        expect_runs({layout, complete(merge_input_weight(plan, layout.layout)), name});
        expect_runs(
            {layout, complete(split_backwards(plan)), name + ", split backwards", Delivery::eager});
        expect_runs({layout, complete(pair_overlaps(plan, layout.layout)), name + ", overlapped"});
        if (HasFatalFailure()) return;
      }
    }
}

TEST(Executor, APoolRefusesToGiveMoreThanItHas) {
  Arena arena(3 * kAlignment);
  BufferPool pool;
  pool.attach(arena, 3, 8, "test");
  void* first = pool.take();
  pool.take();
  EXPECT_EQ(pool.peak(), 2);
  pool.give(first);
  EXPECT_EQ(pool.take(), first);
  EXPECT_EQ(pool.peak(), 2);
  pool.take();
  EXPECT_TRUE(pool.empty());
  EXPECT_ANY_THROW(pool.take());
}

}  // namespace
}  // namespace concertina
