// Runs that are stopped after any step and resumed: every registered policy decides as if the run
// had never been stopped. Fails for a policy whose progress lacks data that its decisions depend
// on.
#include <gtest/gtest.h>

#include <random>

#include "core/error.h"
#include "core/index.h"
#include "experiments/adopt/freezing.h"
#include "experiments/adopt/repartition.h"
#include "experiments/run/checkpoint_writer.h"
#include "experiments/run/run_checkpoint.h"
#include "experiments/run/run_identity.h"
#include "experiments/run/state_hash.h"
#include "tests/integration/training.h"
#include "tests/temporary_directory.h"
#include "tests/threads/thread_communicator.h"

namespace concertina {
namespace {

constexpr int kRanks = 2;
constexpr std::int64_t kEpoch = 2;  // steps

/// Decisions of a run, without times and layouts, which depend on the world size; its final state
/// and layout.
struct Course {
  std::vector<std::string> decisions;
  std::string hash, layout;
  int changes = 0;
  bool operator==(const Course&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Course& course) {
  return out << fmt::format("{}\n{}\n{}", fmt::join(course.decisions, "\n"), course.hash,
                            course.layout);
}

/// A launch of `ranks` ranks until step `last`. `edit` changes the layouts in its checkpoint.
struct Leg {
  RunConfig config;
  std::int64_t last = 0;
  std::function<void(nlohmann::json& layout)> edit{};
  int ranks = kRanks;
};

void note(std::int64_t step, const Change& change, Course& course) {
  course.changes += change.next ? 1 : 0;
  for (const RunEvent& event : change.events) {
    if (event.kind == EventKind::layout_outcome) continue;
    nlohmann::ordered_json facts;
    for (const auto& [name, fact] : event.facts.items())
      if (name != "from" && name != "to" && name != "layout" && name != "seconds" &&
          !name.ends_with("_s") && !name.ends_with("_bytes"))
        facts[name] = fact;
    course.decisions.push_back(fmt::format("{} {} {}", step, name_of(event.kind), facts.dump()));
  }
}

/// Runs on one rank, like Training; from the newest checkpoint in `directory`, if there is one, to
/// another.
void launch(Communicator& world, const Leg& leg, const std::string& directory, Course& course) {
  const RunConfig& config = leg.config;
  const auto backend = cpu_backend(1);
  Trainer trainer(config, *backend, world);
  trainer.start();
  const nlohmann::json identity = numerics_identity(config, "synthetic");
  nlohmann::json stored = nlohmann::json::object();
  if (!load_checkpoint(trainer, directory, identity, &stored)) trainer.initialize();
  Freezing freezing(config, trainer.job());
  Repartition repartition(config, trainer, *backend, 1);
  const std::vector<ChangePolicy*> policies{&freezing, &repartition};
  nlohmann::json progress = stored.value(kProgress, nlohmann::json::object());
  if (leg.edit) leg.edit(progress["layout"]);
  for (ChangePolicy* policy : policies)
    policy->restore(progress.value(policy->name(), nlohmann::json()), trainer, directory);
  SyntheticSource source(config.model.context, config.model.vocab);
  while (trainer.done() < leg.last) {
    const std::int64_t before = trainer.done();
    const StepResult result = trainer.step(before + 1, source);
    const std::int64_t done = trainer.done();
    Change change;
    for (ChangePolicy* policy : policies)
      policy->consider({.before = before,
                        .step = done,
                        .steps = config.run.steps,
                        .seconds = 1e-3,
                        .result = result,
                        .epochs_before = before / kEpoch,
                        .epochs = done / kEpoch},
                       trainer, change);
    if (change.next)
      if (const auto adoption = adopt_change(change, trainer, 1))
        for (ChangePolicy* policy : policies) policy->adopted(change, *adoption);
    note(done, change, course);
  }
  for (const ChangePolicy* policy : policies) progress[policy->name()] = policy->progress();
  save_checkpoint(trainer, directory, trainer.done(), identity, progress);
  course.hash = state_sha256(trainer);
  course.layout = describe(trainer.asked(), trainer.assignment());
}

Course train(const std::vector<Leg>& legs) {
  const TemporaryDirectory directory;
  Course course;
  for (const Leg& leg : legs) {
    std::vector<Course> courses(at(leg.ranks), course);
    run_threads(leg.ranks, [&](Communicator& world) {
      launch(world, leg, directory.path(), courses[at(world.rank())]);
    });
    for (const Course& one : courses) EXPECT_EQ(one, courses[0]);
    course = std::move(courses[0]);
  }
  return course;
}

/// What a run does with its layout, and when all its layers train again.
struct Variant {
  const char *layout, *batch, *unfreeze;
};

RunConfig config_of(const std::string& freeze, const Variant& variant) {
  RunConfig config = with_grid(small_config(), 2, 1, "gpipe");
  config.model = {.layers = 4, .width = 8, .heads = 1, .context = 4, .vocab = 11};
  config.batch = {8, 4};
  config.run.steps = 18;
  config.lr.schedule = "cosine-restarts";
  const FreezePolicy& policy = lookup(freeze_policies(), freeze, "freeze policy", "freeze.policy");
  config.freeze.policy = freeze;
  config.freeze.after = 0;
  if (policy.plan_skips == nullptr) config.freeze.unfreeze = variant.unfreeze;
  config.freeze.unfreeze_rise = config.freeze.unfreeze == "loss" ? 0 : 0.1;
  // Options that lead to decisions in these few steps.
  const OptionValues soon{{"at", std::vector<std::string>{"epoch 1: 2", "epoch 3: 4"}},
                          {"window", std::int64_t{2}},
                          {"reference_every", std::int64_t{3}},
                          {"tolerance", 0.9},
                          {"skip_from", std::int64_t{6}}};
  for (const Option& option : policy.options)
    if (const auto found = soon.find(option.name); found != soon.end())
      config.freeze.options[found->first] = found->second;
  config.elastic.policy = variant.layout;
  config.elastic.batch = variant.batch;
  config.elastic.every = 5;
  for (const char* key : {"freeze.policy", "elastic.policy"}) config.origins[key] = "this test";
  return config;
}

TEST(ResumedPolicies, DecideAsIfTheyHadNeverStopped) {
  std::vector<Variant> variants{{"none", "constant", "lr"}};
  for (const auto& layout : layout_policies())
    if (layout.name != "none" && !layout.value.by_times)
      variants.insert(variants.end(), {{layout.name.data(), "constant", "loss"},
                                       {layout.name.data(), "grows", "never"}});
  std::mt19937 random(1);
  for (const auto& freeze : freeze_policies()) {
    int changes = 0;
    for (const Variant& variant : variants) {
      const RunConfig config = config_of(std::string(freeze.name), variant);
      std::vector<Leg> legs;
      std::string stops;
      for (std::int64_t step = 1; step < config.run.steps; ++step)
        if (random() % 3 == 0) legs.push_back({config, step}), stops += fmt::format(" {}", step);
      legs.push_back({config, config.run.steps});
      const Course whole = train({legs.back()});
      EXPECT_EQ(train(legs), whole) << freeze.name << ", " << variant.layout << ", batch "
                                    << variant.batch << ", stopped after" << stops;
      changes += whole.changes;
    }
    EXPECT_GT(changes, 0) << freeze.name << " is not tested";
  }
}

/// A finished run that continues with a larger run.steps, as if that had been planned.
TEST(ResumedPolicies, GoOnFromTheirEndAsIfItHadBeenLater) {
  for (const auto& layout : layout_policies())
    for (const char* batch : {"constant", "grows"}) {
      if (layout.name == "none" || layout.value.by_times) continue;
      for (const auto& freeze : freeze_policies()) {
        RunConfig config =
            config_of(std::string(freeze.name), {layout.name.data(), batch, "never"});
        config.lr.steps = config.run.steps;  // as in a run
        const Course whole = train({{config, config.run.steps}});
        // A step that does several at once must divide the remaining steps: true for even ends.
        const std::int64_t between = batch == std::string("grows") ? 4 : 5;
        for (std::int64_t end = 2; end < config.run.steps; end += between) {
          RunConfig shorter = config;
          shorter.run.steps = end;
          EXPECT_EQ(train({{shorter, end}, {config, config.run.steps}}), whole)
              << freeze.name << ", " << layout.name << ", batch " << batch << ", ended at " << end;
        }
      }
    }
}

/// A run that packs its two stages into one rank late, and is stopped early.
std::vector<Leg> packs_late(const char* batch) {
  RunConfig config = config_of("list", {"pipetransformer", batch, "never"});
  config.freeze.options["at"] = std::vector<std::string>{"epoch 2: 1", "epoch 5: 3"};
  return {{config, 3}, {config, config.run.steps}};
}

/// The bits of a batch that grows depend on the world size at the start of the run.
TEST(ResumedPolicies, DecideTheSameInAWorldOfAnotherSize) {
  std::mt19937 random(2);
  const Grid grids[] = {{1, 1}, {1, 2}, {2, 1}, {1, 3}, {3, 1}, {1, 4}, {2, 2}, {4, 1}};
  for (const auto& layout : layout_policies())
    for (const char* batch : {"constant", "grows"}) {
      if (layout.value.by_times || (layout.name == "none" && batch == std::string("grows")))
        continue;
      for (const char* freeze : {"list", "linear", "pipetransformer"}) {
        RunConfig config = config_of(freeze, {layout.name.data(), batch, "loss"});
        config.run.steps = 36;
        std::vector<Leg> legs;
        std::string stops;
        for (std::int64_t step = 1; step < config.run.steps; ++step) {
          if (random() % 3 != 0) continue;
          const Grid grid = grids[random() % std::size(grids)];
          legs.push_back(
              {with_grid(config, grid.pp, grid.dp, "gpipe"), step, {}, grid.pp * grid.dp});
          stops += fmt::format(" {} on pp{}xdp{}", step, grid.pp, grid.dp);
        }
        legs.insert(legs.begin(), {config, 0});  // the start of the run
        legs.push_back({config, config.run.steps});
        Course whole = train({legs.back()}), parts = train(legs);
        whole.layout = parts.layout = "";
        whole.changes = parts.changes = 0;
        EXPECT_EQ(parts, whole) << freeze << ", " << layout.name << ", batch " << batch
                                << ", stopped after" << stops;
      }
    }
}

/// Until the next decision, a launch with the original world size restores that layout.
TEST(ResumedPolicies, ReturnToTheLayoutOfTheirWorld) {
  for (const char* batch : {"constant", "grows"}) {
    RunConfig config = config_of("list", {"pipetransformer", batch, "never"});
    config.elastic.every = 0;
    const Course whole = train({{config, config.run.steps}});
    EXPECT_TRUE(whole.layout.starts_with("pp1xdp2")) << whole;
    EXPECT_EQ(train({{config, 14}, {with_grid(config, 1, 1, "gpipe"), 16, {}, 1}, {config, 18}}),
              whole);
  }
}

TEST(ResumedPolicies, CountFromTheFirstLayoutWhereAnotherGoesOn) {
  for (const char* batch : {"constant", "grows"}) {
    std::vector<Leg> legs = packs_late(batch);
    const Course whole = train({legs.back()});
    EXPECT_EQ(whole.decisions.size(), 12U) << whole;
    legs.back().config = with_grid(legs.back().config, 1, 2, "gpipe");
    EXPECT_EQ(train(legs), whole) << batch;
  }
}

TEST(ResumedPolicies, TakeWhatTheirConfigSaysFromAnOlderCheckpoint) {
  std::vector<Leg> legs = packs_late("grows");
  const Course whole = train({legs.back()});
  legs.back().edit = [](nlohmann::json& layout) {
    EXPECT_EQ(layout.erase("first_stages") + layout.erase("settled"), 2U);
  };
  EXPECT_EQ(train(legs), whole);
  legs.back().edit = [](nlohmann::json& layout) { layout["first_stages"] = 99; };
  EXPECT_THROW(train(legs), Error);
}

}  // namespace
}  // namespace concertina
