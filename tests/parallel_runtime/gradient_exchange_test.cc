// Gradients over ranks: for random models, layouts and schedules, each owner gets the serial
// canonical sum, bit for bit.
#include "parallel/runtime/gradient_exchange.h"
#include "core/arena.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "parallel/generate/passes.h"
#include "tests/parallel_runtime/canonical.h"
#include "tests/parallel_runtime/layouts.h"
#include "tests/parallel_runtime/test_stage.h"
#include "tests/threads/thread_communicator.h"

namespace concertina {
namespace {

constexpr int kUnits = 7;

struct Problem {
  Job job;
  std::vector<Bucket> buckets;
  std::vector<std::vector<float>> expected;  // by bucket
};

/// Units with zero to three tensors, small or of several blocks; one tensor is shared by the ends
/// and possibly one unit between, another by neighbors.
Problem random_problem(std::mt19937& random) {
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  Problem problem;
  ModelSpec& model = problem.job.model;
  model.units.resize(kUnits);
  const std::int64_t tied = pick(1, 9000);
  const int middle = pick(0, kUnits - 1);
  for (int u = 0; u < kUnits; ++u) {
    UnitSpec& unit = model.units[u];
    unit.name = std::to_string(u);
    for (int p = pick(0, 3); p > 0; --p)
      unit.parameters.push_back({fmt::format("p{}", p),
                                 {pick(0, 2) == 0 ? pick(4000, 9000) : pick(1, 60)},
                                 false,
                                 {},
                                 ""});
    if (u == 0 || u == kUnits - 1 || u == middle)
      unit.parameters.push_back({"tied", {tied}, false, {}, "tied"});
    if (u == 2 || u == 3) unit.parameters.push_back({"pair", {33}, false, {}, "pair"});
  }
  problem.buckets = make_buckets(model);
  problem.job.leaves = pick(4, 7);
  problem.job.microbatches = problem.job.leaves * pick(1, 2);
  for (std::size_t b = 0; b < problem.buckets.size(); ++b) {
    const Bucket& bucket = problem.buckets[b];
    std::vector<float>& values = problem.expected.emplace_back(bucket.elements);
    for (const BucketTensor& tensor : bucket.tensors)
      for (std::size_t e = tensor.offset; e < tensor.offset + tensor.count; ++e)
        values[e] = canonical_sum(bucket, static_cast<int>(b), e, problem.job.microbatches,
                                  problem.job.leaves);
  }
  return problem;
}

void write_gradient(GradientExchange& exchange, const Problem& problem, int b, int unit,
                    int microbatch) {
  const GradientTarget target = exchange.begin(b, unit, microbatch);
  for (const BucketTensor& tensor : problem.buckets[b].tensors)
    give(target, tensor.offset, tensor.offset + tensor.count,
         [&](std::size_t e) { return gradient_value(b, unit, microbatch, e); });
  exchange.end(b, unit, microbatch);
}

/// Produces the gradients of one rank's row, with a stage's units in backward order.
void run_row(GradientExchange& exchange, const Problem& problem, const Layout& layout,
             const std::vector<Action>& row) {
  for (const Action& action : row) {
    if (!makes_weight_gradient(action.kind)) continue;
    const StagePlacement& stage = layout.stage(action.stage);
    for (int unit = stage.last_unit - 1; unit >= stage.first_unit; --unit)
      for (std::size_t b = 0; b < problem.buckets.size(); ++b)
        if (std::ranges::count(problem.buckets[b].uses, unit) > 0)
          write_gradient(exchange, problem, static_cast<int>(b), unit, action.microbatch);
  }
  exchange.finish();
}

void expect_parts(const GradientExchange& exchange, const Problem& problem,
                  const std::vector<BucketOwners>& owners, int rank) {
  for (std::size_t b = 0; b < owners.size(); ++b) {
    const int me = owners[b].index_of(rank);
    if (me < 0) continue;
    const Part& part = owners[b].parts[me];
    const View got = exchange.reduced(static_cast<int>(b));
    ASSERT_EQ(got.count, part.count()) << problem.buckets[b].name;
    for (const TensorRun& run : tensor_runs(problem.buckets[b], part))
      for (std::size_t e = run.begin; e < run.end; ++e)
        ASSERT_EQ(got.f32()[e - part.begin], problem.expected[b][e])
            << "bucket " << problem.buckets[b].name << ", element " << e << ", rank " << rank;
  }
}

void expect_canonical(const Problem& problem, const NamedLayout& one, std::string_view schedule,
                      const ExchangeChoice& exchange_choice, Delivery delivery) {
  Limits limits;
  limits.leaf_microbatches = problem.job.microbatches / problem.job.leaves;
  const Plan plan = make_plan(one.layout, schedule, limits);
  Assignment assignment = make_assignment(problem.job, one.layout, plan);
  assignment.exchange = exchange_choice;
  const std::vector<BucketOwners>& owners = assignment.owners;
  run_threads(
      one.world,
      [&](Communicator& world) {
        const int rank = world.rank();
        const auto backend = make_cpu_backend(1);
        GradientExchange exchange(problem.job, assignment, rank);
        Arena arena(exchange.sum_bytes() + exchange.staging_bytes());
        const std::size_t floats = arena.capacity() / sizeof(float);
        std::fill_n(arena.take(floats, DType::f32, "all").f32(), floats,
                    std::numeric_limits<float>::quiet_NaN());
        ASSERT_TRUE(arena.renew(arena.capacity()));
        exchange.attach(arena);
        EXPECT_EQ(arena.used(), arena.capacity());
        const Groups groups(world, assignment);
        exchange.connect(groups, *backend);
        for (int step = 0; step < 2; ++step) {  // the second uses what the first left
          run_row(exchange, problem, one.layout, plan.rows[rank]);
          expect_parts(exchange, problem, owners, rank);
          world.barrier();
        }
      },
      delivery);
}

/// `ranks` ranks on one host, or each on one of three hosts.
std::vector<int> random_hosts(int ranks, std::mt19937& random) {
  std::vector<int> hosts(static_cast<std::size_t>(ranks));
  const auto count = 1 + random() % 3;
  for (int& host : hosts) host = static_cast<int>(random() % count);
  return hosts;
}

TEST(GradientExchange, EndsWithTheCanonicalSumAtAnyLayoutByAnyScheme) {
  std::mt19937 random(3);
  for (int i = 0; i < 4 * static_cast<int>(exchange_schemes().size()); ++i) {
    const Entry<ExchangeScheme>& scheme =
        exchange_schemes()[static_cast<std::size_t>(i) % exchange_schemes().size()];
    const Problem problem = random_problem(random);
    for (const Entry<Schedule>& schedule : schedules())
      for (const NamedLayout& one :
           layouts_of(schedule.value, kUnits, problem.job.microbatches, problem.job.leaves)) {
        SCOPED_TRACE(
            fmt::format("problem {}, {}, {}, {}", i, one.name, schedule.name, scheme.name));
        expect_canonical(problem, one, schedule.name,
                         {std::string(scheme.name), random_hosts(one.world, random)},
                         random() % 2 == 0 ? Delivery::rendezvous : Delivery::eager);
        if (HasFatalFailure()) return;
      }
  }
}

}  // namespace
}  // namespace concertina
