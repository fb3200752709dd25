// Costs of units and machines: files read back, bad ones refused, and what they mean for a plan.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include "core/error.h"
#include "experiments/config/config_overrides.h"
#include "experiments/config/config_toml.h"
#include "experiments/predict/machine_file.h"
#include "experiments/predict/measured_costs.h"
#include "experiments/predict/schedule_costs.h"
#include "parallel/generate/passes.h"
#include "parallel/predict/cost_record.h"
#include "parallel/predict/move_costs.h"
#include "parallel/predict/plan_costs.h"
#include "parallel/repartition/course.h"
#include "parallel/simulate/simulate.h"
#include "tests/parallel_plan/freeze_ladder.h"
#include "tests/planned.h"

namespace concertina {
namespace {

MachineModel machine() {
  MachineModel machine;
  machine.flops_per_s = 2e9;
  machine.load_s = 1e-3;
  machine.moves.copy_s_per_byte = 1e-10;
  machine.moves.block_s_per_byte = 2e-10;
  machine.moves.rebuild_s = 0.02;
  machine.cache_read_s_per_byte = 1e-10;
  machine.factors = {1, 1.9, 0};
  machine.ranks_per_host = 2;
  machine.local = {.latency = 1e-6, .receive_cpu = 1e-10};
  machine.remote = {.latency = 5e-5, .bandwidth = 1.25e7};
  machine.pairs[{0, 3}] = {.latency = 1e-3, .bandwidth = 1e6};
  return machine;
}

RunConfig small(int pp, int dp) {
  RunConfig config;
  config.model = {
      .family = "gpt", .layers = 2, .width = 32, .heads = 2, .context = 16, .vocab = 64};
  config.batch = {.global = 16, .microbatches = 8};
  config.parallel.pp = pp;
  config.parallel.dp = dp;
  return config;
}

MeasuredCosts measured() {
  MeasuredCosts costs;
  costs.config = write_config(small(1, 1));
  costs.machine = machine();
  const PlannedJob run = planned(small(1, 1), 1);
  for (const UnitSpec& unit : run.job.model.units) {
    costs.names.push_back(unit.name);
    const double seconds = 1e-3 * static_cast<double>(costs.names.size());
    costs.units.push_back({seconds, 2 * seconds, 3 * seconds, seconds / 2});
  }
  return costs;
}

std::vector<UnitSeconds> seconds_of(const CostSource& source, const RunConfig& config) {
  const PlannedJob run = planned(config, 1);
  return unit_seconds(source, run.job, run, config);
}

class CostFiles : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(directory_);
    std::ofstream(directory_ + "/" + name) << text;
    return directory_ + "/" + name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  const std::string directory_ = testing::TempDir() + "costs_test";
};

template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::bad_input);
    return error.message();
  }
  return "none";
}

TEST_F(CostFiles, ReadBack) {
  EXPECT_EQ(read_machine_file(write("machine.toml", machine_toml(machine()))), machine());
  EXPECT_EQ(measured_from_json(to_json(measured()), "here"), measured());
  write("costs.json", to_json(measured()).dump());
  EXPECT_EQ(*read_costs(directory_).measured, measured());
  EXPECT_EQ(read_costs(directory_ + "/costs.json").machine, machine());
}

TEST_F(CostFiles, BadOnesAreRefused) {
  const auto error = [&](const std::string& name, const std::string& text) {
    return error_of([&] { read_costs(write(name, text)); });
  };
  for (const auto& [text, wrong] :
       {std::pair{"flops_per_s = -1", "flops_per_s = -1 is out of range"},
        {"[local]\nlatency = 1", "unknown key local.latency"},
        {"[remote]\nbytes_per_s = 0", "remote.bytes_per_s = 0"},
        {"local = 3", "local has the wrong type: integer 3"},
        {"post_s = '1'", "post_s has the wrong type: string \"1\""},
        {"load_s = nan", "load_s = nan is out of range"},
        {"[[pair]]\nto = 1\nlatency_s = 1", "a pair has no 'from'"},
        {"[[pair]]\nfrom = 1\nlatency_s = 1", "a pair has no 'to'"},
        {"[[pair]]\nfrom = 1\nto = 1", "a pair is from rank 1 to itself"},
        {"[[pair]]\nfrom = 1\nto = 65536", "pair.to = 65536 is out of range"},
        {"[[pair]]\nfrom = 1\nto = 2\n[[pair]]\nfrom = 1\nto = 2",
         "a pair from 1 to 2 is there twice"}})
    EXPECT_EQ(error("a.toml", text), wrong);
  for (const char* bad : {"inf", "nan", "1e308", "1e-308", "-1e-3"}) {
    for (const char* key :
         {"local.latency_s", "local.bytes_per_s", "local.send_cpu_s_per_byte", "local.eager_bytes",
          "flops_per_s", "load_s", "post_s", "combine_s_per_byte"})
      EXPECT_NE(error("a.toml", fmt::format("{} = {}", key, bad)).find("is out of range"),
                std::string::npos)
          << key << bad;
    EXPECT_NE(error_of([&] { ScheduleCosts({"1", bad, "1"}); }), "none") << bad;
  }
  EXPECT_NE(error("a.toml", "flops"), "none");
  EXPECT_NE(error("a.json", "{}"), "none");
  EXPECT_EQ(error("a.json", "{"), "this is no JSON");
  EXPECT_NE(error_of([&] { read_costs(directory_); }), "none");
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"1", "2"}, {"1", "2", "nan"}, {write("m.toml", "flops_per_s = 1.0")}})
    EXPECT_NE(error_of([&] { ScheduleCosts{words}; }), "none") << words.front();
}

TEST_F(CostFiles, AFileHasARowPerStage) {
  const auto read = [&](const std::string& text) { return ScheduleCosts({write("c.csv", text)}); };
  const Layout two{{Pipeline{{{0, 0, 1}, {1, 1, 2}}, 0, 4}}};
  const Layout opposite{
      {Pipeline{{{0, 0, 1}, {1, 1, 2}}, 0, 2}, Pipeline{{{1, 0, 1}, {0, 1, 2}}, 2, 4}}};
  const Layout three{{Pipeline{{{0, 0, 1}, {1, 1, 2}, {0, 2, 3}}, 0, 4}}};
  for (const char* text : {"F,I,W\n1,2,3\n4,5,6\n", " F,I,W\r\n1, 2,3\r\n4,5,6",
                           "\xEF\xBB\xBF"
                           "F,I,W\n1,2,3\n4,5,6\n\n \n"}) {
    const ScheduleCosts costs = read(text);
    EXPECT_EQ(costs.rows(), 2);
    const Costs of_two = costs.of(two, make_plan(two, "1f1b"), 0.5);  // each row is a stage's own
    EXPECT_EQ(of_two.stages[0].input, 2);
    EXPECT_EQ(of_two.stages[1].weight, 6);
    EXPECT_EQ(costs.of(opposite, make_plan(opposite, "gpipe")).stages[2].forward, 1);
    EXPECT_EQ(error_of([&] { costs.of(three, make_plan(three, "gpipe")); }),
              "the file has costs of 2 stages, a pipeline here has 3 stages");
  }
  for (const auto& [text, wrong] : {std::pair{"", "the file has no costs"},
                                    {"F,I,W\n", "the file has no costs"},
                                    {"\n\n", "the file has no costs"},
                                    {"1,1,1\n", "the first line is '1,1,1', not F,I,W"},
                                    {"F,I,W\n1,1\n", "a row has not three costs"},
                                    {"F,I,W\n1,1,1,1\n", "a row has not three costs"},
                                    {"F,I,W\n\n1,1,1\n", "a row has not three costs"},
                                    {"F,I,W\n1,,1\n", "'' is no cost"},
                                    {"F,I,W\n1,nan,1\n", "'nan' is no cost"},
                                    {"F,I,W\n1,1,1e19\n", "'1e19' is no cost"},
                                    {"F,I,W\n1,1,1x\n", "'1x' is no cost"}})
    EXPECT_EQ(error_of([&] { read(text); }), wrong) << text;
  EXPECT_EQ(error_of([&] { ScheduleCosts({directory_ + "/none.csv"}); }),
            "there is no such file of costs");
}

TEST_F(CostFiles, ALatencyTakesThePlaceOfLinks) {
  const Layout layout{{Pipeline{{{0, 0, 1}, {1, 1, 2}}, 0, 4}}};
  const Plan plan = make_plan(layout, "1f1b");
  const ScheduleCosts costs({"1", "2", "3"}, {.latency = 0.25});
  const Costs of_plan = costs.of(layout, plan);
  EXPECT_TRUE(of_plan.latency_alone);
  EXPECT_EQ(of_plan.link(0, 1).latency, 0.25);
  EXPECT_EQ(costs.links(layout, of_plan)["text"],
            "each message between ranks takes 0.25 and occupies nobody");
  write("costs.json", to_json(measured()).dump());
  const ScheduleCosts run({directory_}, {.latency = 0.5});
  EXPECT_EQ(run.of(layout, plan).link(0, 1), (LinkCosts{.latency = 0.5}));
  const std::string file = write("machine.toml", machine_toml(machine()));
  EXPECT_EQ(error_of([&] {
              ScheduleCosts({"1", "1", "1"}, {.links = file, .boundary_bytes = 1, .latency = 1});
            }),
            "a latency is given, and links as well");
  for (const double bad : {-1.0, 1e-308, 1e19, std::nan("")})
    EXPECT_NE(error_of([&] { ScheduleCosts({"1", "1", "1"}, {.latency = bad}); }), "none") << bad;
}

TEST_F(CostFiles, FrozenStagesFreezeTheirUnits) {
  write("costs.json", to_json(measured()).dump());
  const ScheduleCosts costs({directory_});
  Layout layout{{Pipeline{{{0, 0, 1}, {1, 1, 2}, {2, 2, 3}}, 0, 4}}};
  const Costs whole = costs.of(layout, make_plan(layout, "1f1b"));
  layout.frozen_units = 1;
  const Costs frozen = costs.of(layout, make_plan(layout, "1f1b"));
  for (std::size_t s = 0; s < 3; ++s) {
    EXPECT_EQ(frozen.stages[s].forward, whole.stages[s].forward);
    EXPECT_EQ(frozen.stages[s].weight > 0, s >= 1) << s;
    EXPECT_EQ(frozen.ranks[s].refresh > 0, s >= 1) << s;
    EXPECT_GT(whole.stages[s].weight, 0);
  }
  EXPECT_LE(frozen.stages[1].input, whole.stages[1].input);
  EXPECT_EQ(frozen.stages[2].input, whole.stages[2].input);
  layout = {
      {Pipeline{{{0, 0, 1}, {1, 1, 2}}, 0, 2}, Pipeline{{{2, 0, 1}, {3, 1, 2}, {4, 2, 3}}, 2, 4}},
      1};
  EXPECT_NE(error_of([&] { costs.of(layout, make_plan(layout, "1f1b")); }), "none");
}

TEST_F(CostFiles, ErrorsOfAMachineFileSayTheLineAndTheNearestKey) {
  for (const auto& [text, where, fix] :
       {std::tuple{"load_s = 1.0\n[local]\nlatency = 1\n", ":3:1: local.latency", "latency_s ("},
        {"load_s = 1.0\npost_s = 1e30\n", ":2:10: post_s", ""}}) {
    const std::string file = write("a.toml", text);
    try {
      read_machine_file(file);
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.where(), file + where);
      EXPECT_TRUE(error.fix().starts_with(fix)) << error.fix();
    }
  }
}

TEST_F(CostFiles, LinksOfAMachineCarryTheMessagesOfASchedule) {
  const std::string file = write("machine.toml", machine_toml(machine()));
  const ScheduleCosts costs({"2", "3", "4"}, {file, 1000});
  const Layout layout{{Pipeline{{{0, 0, 1}, {1, 1, 2}, {2, 2, 3}, {3, 3, 4}}, 0, 4}}};
  const Costs with = costs.of(layout, make_plan(layout, "1f1b"));
  EXPECT_EQ(with.boundary_bytes, 1000);
  EXPECT_EQ(with.hosts, (std::vector{0, 0, 1, 1}));
  EXPECT_EQ(with.link(0, 1), machine().local);
  EXPECT_EQ(with.link(1, 2), machine().remote);
  EXPECT_EQ(with.link(0, 3), machine().pairs.at({0, 3}));
  EXPECT_EQ(with.stages[3].weight, 4);
  EXPECT_FALSE(costs.links(layout, with)["free"]);
  EXPECT_EQ(costs.links(layout, with)["text"], "from " + file + ", all ranks on 2 hosts");
  const ScheduleCosts none({"2", "3", "4"});
  EXPECT_TRUE(none.links(layout, none.of(layout, make_plan(layout, "1f1b")))["free"]);

  EXPECT_EQ(error_of([&] { ScheduleCosts({file}); }),
            "a machine file has links, but not what F, I and W of a stage take");
  EXPECT_EQ(error_of([&] {
              ScheduleCosts({"1", "1", "1"}, {file, {}});
            }),
            "the size of a message between stages is not known");
  EXPECT_NE(error_of([&] { ScheduleCosts({"1", "1", "1"}, {"", 1000}); }), "none");
}

TEST_F(CostFiles, ARunWithoutLinksSaysSoAndTakesThoseOfAnother) {
  MeasuredCosts alone = measured();
  alone.machine = with_links(alone.machine, {});
  write("costs.json", to_json(alone).dump());
  const std::string file = write("machine.toml", machine_toml(machine()));
  const Layout layout{{Pipeline{{{0, 0, 1}, {1, 1, 2}, {2, 2, 3}, {3, 3, 4}}, 0, 4}}};
  const Plan plan = make_plan(layout, "1f1b");
  const ScheduleCosts free({directory_}), other({directory_}, {file, {}});
  const auto said = free.links(layout, free.of(layout, plan));
  EXPECT_TRUE(said["free"]);
  EXPECT_EQ(said["text"],
            "not measured in this run: transfers are free; give --links machine.toml");
  const Costs with = other.of(layout, plan);
  EXPECT_EQ(other.links(layout, with)["from"], file);
  EXPECT_FALSE(other.links(layout, with)["free"]);
  EXPECT_EQ(with.link(1, 2), machine().remote);
  EXPECT_EQ(with.combine, alone.machine.combine_s_per_byte);
  EXPECT_GT(simulate(plan, layout, with).makespan,
            simulate(plan, layout, free.of(layout, plan)).makespan);
  EXPECT_NE(error_of([&] { ScheduleCosts({directory_}, {file, 1000}); }), "none");
  // A local link alone is not enough where ranks are on two hosts.
  alone.machine.ranks_per_host = 2;
  alone.machine.local = machine().local;
  write("costs.json", to_json(alone).dump());
  const ScheduleCosts half({directory_});
  EXPECT_TRUE(half.links(layout, half.of(layout, plan))["free"]);
}

TEST(PlanCosts, AStageIsTheSumOfItsUnits) {
  const PlannedJob run = planned(small(2, 1), 2);
  const std::vector<UnitSeconds> units = measured().units;
  MachineModel updates;
  updates.update_s_per_element = 1e-9;
  const Costs costs = plan_costs(run.job, run, units, updates);
  ASSERT_EQ(costs.stages.size(), 2U);
  double all = 0;
  for (const StageCosts& stage : costs.stages) all += stage.forward + stage.input + stage.weight;
  double expected = 0;
  for (const UnitSeconds& unit : units) expected += unit.forward + unit.input + unit.weight;
  EXPECT_DOUBLE_EQ(all, expected);
  EXPECT_TRUE(costs.buckets.empty());  // nobody shares a parameter
  std::size_t elements = 0;
  for (const Bucket& bucket : run.buckets) elements += bucket.elements;
  EXPECT_NEAR(costs.ranks[0].update + costs.ranks[1].update, 1e-9 * static_cast<double>(elements),
              1e-12);
}

TEST(PlanCosts, ReplicasExchangeWhatTheyHold) {
  const PlannedJob run = planned(small(1, 2), 2);
  MachineModel slow;
  slow.remote.bandwidth = 1e6;
  slow.ranks_per_host = 1;
  const std::vector<UnitSeconds> units = measured().units;
  const Costs costs = plan_costs(run.job, run, units, slow);
  double bytes = 0;
  for (const BucketCosts& bucket : costs.buckets) {
    EXPECT_EQ(bucket.ranks, (std::vector{0, 1}));
    EXPECT_EQ(bucket.pieces[0].size(), bucket.pieces[1].size());  // one for each use of the bucket
    bytes += bucket.bytes * (static_cast<double>(bucket.pieces[0].size()) + 1) / 2;
  }
  // Half of each use's gradients, then half of the weights, each way over the link, hidden or not.
  const double compute =
      simulate(run.plan, run.layout, plan_costs(run.job, run, units, {})).makespan;
  const double step = simulate(run.plan, run.layout, costs).makespan;
  EXPECT_GT(step, bytes / 1e6);
  EXPECT_LT(step, compute + bytes / 1e6 + 1e-9);
  // The first bucket that is ready has all units below it still to come.
  EXPECT_GT(costs.buckets.front().early[0], 0);
  EXPECT_EQ(costs.buckets.back().early[0], 0);
}

TEST(PlanCosts, MeasuredSecondsScaleWithMicrobatches) {
  RunConfig config = small(1, 1);
  config.batch.microbatches = 4;  // twice the samples
  CostSource source{"costs", measured(), machine()};
  const std::vector<UnitSeconds> units = seconds_of(source, config);
  EXPECT_DOUBLE_EQ(units[1].forward, 2 * measured().units[1].forward);
  EXPECT_DOUBLE_EQ(units[1].pack, measured().units[1].pack);
  config.model.width = 64;
  EXPECT_NE(error_of([&] { seconds_of(source, config); }), "none");
  source.measured.reset();
  EXPECT_DOUBLE_EQ(seconds_of(source, config)[1].forward,
                   job_of(config).model.units[1].cost.forward_flops / machine().flops_per_s);
}

TEST(PlanCosts, WhatIsComputedAgainTakesItsPartOfTheMeasuredForwardPass) {
  const RunConfig usual = small(1, 1);
  RunConfig again = usual;
  again.parallel.recompute = {"mlp"};
  CostSource source{"costs", measured(), machine()};
  const std::vector<UnitSeconds> plain = seconds_of(source, usual),
                                 more = seconds_of(source, again);
  // The first of an MLP's two maps, which have as many products each, runs again.
  EXPECT_DOUBLE_EQ(more[2].input, plain[2].input + plain[2].forward / 2);
  EXPECT_DOUBLE_EQ(more[2].forward, plain[2].forward);
  EXPECT_DOUBLE_EQ(more[2].weight, plain[2].weight);
  EXPECT_DOUBLE_EQ(more[1].input, plain[1].input);
  // Back from a run that did it.
  source.measured->config = write_config(again);
  source.measured->units = more;
  EXPECT_DOUBLE_EQ(seconds_of(source, again)[2].input, more[2].input);
  EXPECT_DOUBLE_EQ(seconds_of(source, usual)[2].input, plain[2].input);
}

/// Whatever a reader lets in, the largest and the smallest of it together, gives a finite step.
TEST_F(CostFiles, ExtremesThatAreAllowedGiveAFiniteStep) {
  const std::string file = write("m.toml",
                                 "post_s = 1e18\n[local]\nlatency_s = 1e18\nbytes_per_s = 1e-30\n"
                                 "send_cpu_s_per_byte = 1e18\nreceive_cpu_s_per_byte = 1e18\n");
  const ScheduleCosts costs({"1e18", "1e-30", "0"}, {file, 1e15});
  const Layout layout{{Pipeline{{{0, 0, 1}, {1, 1, 2}}, 0, 4}}};
  const Plan plan = make_plan(layout, "1f1b");
  EXPECT_TRUE(std::isfinite(simulate(plan, layout, costs.of(layout, plan)).makespan));
}

MovePlan plan_of(std::vector<MoveRound> rounds, std::size_t world) {
  return {std::move(rounds), std::vector<std::size_t>(world), std::vector<std::size_t>(world)};
}

TEST(MoveCosts, AreTheSlowestRanksOfEachRound) {
  // 1e6 weights 0 -> 1, 2 x 5e5 optimizer elements 1 -> 0 and 2 x 5e5 within rank 0.
  const MoveRound first{
      {0},
      {{0, false, 0, 1000000, 0, 1}, {0, true, 0, 500000, 1, 0}, {0, true, 500000, 1000000, 0, 0}}};
  const MoveRound second{{1}, {{1, false, 0, 250000, 1, 0}}};
  MachineModel machine;
  machine.ranks_per_host = 1;
  machine.remote = {.latency = 1e-3, .bandwidth = 1e6};
  machine.moves.copy_s_per_byte = 1e-9;
  machine.moves.block_s_per_byte = 2e-9;
  machine.moves.rebuild_s = 0.5;
  const MoveSeconds both = predict_move(plan_of({first, second}, 2), 2, machine);
  EXPECT_NEAR(both.links, 4.001 + 1.001, 1e-9);  // 4 MB each way at once, then 1 MB
  EXPECT_NEAR(both.copies, 4e-3, 1e-9);          // rank 0: 4 MB
  EXPECT_NEAR(both.blocks, 16e-3 + 2e-3, 1e-9);  // rank 0: 8 MB are new to it, then 1 MB
  EXPECT_NEAR(both.total(), both.move() + 0.5, 1e-12);

  const PairBytes bytes = pair_bytes(plan_of({first, second}, 2), 2);
  EXPECT_EQ(bytes, (PairBytes{{{0, 1}, 4e6}, {{1, 0}, 5e6}}));
  EXPECT_EQ(busiest_rank(bytes).most(), 5e6);
}

TEST(MoveCosts, CountAHostsLinkOnceAndCopiesWhereNoLinkIsKnown) {
  // Ranks 0 and 1 of one host each send 1 MB to ranks 2 and 3 of the other.
  const MoveRound round{
      {0}, {{0, false, 0, 250000, 0, 2}, {0, false, 0, 250000, 1, 3}, {0, false, 0, 500000, 0, 1}}};
  MachineModel machine;
  machine.moves.copy_s_per_byte = 1e-6;
  EXPECT_NEAR(predict_move(plan_of({round}, 4), 2, machine).links, 2, 1e-9) << "one host: 2 MB";
  machine.ranks_per_host = 2;
  machine.remote = {.bandwidth = 0.5e6};
  EXPECT_NEAR(predict_move(plan_of({round}, 4), 2, machine).links, 4, 1e-9) << "2 MB over one link";
  EXPECT_EQ(busiest_rank(PairBytes{}).most(), 0);
}

TEST(MoveCosts, TakeTheExchangeOfAHostForItsLinksAndWhatMovesTookBefore) {
  // 4 MB from rank 0 to rank 1 of one host, 2 MB back, 1 MB within rank 1.
  const MoveRound round{
      {0}, {{0, false, 0, 1000000, 0, 1}, {0, true, 0, 250000, 1, 0}, {0, false, 0, 250000, 1, 1}}};
  MachineModel machine;
  machine.local = {.latency = 5, .bandwidth = 1};
  machine.moves = {.exchange_s_per_byte = 1e-6, .copy_s_per_byte = 3e-6, .block_s_per_byte = 1e-6};
  const MoveSeconds one = predict_move(plan_of({round}, 2), 2, machine);
  EXPECT_NEAR(one.links, 4, 1e-9);
  EXPECT_NEAR(one.copies, 3, 1e-9);
  EXPECT_NEAR(one.blocks, 1 + 4, 1e-9) << "first what rank 1 copies, then what it receives";
  machine.moves.move_factor = 2;
  machine.moves.rebuild_s = 7;
  EXPECT_NEAR(predict_move(plan_of({round}, 2), 2, machine).total(), 2 * one.move() + 7, 1e-9);
}

TEST(LayoutKeys, ReplaceTheShapeAndNothingElse) {
  RunConfig config = small(2, 1);
  config.model.vocab = 256;
  const RunConfig wide = with_layout_keys(config, "parallel.dp=2 parallel.schedule=gpipe", "--to");
  EXPECT_EQ(wide.parallel.pp, 0) << "as if no file had set it";
  EXPECT_EQ(wide.parallel.dp, 2);
  EXPECT_EQ(wide.parallel.schedule, "gpipe");
  EXPECT_EQ(with_layout_keys(config, "parallel.schedule=gpipe", "--to").parallel.pp, 2);
  const RunConfig uneven = with_layout_keys(
      config,
      "parallel.layout=[{stages = [{rank = 0, units = [0, 6]}], microbatches = [0, 8]}] "
      "freeze.units=1",
      "--to");
  EXPECT_EQ(uneven.parallel.layout.pipelines.size(), 1U);
  EXPECT_EQ(uneven.freeze.units, 1);
  for (const char* bad : {"", "pp=1", "model.layers=3", "parallel.transport=mpi", "x parallel.pp=1",
                          "parallel.pp=-1"})
    EXPECT_THROW(with_layout_keys(config, bad, "--to"), Error) << bad;
}

/// GPT with 12 layers on a pipeline of two ranks; F = I = W = 1 for each layer, all else free.
struct EqualLayers {
  RunConfig config;
  Job job;
  ForecastInput forecast;
  std::vector<int> layers{0, 4, 7, 9, 10, 11, 11, 12, 12, 12};

  EqualLayers() {
    config.model = {.layers = 12, .width = 8, .heads = 1, .context = 8, .vocab = 2};
    config.batch = {.global = 4, .microbatches = 4};
    job = job_of(config);
    forecast.units.assign(static_cast<std::size_t>(job.units()), {0.5, 0.5, 0.5, 0});
    forecast.units.front() = forecast.units.back() = {};
    forecast.cache.share = 1;
  }

  double seconds(const char* policy, const LayoutOptions& options, bool freezes, bool caches,
                 int dp = 1) const {
    CourseInput input{.job = job,
                      .asked = {.world = 2, .pp = 3 - dp, .dp = dp, .schedule = "gpipe"},
                      .policy = lookup(layout_policies(), policy, "", ""),
                      .options = options,
                      .every = 1,
                      .forecast = forecast};
    if (!caches) input.forecast.cache = {};
    const std::vector<int> none(layers.size());
    return seconds_of(foresee(input, freezes ? layers : none, steps_of_epochs(40, 4, 10)));
  }

  double least(bool caches, bool keeps_grid) const {
    CourseInput input{.job = job,
                      .asked = {.world = 2, .pp = 2, .schedule = "gpipe"},
                      .policy = lookup(layout_policies(), "none", "", ""),
                      .forecast = forecast};
    if (!caches) input.forecast.cache = {};
    return least_seconds(input, foresee(input, layers, steps_of_epochs(40, 4, 10)), keeps_grid);
  }
};

TEST(Course, PlansReachTheClosedFormsOfTheLadder) {
  const EqualLayers run;
  const std::vector<double> course(run.layers.begin(), run.layers.end());
  const FreezeLadder ceilings =
      freeze_ladder(course, {.layers = 12, .stages = 2, .microbatches = 4});
  const LayoutOptions cuts{.depth = false, .replicas = false, .schedule = false},
      grid{.schedule = false};
  const double gpipe = run.seconds("none", {}, false, false);
  const double best = run.seconds("none", {}, false, false, 2);
  const auto check = [&](double seconds, const Rung& ceiling) {
    EXPECT_NEAR(gpipe / seconds, ceiling.over_gpipe, 0.01 * ceiling.over_gpipe);
    EXPECT_NEAR(best / seconds, ceiling.over_best, 0.01 * ceiling.over_best);
  };
  check(run.seconds("none", {}, true, false), ceilings.freeze);
  check(run.seconds("predicted", grid, true, false), ceilings.replicas);
  check(run.seconds("predicted", grid, true, true), ceilings.cache);
  EXPECT_NEAR(gpipe / run.least(false, true), ceilings.repack.over_gpipe, 0.01);
  EXPECT_NEAR(gpipe / run.least(false, false), ceilings.replicas.over_gpipe, 0.01);
  EXPECT_NEAR(gpipe / run.least(true, false), ceilings.cache.over_gpipe, 0.01);
  EXPECT_NEAR(ceilings.cache.over_gpipe, 4.17, 0.005);
  // Whole units cannot be cut so that forwards and backwards are both equal.
  const double repack = gpipe / run.seconds("predicted", cuts, true, false);
  EXPECT_LE(repack, ceilings.repack.over_gpipe);
  EXPECT_GE(repack, ceilings.freeze.over_gpipe);
}

TEST(Course, ABatchThatGrowsHasItsPlaceInTheEpochsAndNotInTheirSteps) {
  EqualLayers run;
  run.forecast.machine.norm_s_per_element = run.forecast.machine.update_s_per_element = 1e-4;
  const auto epochs = [&](bool grows) {
    const Request asked{.world = 2, .pp = 2, .schedule = "gpipe"};
    return foresee({.job = run.job,
                    .asked = asked,
                    .policy = lookup(layout_policies(), "pipetransformer", "", ""),
                    .options = {.grows = grows},
                    .forecast = run.forecast},
                   run.layers, steps_of_epochs(40, 4, 10));
  };
  const std::vector<CourseEpoch> constant = epochs(false), grown = epochs(true);
  EXPECT_EQ(grown.front().batches, 1);
  EXPECT_EQ(grown.back().batches, 2);
  EXPECT_LT(seconds_of(grown), seconds_of(constant));
  for (std::size_t e = 0; e < grown.size(); ++e) {
    EXPECT_EQ(grown[e].steps, constant[e].steps);
    EXPECT_EQ(grown[e].layout, constant[e].layout);
    EXPECT_EQ(constant[e].batches, 1);
    // One update for two steps.
    if (grown[e].batches == 1) {
      EXPECT_EQ(grown[e].step_s, constant[e].step_s);
    } else {
      EXPECT_LT(grown[e].step_s, constant[e].step_s);
    }
  }
}

TEST(Course, NoLayoutsAreFasterThanTheLeastSeconds) {
  std::mt19937 chance(47);
  const auto real = [&](double low, double high) {
    return std::exp(std::uniform_real_distribution(std::log(low), std::log(high))(chance));
  };
  const auto whole = [&](int low, int high) {
    return std::uniform_int_distribution(low, high)(chance);
  };
  const char* schedules[] = {"gpipe", "1f1b", "zb-h1"};
  for (int i = 0; i < 120; ++i) {
    SCOPED_TRACE(i);
    RunConfig config;
    const int world = whole(1, 4), layers = whole(world, 6);
    config.model = {.layers = layers, .width = 8, .heads = 1, .context = 8, .vocab = 4};
    config.batch = {.global = 8, .microbatches = whole(0, 1) == 1 ? 8 : 4};
    config.numerics.leaves = 4;
    const Job job = job_of(config);
    CourseInput input{.job = job,
                      .asked = {.world = world, .pp = world, .schedule = schedules[whole(0, 2)]},
                      .policy = lookup(layout_policies(), "predicted", "", ""),
                      .every = whole(0, 3)};
    for (int unit = 0; unit < job.units(); ++unit)
      input.forecast.units.push_back(
          {real(.1, 10), real(.1, 10), real(.1, 10), real(.01, 1), real(.1, 10)});
    MachineModel& machine = input.forecast.machine;
    machine.load_s = whole(0, 1) * real(.01, 10);
    machine.norm_s_per_element = whole(0, 1) * real(1e-5, 1e-2);
    machine.update_s_per_element = whole(0, 1) * real(1e-5, 1e-2);
    machine.local = {.latency = whole(0, 1) * real(1e-3, 1), .bandwidth = real(1, 1e5)};
    for (int rank = 0; whole(0, 3) == 0 && rank < world; ++rank)
      machine.factors.push_back(real(.5, 2));
    input.options.least_gain = 0;
    input.options.schedule = false;
    input.options.grows = whole(0, 3) == 0;
    if (whole(0, 1) == 1) input.forecast.cache = {1, real(1e-4, 1)};
    const bool keeps_grid = whole(0, 1) == 1;
    input.options.depth = input.options.replicas = !keeps_grid;
    std::vector<int> course{0};
    while (course.size() < 4) course.push_back(whole(course.back(), layers));
    const std::vector<CourseEpoch> epochs = foresee(input, course, {5, 4, 5, 4});
    EXPECT_LE(least_seconds(input, epochs, keeps_grid), seconds_of(epochs) * (1 + 1e-9));
  }
}

TEST(Course, FixedCostsLowerTheCeiling) {
  EqualLayers run;
  const PlannedJob plan = planned(run.config, 1);
  run.forecast.units.back() = {1, 1, 1, 0};  // the head: as much as one of twelve layers
  EXPECT_NEAR(fixed_share(run.job, plan, run.forecast), 1.0 / 13, 1e-9);
  EXPECT_EQ(steps_of_epochs(10, 4, 3), (std::vector<std::int64_t>{3, 2, 3}));
}

TEST(CostRecord, PutsTogetherWhatWasSeenWithDifferentUnitsFrozen) {
  const RunConfig config;
  const Job job = job_of(config);
  const auto units = static_cast<std::size_t>(job.units());
  CostRecord record(job.model);
  std::vector<UnitSeconds> seen(units, {1, 2, 3, 0.5});
  record.add({seen, {}, 10}, 0);
  EXPECT_EQ(record.full(), seen);
  // Frozen units run forward only, and the head, whose matrix is the embedding's, less of W.
  std::vector<UnitSeconds> later(units, {4, 5, 6, 0.5});
  for (std::size_t u = 0; u < 3; ++u) later[u] = {0.75, 0, 0, 0};
  record.add({later, {}, 5}, 3);
  const std::vector<UnitSeconds> full = record.full();
  EXPECT_EQ(full[0], (UnitSeconds{1, 2, 3, 0.5, 0.75}));
  EXPECT_EQ(full[4], (UnitSeconds{4, 5, 6, 0.5, 3})) << "three quarters, as of those that are";
  EXPECT_EQ(with_frozen_units(job.model, full, 5)[4].forward, 3);
  EXPECT_GE(full.back().weight, 6);
  // What no step has shown is taken from its FLOPs.
  CostRecord frozen_only(job.model);
  frozen_only.add({later, {}, 5}, 3);
  EXPECT_GT(frozen_only.full()[1].weight, 0);
}

}  // namespace
}  // namespace concertina
