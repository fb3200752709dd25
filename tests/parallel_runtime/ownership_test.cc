// Parts of buckets have the properties in ownership.h, for any shapes and any number of owners.
#include "parallel/plan/ownership.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <map>

#include "parallel/plan/layout.h"

namespace concertina {
namespace {

/// Returns units with tensors of these sizes each.
ModelSpec model_of(int units, const std::vector<int>& counts) {
  ModelSpec model;
  for (int u = 0; u < units; ++u) {
    UnitSpec& unit = model.units.emplace_back();
    unit.name = std::to_string(u);
    for (std::size_t i = 0; i < counts.size(); ++i)
      unit.parameters.push_back({"p" + std::to_string(i), {counts[i]}, false, {}, ""});
  }
  return model;
}
Bucket bucket_of(const std::vector<int>& counts) {
  return make_buckets(model_of(1, counts))[0];
}

/// Expects consecutive parts from the first element and block to the last.
void check_cover(const Bucket& bucket, const std::vector<Part>& parts) {
  std::size_t element = 0, block = 0;
  for (const Part& part : parts) {
    RC_ASSERT(part.begin == element);
    RC_ASSERT(part.first_block == block);
    RC_ASSERT(part.end >= part.begin);
    element = part.end;
    block = part.last_block;
  }
  RC_ASSERT(element == bucket.elements);
  RC_ASSERT(block == block_count(bucket));
}

rc::Gen<std::vector<int>> shapes() {
  return rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(
      rc::gen::oneOf(rc::gen::inRange(1, 40), rc::gen::inRange(1, 20000),
                     rc::gen::element(4095, 4096, 4097, 8192))));
}

RC_GTEST_PROP(Ownership, PartsAreDisjointCoverAndAreCutBetweenBlocks, ()) {
  const Bucket bucket = bucket_of(*shapes());
  const int owners = *rc::gen::inRange(1, 12);
  const std::size_t share = bucket.elements / static_cast<std::size_t>(owners);
  const std::vector<Part> parts = split_bucket(bucket, owners);
  check_cover(bucket, parts);
  for (const Part& part : parts) {
    RC_ASSERT((part.count() == 0) == (part.first_block == part.last_block));
    if (part.count() > 0) RC_ASSERT(block_at(bucket, part.first_block).offset == part.begin);
    RC_ASSERT(part.count() <= share + 2 * kBlock);
  }
}

RC_GTEST_PROP(Ownership, RunsOfAllPartsAreTheTensors, ()) {
  const Bucket bucket = bucket_of(*shapes());
  std::vector<std::size_t> next;
  for (const BucketTensor& tensor : bucket.tensors) next.push_back(tensor.offset);
  for (const Part& part : split_bucket(bucket, *rc::gen::inRange(1, 12))) {
    std::size_t blocks = 0;
    for (const TensorRun& run : tensor_runs(bucket, part)) {
      const auto t = static_cast<std::size_t>(run.tensor);
      RC_ASSERT(run.begin == next[t]);
      RC_ASSERT(run.begin < run.end);
      RC_ASSERT((run.begin - bucket.tensors[t].offset) % kBlock == 0U);
      next[t] = run.end;
      blocks += (run.end - run.begin + kBlock - 1) / kBlock;
    }
    RC_ASSERT(blocks == part.last_block - part.first_block);
  }
  for (std::size_t t = 0; t < next.size(); ++t)
    RC_ASSERT(next[t] == bucket.tensors[t].offset + bucket.tensors[t].count);
}

TEST(Ownership, ASmallBucketHasOneOwnerAndEmptyParts) {
  const std::vector<Part> parts = split_bucket(bucket_of({10, 10}), 5);
  EXPECT_EQ(parts.size(), 5U);
  EXPECT_LE(std::count_if(parts.begin(), parts.end(), [](const Part& p) { return p.count() > 0; }),
            2);
}

/// A model of several units with tensors of these sizes each, held by `replicas` pipelines with a
/// stage per unit.
RC_GTEST_PROP(Ownership, WholeTensorsHaveOneOwnerAndLoadsAreEven, ()) {
  const std::vector<int> counts = *shapes();
  const int units = *rc::gen::inRange(1, 9), stages = *rc::gen::inRange(1, units + 1),
            replicas = *rc::gen::inRange(1, 9);
  Layout layout;
  for (int r = 0; r < replicas; ++r) {
    Pipeline pipeline{{}, r, r + 1};
    for (int s = 0; s < stages; ++s)
      pipeline.stages.push_back({r * stages + s, units * s / stages, units * (s + 1) / stages});
    layout.pipelines.push_back(pipeline);
  }
  const std::vector<Bucket> buckets = make_buckets(model_of(units, counts));
  std::map<int, std::size_t> loads;
  std::size_t largest = 0;
  for (const int count : counts) largest = std::max(largest, static_cast<std::size_t>(count));
  const std::vector<BucketOwners> owners = assign_owners(buckets, layout, true);
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    check_cover(buckets[b], owners[b].parts);
    for (std::size_t i = 0; i < owners[b].ranks.size(); ++i) {
      const Part& part = owners[b].parts[i];
      for (const TensorRun& run : tensor_runs(buckets[b], part))
        RC_ASSERT(run.end - run.begin == buckets[b].tensors[run.tensor].count);
      loads[owners[b].ranks[i]] += part.count();
    }
  }
  // No rank has over two large tensors more than another of the same stage.
  for (int s = 0; s < stages; ++s) {
    std::size_t least = std::numeric_limits<std::size_t>::max(), most = 0;
    for (int r = 0; r < replicas; ++r) {
      least = std::min(least, loads[r * stages + s]);
      most = std::max(most, loads[r * stages + s]);
    }
    RC_ASSERT(most - least <= 2 * (largest + 16 * counts.size()));
  }
}

TEST(Ownership, WholeTensorsAreSharedByWhatTheirUpdatesCost) {
  ModelSpec model;
  model.units.resize(1);
  model.units[0].name = "0";
  for (const char* name : {"dear", "a", "b", "c"})
    model.units[0].parameters.push_back({name, {160}, false, {}, ""});
  Layout layout;
  for (int r = 0; r < 2; ++r) layout.pipelines.push_back({{{r, 0, 1}}, r, r + 1});
  const std::vector<Bucket> buckets = make_buckets(model);
  const auto counts = [&](const ExtraCost& extra) {
    const std::vector<BucketOwners> owners = assign_owners(buckets, layout, true, extra);
    std::vector<std::size_t> all;
    for (const Part& part : owners[0].parts) all.push_back(part.count());
    return all;
  };
  EXPECT_EQ(counts({}), (std::vector<std::size_t>{320, 320}));
  const auto dear = [](const BucketTensor& tensor) { return tensor.parameter == 0 ? 480.0 : 0; };
  EXPECT_EQ(counts(dear), (std::vector<std::size_t>{160, 480}));
  const auto parts = assign_owners(buckets, layout, true, dear)[0].parts;
  EXPECT_EQ(parts[0].cost, 640);
  EXPECT_EQ(parts[1].cost, 480);
}

TEST(Ownership, HoldersAreTheRanksOfAllUses) {
  ModelSpec model;
  model.units.resize(4);
  for (int u = 0; u < 4; ++u) {
    UnitSpec& unit = model.units[u];
    unit.name = std::to_string(u);
    unit.parameters.push_back({"own", {100}, false, {}, ""});
    if (u % 3 == 0) unit.parameters.push_back({"tied", {50}, false, {}, "tied"});
  }
  const Layout layout{{Pipeline{{{0, 0, 2}, {1, 2, 4}}, 0, 4}, Pipeline{{{2, 0, 4}}, 4, 6}}};
  const std::vector<Bucket> buckets = make_buckets(model);
  const std::vector<BucketOwners> owners = assign_owners(buckets, layout);
  const std::vector<std::vector<int>> expected{{0, 2}, {0, 1, 2}, {0, 2}, {1, 2}, {1, 2}};
  ASSERT_EQ(owners.size(), expected.size());
  for (std::size_t b = 0; b < owners.size(); ++b) {
    EXPECT_EQ(owners[b].ranks, expected[b]) << buckets[b].name;
    EXPECT_EQ(owners[b].parts.size(), expected[b].size());
  }
  EXPECT_EQ(owners[0].index_of(2), 1);
  EXPECT_EQ(owners[0].index_of(1), -1);
  EXPECT_EQ(owners[0].index_of(3), -1);
}

}  // namespace
}  // namespace concertina
