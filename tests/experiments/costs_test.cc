// Costs of units and machines: files are read back, bad ones rejected, and plans use them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "experiments/config/config_toml.h"
#include "experiments/predict/machine_file.h"
#include "experiments/predict/measured_costs.h"
#include "experiments/predict/schedule_costs.h"
#include "parallel/generate/passes.h"
#include "parallel/predict/plan_costs.h"
#include "parallel/simulate/simulate.h"
#include "tests/errors.h"
#include "tests/parallel_plan/layouts.h"
#include "tests/planned.h"
#include "tests/temporary_directory.h"

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
  for (const UnitSpec& unit : job_of(small(1, 1)).model.units) {
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
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(directory_ + "/" + name) << text;
    return directory_ + "/" + name;
  }
  const TemporaryDirectory own_;
  const std::string directory_ = own_.path();
};

template <class Call>
std::string error_of(Call call) {
  return input_error(call).message();
}

TEST_F(CostFiles, ReadBack) {
  EXPECT_EQ(read_machine_file(write("machine.toml", machine_toml(machine()))), machine());
  EXPECT_EQ(measured_from_json(to_json(measured()), "here"), measured());
  write("costs.json", to_json(measured()).dump());
  EXPECT_EQ(*read_costs(directory_).measured, measured());
  EXPECT_EQ(read_costs(directory_ + "/costs.json").machine, machine());
}

TEST_F(CostFiles, BadOnesAreRefused) {
  const auto refused = [&](const std::string& name, const std::string& text) {
    const std::string file = write(name, text);
    return input_error([&] { read_costs(file); });
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
        {"[[pair]]\nfrom = 1\nto = 2\n[[pair]]\nfrom = 1\nto = 2", "duplicate pair from 1 to 2"}})
    EXPECT_EQ(refused("a.toml", text).message(), wrong);
  for (const char* bad : {"inf", "nan", "1e308", "1e-308", "-1e-3"}) {
    for (const char* key :
         {"local.latency_s", "local.bytes_per_s", "local.send_cpu_s_per_byte", "local.eager_bytes",
          "flops_per_s", "load_s", "post_s", "combine_s_per_byte"})
      expect_has(refused("a.toml", fmt::format("{} = {}", key, bad)).message(), "is out of range");
    input_error([&] { ScheduleCosts({"1", bad, "1"}); });
  }
  refused("a.toml", "flops");
  refused("a.json", "{}");
  EXPECT_EQ(refused("a.json", "{").message(), "invalid JSON");
  input_error([&] { read_costs(directory_); });
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"1", "2"}, {"1", "2", "nan"}, {write("m.toml", "flops_per_s = 1.0")}})
    input_error([&] { ScheduleCosts{words}; });
  const Error nearest = refused("b.toml", "load_s = 1.0\n[local]\nlatency = 1\n");
  expect_has(nearest.where(), "b.toml:3:1: local.latency");
  EXPECT_TRUE(nearest.fix().starts_with("latency_s (")) << nearest.fix();
  expect_has(refused("b.toml", "load_s = 1.0\npost_s = 1e30\n").where(), "b.toml:2:10: post_s");
}

TEST_F(CostFiles, AFileHasARowPerStage) {
  const auto read = [&](const std::string& text) { return ScheduleCosts({write("c.csv", text)}); };
  const Layout two = straight(2, 4), opposed = opposite(2, 2), three = over({0, 1, 0}, 4);
  for (const char* text : {"F,I,W\n1,2,3\n4,5,6\n", " F,I,W\r\n1, 2,3\r\n4,5,6",
                           "\xEF\xBB\xBF"
                           "F,I,W\n1,2,3\n4,5,6\n\n \n"}) {
    const ScheduleCosts costs = read(text);
    EXPECT_EQ(costs.rows(), 2);
    const Costs of_two = costs.of(two, make_plan(two, "1f1b"), 0.5);  // each row is for one stage
    EXPECT_EQ(of_two.stages[0].input, 2);
    EXPECT_EQ(of_two.stages[1].weight, 6);
    EXPECT_EQ(costs.of(opposed, make_plan(opposed, "gpipe")).stages[2].forward, 1);
    EXPECT_EQ(error_of([&] { costs.of(three, make_plan(three, "gpipe")); }),
              "the file has costs for 2 stages, but a pipeline has 3 stages");
  }
  for (const auto& [text, wrong] : {std::pair{"", "the file contains no costs"},
                                    {"F,I,W\n", "the file contains no costs"},
                                    {"\n\n", "the file contains no costs"},
                                    {"1,1,1\n", "the first line is '1,1,1', not F,I,W"},
                                    {"F,I,W\n1,1\n", "a row does not have three costs"},
                                    {"F,I,W\n1,1,1,1\n", "a row does not have three costs"},
                                    {"F,I,W\n\n1,1,1\n", "a row does not have three costs"},
                                    {"F,I,W\n1,,1\n", "'' is not a number of seconds"},
                                    {"F,I,W\n1,nan,1\n", "'nan' is not a number of seconds"},
                                    {"F,I,W\n1,1,1e19\n", "'1e19' is not a number of seconds"},
                                    {"F,I,W\n1,1,1x\n", "'1x' is not a number of seconds"}})
    EXPECT_EQ(error_of([&] { read(text); }), wrong) << text;
  EXPECT_EQ(error_of([&] { ScheduleCosts({directory_ + "/none.csv"}); }), "no such cost file");
}

TEST_F(CostFiles, ALatencyTakesThePlaceOfLinks) {
  const Layout layout = straight(2, 4);
  const Plan plan = make_plan(layout, "1f1b");
  const ScheduleCosts costs({"1", "2", "3"}, {.latency = 0.25});
  const Costs of_plan = costs.of(layout, plan);
  EXPECT_TRUE(of_plan.latency_alone);
  EXPECT_EQ(of_plan.link(0, 1).latency, 0.25);
  EXPECT_EQ(costs.links(layout, of_plan)["text"],
            "each message between ranks takes 0.25 and occupies no rank");
  write("costs.json", to_json(measured()).dump());
  const ScheduleCosts run({directory_}, {.latency = 0.5});
  EXPECT_EQ(run.of(layout, plan).link(0, 1), (LinkCosts{.latency = 0.5}));
  const LinkOptions both{
      .links = write("machine.toml", machine_toml(machine())), .boundary_bytes = 1, .latency = 1};
  EXPECT_EQ(error_of([&] {
              ScheduleCosts({"1", "1", "1"}, both);
            }),
            "--latency cannot be combined with --links");
  for (const double bad : {-1.0, 1e-308, 1e19, std::nan("")})
    input_error([&] { ScheduleCosts({"1", "1", "1"}, {.latency = bad}); });
}

TEST_F(CostFiles, FrozenStagesFreezeTheirUnits) {
  write("costs.json", to_json(measured()).dump());
  const ScheduleCosts costs({directory_});
  Layout layout = straight(3, 4);
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
  input_error([&] { costs.of(layout, make_plan(layout, "1f1b")); });
}

TEST_F(CostFiles, LinksOfAMachineCarryTheMessagesOfASchedule) {
  const std::string file = write("machine.toml", machine_toml(machine()));
  const ScheduleCosts costs({"2", "3", "4"}, {file, 1000});
  const Layout layout = straight(4, 4);
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
            "a machine file has links, but no times for F, I and W");
  EXPECT_EQ(error_of([&] {
              ScheduleCosts({"1", "1", "1"}, {file, {}});
            }),
            "the size of a message between stages is unknown");
  input_error([&] { ScheduleCosts({"1", "1", "1"}, {"", 1000}); });
}

TEST_F(CostFiles, ARunWithoutLinksSaysSoAndTakesThoseOfAnother) {
  MeasuredCosts alone = measured();
  alone.machine = with_links(alone.machine, {});
  write("costs.json", to_json(alone).dump());
  const std::string file = write("machine.toml", machine_toml(machine()));
  const Layout layout = straight(4, 4);
  const Plan plan = make_plan(layout, "1f1b");
  const ScheduleCosts free({directory_}), other({directory_}, {file, {}});
  const auto said = free.links(layout, free.of(layout, plan));
  EXPECT_TRUE(said["free"]);
  EXPECT_EQ(said["text"], "not measured in this run: transfers are free; use --links machine.toml");
  const Costs with = other.of(layout, plan);
  EXPECT_EQ(other.links(layout, with)["from"], file);
  EXPECT_FALSE(other.links(layout, with)["free"]);
  EXPECT_EQ(with.link(1, 2), machine().remote);
  EXPECT_EQ(with.combine, alone.machine.combine_s_per_byte);
  EXPECT_GT(simulate(plan, layout, with).makespan,
            simulate(plan, layout, free.of(layout, plan)).makespan);
  input_error([&] { ScheduleCosts({directory_}, {file, 1000}); });
  // A local link is not enough if ranks are on two hosts.
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
  EXPECT_TRUE(costs.buckets.empty());  // no parameter is shared
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
  // Half of each use's gradients, then half of the weights, each way over the link.
  const double compute =
      simulate(run.plan, run.layout, plan_costs(run.job, run, units, {})).makespan;
  const double step = simulate(run.plan, run.layout, costs).makespan;
  EXPECT_GT(step, bytes / 1e6);
  EXPECT_LT(step, compute + bytes / 1e6 + 1e-9);
  // When the first bucket is ready, all units below it are still to be processed.
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
  input_error([&] { seconds_of(source, config); });
  source.measured.reset();
  EXPECT_DOUBLE_EQ(seconds_of(source, config)[1].forward,
                   job_of(config).model.units[1].cost.forward_flops / machine().flops_per_s);
}

TEST(PlanCosts, WhatIsComputedAgainTakesItsPartOfTheMeasuredForwardPass) {
  const RunConfig default_value = small(1, 1);
  RunConfig again = default_value;
  again.parallel.recompute = {"mlp"};
  CostSource source{"costs", measured(), machine()};
  const std::vector<UnitSeconds> plain = seconds_of(source, default_value),
                                 more = seconds_of(source, again);
  // The first of an MLP's two maps, which have equally many products, runs again.
  EXPECT_DOUBLE_EQ(more[2].input, plain[2].input + plain[2].forward / 2);
  EXPECT_DOUBLE_EQ(more[2].forward, plain[2].forward);
  EXPECT_DOUBLE_EQ(more[2].weight, plain[2].weight);
  EXPECT_DOUBLE_EQ(more[1].input, plain[1].input);
  // Converts back from a run that recomputed.
  source.measured->config = write_config(again);
  source.measured->units = more;
  EXPECT_DOUBLE_EQ(seconds_of(source, again)[2].input, more[2].input);
  EXPECT_DOUBLE_EQ(seconds_of(source, default_value)[2].input, plain[2].input);
}

/// Allowed values, including the largest together with the smallest, give a finite step.
TEST_F(CostFiles, ExtremesThatAreAllowedGiveAFiniteStep) {
  const std::string file = write("m.toml",
                                 "post_s = 1e18\n[local]\nlatency_s = 1e18\nbytes_per_s = 1e-30\n"
                                 "send_cpu_s_per_byte = 1e18\nreceive_cpu_s_per_byte = 1e18\n");
  const ScheduleCosts costs({"1e18", "1e-30", "0"}, {file, 1e15});
  const Layout layout = straight(2, 4);
  const Plan plan = make_plan(layout, "1f1b");
  EXPECT_TRUE(std::isfinite(simulate(plan, layout, costs.of(layout, plan)).makespan));
}

}  // namespace
}  // namespace concertina
