// Checkpoints written with one sharding can be read with any other; commits appear atomically.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "io/checkpoint/checkpoint_view.h"
#include "io/file.h"
#include "tests/io/checkpoint_fixture.h"

namespace concertina {
namespace {

TEST_F(CheckpointTest, AnyShardingReadsBackAtAnyOther) {
  for (int round = 0; round < 12; ++round) {
    const TestModel model = random_model(draw(random_, 1, 9), random_);
    const std::string commit = save(checkpoints(), round, cut(model, draw(random_, 1, 7), random_));
    ASSERT_EQ(difference(commit, model), "");
    ASSERT_EQ(verify(commit), std::vector<std::string>{});
    CheckpointReader reader(commit);
    for (int i = 0; i < 60; ++i) {
      const TestTensor& tensor = model[draw(random_, 0, std::ssize(model) - 1)];
      const auto& [part, whole] =
          *std::next(tensor.parts.begin(), draw(random_, 0, std::ssize(tensor.parts) - 1));
      const std::int64_t begin = draw(random_, 0, std::ssize(whole));
      std::vector<float> got(draw(random_, 0, std::ssize(whole) - begin));
      reader.read(tensor.name, part, begin, got);
      ASSERT_TRUE(same_bits(got, std::span(whole).subspan(begin, got.size())))
          << tensor.name << "/" << part << " [" << begin << ", +" << got.size() << ")";
    }
  }
}

TEST_F(CheckpointTest, PartsAboveOneReadChunk) {
  const TestModel big = {random_tensor("a", {1100, 1000}, {"weight"}, random_)};
  const std::string commit =
      save(checkpoints(), 1, {{piece(big[0], 0, 700001)}, {piece(big[0], 700001, 399999)}});
  ASSERT_EQ(difference(commit, big), "");
  CheckpointReader reader(commit);
  const std::span<const float> whole = big[0].parts.at("weight");
  for (const std::size_t begin : {0U, 262143U, 262144U, 699999U, 900000U}) {
    std::vector<float> got(150000);
    reader.read("a", "weight", begin, got);
    EXPECT_TRUE(same_bits(got, whole.subspan(begin, got.size())));
  }
}

TEST_F(CheckpointTest, RecordsSurviveTheTripBetweenRanks) {
  const std::string partial = begin_checkpoint(checkpoints(), 4);
  for (const ShardRecord& record : write_shards(partial, cut(model_, 3, random_))) {
    const nlohmann::json json = to_json(record);
    EXPECT_EQ(to_json(parse_shard_record(json, "test")), json);
    const auto again = nlohmann::json::parse(json.dump());
    EXPECT_EQ(to_json(parse_shard_record(again, "test")), json);
  }
}

TEST_F(CheckpointTest, MetadataStepAndEmptyShards) {
  const std::string partial = begin_checkpoint(checkpoints(), 123456789);
  auto records = write_shards(partial, cut(model_, 1, random_));
  records.push_back(write_shard(partial, 1, {}));
  const nlohmann::json metadata = {{"digest", "abc"}, {"nested", {{"x", {1, 2.5, nullptr}}}}};
  std::swap(records[0], records[1]);  // ranks report in any order
  const std::string commit = write_manifest(partial, records, metadata);
  EXPECT_EQ(commit, checkpoints() + "/step-123456789");
  EXPECT_EQ(open_manifest(commit).step, 123456789);
  EXPECT_EQ(open_manifest(commit).metadata, metadata);
  EXPECT_EQ(verify(commit), std::vector<std::string>{});
}

TEST_F(CheckpointTest, WrongCoverageIsNoCommit) {
  const TestTensor tensor = random_tensor("000.unit/tensor", {17, 6}, {"weight", "m"}, random_);
  const auto commit = [&](std::size_t begin, std::size_t end, std::size_t first, std::size_t last) {
    save(checkpoints(), 9,
         {{piece(tensor, begin, end - begin)}, {piece(tensor, first, last - first)}});
  };
  EXPECT_ERROR(commit(0, 50, 51, 102), "elements [50, 51) of '000");
  EXPECT_ERROR(commit(0, 50, 50, 101), "elements [101, 102) of '000");
  EXPECT_ERROR(commit(0, 50, 49, 102), "duplicate elements");
  EXPECT_ERROR(commit(0, 102, 0, 102), "duplicate elements");
  EXPECT_ERROR(commit(1, 50, 50, 102), "elements [0, 1) of '000");
  EXPECT_TRUE(list_commits(checkpoints()).empty());
}

TEST_F(CheckpointTest, AShardThatOtherNodesDoNotSeeIsNoCommit) {
  const std::string partial = begin_checkpoint(checkpoints(), 1);
  const auto records = write_shards(partial, cut(model_, 2, random_));
  std::filesystem::remove(partial + "/shard-00001.h5");
  EXPECT_ERROR(write_manifest(partial, records, {}), "shared by all nodes");
}

TEST_F(CheckpointTest, ListsNewestAndPrunes) {
  EXPECT_FALSE(newest_commit(checkpoints()).has_value());
  EXPECT_FALSE(open_newest(checkpoints()).has_value());
  for (const std::int64_t step : {5, 100000000, 20, 3}) save_model(step);
  for (const char* other : {"step-1", "step-00000099.partial", "step-0000000x", "best", "step-"})
    make_directories(checkpoints() + "/" + other);
  EXPECT_EQ(steps(), (std::vector<std::int64_t>{3, 5, 20, 100000000}));
  prune(checkpoints(), 2);
  EXPECT_EQ(steps(), (std::vector<std::int64_t>{20, 100000000}));
  EXPECT_EQ(open_newest(checkpoints())->manifest.step, 100000000);
  begin_checkpoint(checkpoints(), 6);
  EXPECT_FALSE(std::filesystem::exists(checkpoints() + "/step-00000099.partial"));
  EXPECT_TRUE(std::filesystem::exists(checkpoints() + "/best"));
}

TEST_F(CheckpointTest, PruneKeepsOneMore) {
  for (const std::int64_t step : {1, 2, 3, 4}) save_model(step);
  prune(checkpoints(), 2, 1);
  EXPECT_EQ(steps(), (std::vector<std::int64_t>{1, 3, 4}));
  prune(checkpoints(), 1, 4);
  EXPECT_EQ(steps(), (std::vector<std::int64_t>{4}));
}

/// Runs `eval` during a run that keeps one commit.
TEST_F(CheckpointTest, WhatIsRemovedMeanwhileIsNoDamage) {
  constexpr std::int64_t kSteps = 60;
  std::atomic<bool> done = false;
  const TestModel small{random_tensor("t", {3}, {"weight"}, random_)};
  std::thread saver([&] {
    Random random{7};
    for (std::int64_t step = 1; step <= kSteps; ++step) {
      save(checkpoints(), step, cut(small, 1, random));
      prune(checkpoints(), 1);
    }
    done = true;
  });
  while (!done) EXPECT_NO_THROW(open_newest(checkpoints()));
  saver.join();
  EXPECT_EQ(open_newest(checkpoints())->manifest.step, kSteps);
}

TEST_F(CheckpointTest, ACommitOfTheSameStepIsReplaced) {
  save_model(7, 5);
  const std::string commit = save_model(7, 2);
  EXPECT_EQ(open_manifest(commit).shards.size(), 2U);
  EXPECT_EQ(difference(commit, model_), "");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(checkpoints()), {}), 1);
}

TEST_F(CheckpointTest, ReaderNamesWhatTheCheckpointLacks) {
  const TestTensor tensor = random_tensor("000.head/scale", {3, 4}, {"weight", "m"}, random_);
  CheckpointReader reader(save(checkpoints(), 1, {{piece(tensor, 0, 12)}}));
  std::vector<float> out(10);
  EXPECT_ERROR(reader.read("003.other", "weight", 0, out), "no tensor '003.other'");
  EXPECT_ERROR(reader.read(tensor.name, "momentum", 0, out), "no 'momentum'");
  EXPECT_ERROR(reader.read(tensor.name, "weight", 3, out), "the checkpoint has 12");
  EXPECT_ERROR(reader.read(tensor.name, "m", ~std::uint64_t{0}, out), "requested elements");
}

/// Adds the flat indices of the box, in row-major order.
void add_elements(const std::vector<std::int64_t>& shape, const Box& box,
                  std::vector<std::uint64_t>& elements) {
  std::uint64_t count = 1;
  for (const std::uint64_t n : box.count) count *= n;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t rest = i, index = 0, stride = 1;
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      index += (box.start[axis] + rest % box.count[axis]) * stride;
      rest /= box.count[axis];
      stride *= shape[axis];
    }
    elements.push_back(index);
  }
}

// At most 2N - 1 boxes in order, which together cover exactly the range.
TEST(BoxesOfRange, TileTheRange) {
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{7}, {4, 5}, {1, 6}, {6, 1}, {3, 2, 4}, {2, 3, 2, 3}}) {
    const std::uint64_t total = element_count(shape, "test");
    for (std::uint64_t begin = 0; begin <= total; ++begin)
      for (std::uint64_t end = begin; end <= total; ++end) {
        std::vector<std::uint64_t> elements;
        const std::vector<Box> boxes = boxes_of_range(shape, begin, end);
        ASSERT_LE(boxes.size(), 2 * shape.size() - 1);
        for (const Box& box : boxes) add_elements(shape, box, elements);
        ASSERT_EQ(elements.size(), end - begin);
        for (std::uint64_t i = begin; i < end; ++i) ASSERT_EQ(elements[i - begin], i);
      }
  }
}

}  // namespace
}  // namespace concertina
