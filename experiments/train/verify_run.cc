#include "experiments/train/verify_run.h"

#include <memory>

#include "core/clock.h"
#include "core/error.h"
#include "experiments/adopt/freezing.h"
#include "experiments/adopt/repartition.h"
#include "experiments/cache/auto_cache.h"
#include "experiments/machine/gather.h"
#include "experiments/run/planning.h"
#include "experiments/run/state_hash.h"

namespace concertina {
namespace {

/// Throws if ranks decided differently after step `step`: a rank would then wait for others
/// forever. Collective.
void require_one_decision(Communicator& world, const Change& change, std::int64_t step) {
  const std::string mine =
      change.next ? fmt::format("{} frozen units at {}", change.next->assignment.frozen_units(),
                                describe(change.next->request, change.next->assignment))
                  : "no change";
  const std::vector<nlohmann::json> all = gather_json(world, mine);
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank] != all[0])
      throw_failure(
          fmt::format("after step {}, rank 0 decides on {}, but rank {} decides on {}", step,
                      all[0].get<std::string>(), rank, all[rank].get<std::string>()),
          "the policies of the run", "policies that depend only on values known to all ranks");
}

/// One of the runs, from its first step on. `whole`: with the cache and the layout policy.
class Course {
 public:
  Course(Launch& launch, const RunConfig& resolved, std::int64_t steps, bool whole)
      : trainer_(launch.trainer),
        steps_(steps),
        threads_(launch.threads),
        source_(launch.dataset, data_seed(launch.config), launch.config.batch.global),
        freezing_(resolved, trainer_.job()) {
    policies_.push_back(&freezing_);
    if (whole && resolved.elastic.policy != "none") {
      repartition_ =
          std::make_unique<Repartition>(resolved, trainer_, *launch.backend, launch.threads);
      policies_.push_back(repartition_.get());
    }
    for (ChangePolicy* policy : policies_) policy->restore({}, trainer_, "this run");
    if (whole && uses_cache(resolved))
      cache_ = std::make_unique<AutoCache>(
          trainer_, AutoCache::Options{.dataset = launch.dataset,
                                       .numerics = launch.identity(/*remember=*/false).dump(),
                                       .decided = {}});
  }

  StepTrace step(std::int64_t number) {
    const double start = now();
    if (cache_) cache_->before_step(number);
    const StepResult result = trainer_.step(number, source_);
    StepTrace trace{.loss = result.loss,
                    .grad_norm = result.grad_norm,
                    .frozen_units = trainer_.layout().frozen_units,
                    .squares = trainer_.bucket_squares(),
                    .layout = short_form(trainer_.layout())};
    if (number < steps_)
      change({.before = number - 1,
              .step = number,
              .steps = steps_,
              .seconds = now() - start,
              .result = result,
              .epochs_before = source_.epochs_done(number - 1),
              .epochs = source_.epochs_done(number)});
    return trace;
  }

  /// The number of samples read from the cache. Collective.
  std::uint64_t cached() {
    if (!cache_) return 0;
    const CacheUse use = cache_->use();
    return use.memory_hits + use.disk_hits;
  }

 private:
  void change(const RunView& view) {
    Change change;
    for (ChangePolicy* policy : policies_) {
      policy->consider(view, trainer_, change);
      require_one_decision(trainer_.world(), change, view.step);
    }
    if (!change.next) return;
    if (const auto adoption = adopt_change(change, trainer_, threads_))
      for (ChangePolicy* policy : policies_) policy->adopted(change, *adoption);
  }

  Trainer& trainer_;
  const std::int64_t steps_;
  const int threads_;
  TrainingSource source_;
  Freezing freezing_;
  std::unique_ptr<Repartition> repartition_;
  std::vector<ChangePolicy*> policies_;
  std::unique_ptr<AutoCache> cache_;
};

/// The values of `now` that differ from the other run's; units are compared by their gradients.
std::vector<std::string> differences(const StepTrace& then, const StepTrace& now,
                                     const std::vector<Bucket>& buckets) {
  std::vector<std::string> all;
  if (now.frozen_units != then.frozen_units) all.push_back("frozen units");
  if (now.loss != then.loss) all.push_back("loss");
  if (now.grad_norm != then.grad_norm) all.push_back("gradient norm");
  for (std::size_t b = 0; b < buckets.size(); ++b)
    if (now.squares[b] != then.squares[b]) all.push_back("gradient of " + buckets[b].name);
  return all;
}

/// Runs, with all policies, a step that the other run has already done: a failure, such as a NaN
/// loss, also counts as a difference.
StepTrace step_as_before(Course& whole, std::int64_t step, const StepTrace& then) {
  try {
    return whole.step(step);
  } catch (const Error& error) {
    if (error.code() == Exit::bad_input) throw;
    throw_failure(fmt::format("in step {}, the run without the cache and the layout policy has "
                              "loss {}, but the run with them fails: {}",
                              step, then.loss, error.message()),
                  error.where(), "rerun without the cache or the layout policy to find the cause");
  }
}

}  // namespace

RunVerdict verify_run(Launch& launch, std::int64_t steps) {
  if (launch.config.elastic.batch == "grows")
    throw_input("with a batch that grows with the replicas, the two runs train different steps",
                launch.config.where("elastic.batch"), "elastic.batch = \"constant\"");
  Trainer& trainer = launch.trainer;
  RunConfig resolved = launch.config;
  resolved.run.steps = steps;

  trainer.start_over();
  launch.make_first_state();
  std::vector<StepTrace> expected;
  std::vector<std::string> digests;
  {
    Course still(launch, resolved, steps, /*whole=*/false);
    for (std::int64_t step = 1; step <= steps; ++step) expected.push_back(still.step(step));
    digests = bucket_sha256(trainer);
  }
  trainer.start_over();
  launch.make_first_state();
  Course whole(launch, resolved, steps, /*whole=*/true);
  RunVerdict verdict{.steps = steps};
  StepTrace before{.layout = short_form(trainer.layout())};
  // The buckets that have gradients; an assignment also contains the copies of tied tables.
  const std::vector<Bucket> buckets = make_buckets(trainer.job().model);
  for (std::int64_t step = 1; step <= steps && verdict.same(); ++step) {
    const StepTrace& then = expected[static_cast<std::size_t>(step - 1)];
    StepTrace trace = step_as_before(whole, step, then);
    verdict.freezes += trace.frozen_units != before.frozen_units;
    verdict.layouts += trace.layout != before.layout;
    verdict.differ = differences(then, trace, buckets);
    if (!verdict.same()) verdict.first_step = step, verdict.layout = trace.layout;
    before = std::move(trace);
  }
  verdict.cached = whole.cached();
  if (!verdict.same()) return verdict;
  const std::vector<std::string> now = bucket_sha256(trainer);
  for (std::size_t b = 0; b < now.size(); ++b)
    if (now[b] != digests.at(b))
      verdict.differ.push_back("weights of " + trainer.assignment().buckets[b].name);
  if (!verdict.same()) verdict.first_step = steps, verdict.layout = before.layout;
  return verdict;
}

}  // namespace concertina
