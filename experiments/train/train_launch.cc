#include "experiments/train/train_launch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <span>

#include "core/error.h"
#include "core/host_name.h"
#include "core/log.h"
#include "core/text/number_text.h"
#include "experiments/config/config.h"
#include "experiments/config/config_environment.h"
#include "experiments/config/config_toml.h"
#include "experiments/evaluate/generate.h"
#include "experiments/hugging_face/kept_files.h"
#include "experiments/hugging_face/model_from.h"
#include "experiments/machine/gather.h"
#include "experiments/machine/machine.h"
#include "experiments/machine/probe_file.h"
#include "experiments/run/run_checkpoint.h"
#include "experiments/run/run_identity.h"
#include "io/checkpoint/checkpoint_commit.h"
#include "io/datasets/split_files.h"
#include "io/file.h"
#include "io/run_files.h"
#include "parallel/comm/communicator.h"

namespace concertina {
namespace {

// The directories that all ranks must see, because each rank writes its part of a checkpoint
// itself. Invariant: every rank returns with the same result.

/// The ranks that do not see the directory: "ranks 1-2 on b; rank 3 on c"; empty if all do.
std::string blind_ranks(const std::vector<nlohmann::json>& all) {
  std::map<std::string, std::vector<int>> hosts;
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (!all[rank]["sees"].get<bool>())
      hosts[all[rank]["host"].get<std::string>()].push_back(static_cast<int>(rank));
  std::vector<std::string> texts;
  for (const auto& [host, ranks] : hosts)
    texts.push_back(fmt::format("{} on {}", ranks_text(ranks), host));
  return fmt::format("{}", fmt::join(texts, "; "));
}

/// `what`: a description of the directory that `key` names.
void require_seen(Communicator& world, const char* what, const char* key, const std::string& path) {
  std::optional<ProbeFile> made;
  const nlohmann::json probe = from_first(world, [&]() -> nlohmann::json {
    try {
      return made.emplace(path).place();
    } catch (const Error&) {  // creating the directory reports a better error
      return nullptr;
    }
  });
  if (probe.is_null()) return;
  const std::vector<nlohmann::json> all = gather_json(
      world, {{"sees", !find_probe(probe, path).empty()}, {"host", host_name()}, {"path", path}});
  const std::string blind = blind_ranks(all);
  if (blind.empty()) return;
  std::string where = all[0]["path"].get<std::string>() + " (rank 0)";
  const auto other =
      std::ranges::find_if(all, [&](const auto& one) { return one["path"] != all[0]["path"]; });
  if (other != all.end())
    where +=
        fmt::format(", {} (rank {})", (*other)["path"].get<std::string>(), other - all.begin());
  throw_input(
      fmt::format("{} of rank 0 (on {}) is not visible to {}", what,
                  all[0]["host"].get<std::string>(), blind),
      where,
      fmt::format("a {} on a file system shared by all nodes, and the same on all ranks", key));
}

/// Throws the same Error{bad_input} on every rank if a rank does not see rank 0's run directory or
/// checkpoint directory; the error names ranks and hosts. For a directory that does not exist yet,
/// checks its closest existing ancestor. Rank 0 creates a file there, and the others look for it
/// for a few seconds because network file systems cache missing files. If rank 0 cannot create one,
/// RunDirectory reports the reason. Collective.
void require_seen_by_all(Communicator& world, const RunConfig& config) {
  if (world.size() == 1) return;
  require_seen(world, "the run directory", "run.dir", run_directory(config));
  require_seen(world, "the checkpoint directory",
               config.checkpoint.dir.empty() ? "run.dir" : "checkpoint.dir",
               checkpoint_directory(config));
}

}  // namespace

std::uint64_t samples_of_run(const RunConfig& config) {
  return static_cast<std::uint64_t>(config.run.steps) *
         static_cast<std::uint64_t>(config.batch.global);
}

TrainLaunch::TrainLaunch(const RunConfig& asked, TrainMode mode, MpiEnvironment& mpi)
    : Launch(asked, mpi, "train"),
      directory(run_directory(asked)),
      checkpoints(checkpoint_directory(asked)),
      text_stamps(dataset->corpus().stamps()),
      lost(mpi.lost()),
      selection(config, fields_of(trainer.job().model), dataset),
      mode_(mode) {
  if (leads() && !mode.dry_run && dataset->splits() != nullptr)
    for (const std::string& line : split_lines(*dataset->splits(), dataset->classes()))
      log::info("{}", line);
  if (leads() && !mode.dry_run)
    for (const std::string& line : dataset->notes(samples_of_run(config))) log::info("{}", line);
  own_identity = identity(/*remember=*/!mode.dry_run);
  if (config.generate.tokens > 0)  // checked before training, not at its end
    prompt_tokens(trainer.job().model, *tokenizer, config.generate.prompt);
}

void TrainLaunch::open() {
  if (leads() && mode_.dry_run) RunDirectory::require_usable(config.run.dir, config.run.name);
  require_seen_by_all(world, config);
  if (leads()) {  // one process owns the run directory; the others need it to exist
    if (!mode_.dry_run) owned_.emplace(config.run.dir, config.run.name, config.checkpoint.dir);
    history = read_history(directory);
  }
  nlohmann::json stored;
  snapshots.emplace(world, trainer.hosts(), directory, config.checkpoint.snapshot_every,
                    !mode_.dry_run && !supervised_run().empty());
  const bool found = load(stored);
  if (leads()) found ? refuse_from_scratch() : start_from_scratch();
  if (!found) make_first_state();
  settle_lr_steps(stored);
  if (leads() && !mode_.dry_run) open_logs(stored);
  begin();
  if (config.run.device == "cpu") launch_watch.expect_loss(config.parallel.spare);
}

RunConfig TrainLaunch::asked() const {
  RunConfig asked = config;
  asked.parallel.spare += lost;
  return asked;
}

/// Loads the newest state of the run; returns false if there is none.
bool TrainLaunch::load(nlohmann::json& stored) {
  const std::optional<std::int64_t> found = load_newest(stored);
  done = found.value_or(0);
  progress = stored.contains(kProgress) ? stored[kProgress] : nlohmann::json::object();
  restore_selection();
  launch_watch.committed(done);
  return found.has_value();
}

void TrainLaunch::go_back() {
  const Watchdog::Patience patience(&watchdog, "going back to an earlier state");
  snapshots->finish();
  world.barrier();  // the snapshots of all ranks have their final names
  trainer.start_over();
  selection = Selection(config, fields_of(trainer.job().model), dataset);
  nlohmann::json stored;
  if (!load(stored)) make_first_state();
  if (!leads()) return;
  monitor.reset();  // closes the files
  monitor = std::make_unique<Monitor>(config, directory, done);
  log::warn("resuming from step {}", done);
  fault["to_step"] = done;
  monitor->event(done, EventKind::fault, fault);
}

/// Loads the newest state of the run: a snapshot in memory if it is later than all checkpoints. A
/// snapshot of a step that is missing from the log was abandoned: another launch, on other hosts,
/// has resumed from an earlier step.
std::optional<std::int64_t> TrainLaunch::load_newest(nlohmann::json& stored) {
  const nlohmann::json steps = from_first(world, [&]() -> nlohmann::json {
    const std::optional<Commit> newest = newest_commit(checkpoints);
    return {newest ? newest->step : 0, last_step_in(run_file(directory, kMetricsFile))};
  });
  const std::int64_t committed = steps[0], logged = steps[1];
  const std::optional<std::int64_t> found =
      load_snapshot(trainer, snapshots->run(), committed, logged, own_identity, &stored);
  if (!found) return load_checkpoint(trainer, checkpoints, own_identity, &stored);
  if (leads())
    log::info("resuming from the snapshot of step {}; the newest checkpoint is from step {}",
              *found, committed);
  return found;
}

void TrainLaunch::ended(std::int64_t step, int exit_code) {
  // The final state is in a checkpoint, or there is a result.
  if (snapshots && (exit_code == 0 || exit_code == static_cast<int>(Exit::preempted)))
    snapshots->remove();
  if (record_) record_->end(step, exit_code);
}

/// If a user has removed the best commit, the search for the best starts again.
void TrainLaunch::restore_selection() {
  selection.restore(progress.value(kBestKey, nlohmann::json()));
  const bool lacks = from_first(world, [&]() -> nlohmann::json {
    if (!selection.keeps() || !selection.best()) return false;
    return !exists_at(checkpoints + "/" + commit_name(selection.best()->step));
  });
  if (!lacks) return;
  if (leads())
    log::warn("the best checkpoint by {}, of step {}, is no longer in {}", selection.metric(),
              selection.best()->step, checkpoints);
  selection.forget();
}

/// Called on rank 0 if no commit was found. A supervised launch lost before its first commit has
/// left only logs. If there was a commit before, a user must find out what happened to it.
void TrainLaunch::start_from_scratch() {
  const bool nothing_lost = !supervised_run().empty() && !has_committed(directory);
  if (!mode_.from_scratch && !(nothing_lost && history.steps > 0))
    return require_no_steps(history, config);
  if (!mode_.dry_run) move_aside(directory);
  history = {};
}

void TrainLaunch::refuse_from_scratch() const {
  if (!mode_.from_scratch) return;
  throw_input(fmt::format("--from-scratch is given, but there are checkpoints up to step {}", done),
              checkpoints, "another run.name, or move these checkpoints away");
}

/// Sets the step at which the learning-rate schedule ends: the config's, otherwise the one from the
/// start of the run. Rank 0 reads the run directory and broadcasts it.
void TrainLaunch::settle_lr_steps(const nlohmann::json& stored) {
  std::int64_t steps = lr_steps(config);
  if (leads() && config.lr.steps == 0 && done > 0) {
    if (stored.contains("lr.steps"))
      steps = std::stoll(stored["lr.steps"].get<std::string>());
    else if (history.config)  // written by a version without this key
      steps = lr_steps(*history.config);
  }
  world.broadcast(std::as_writable_bytes(std::span(&steps, 1)), 0).wait();
  trainer.set_lr_steps(steps);
  own_identity["lr.steps"] = std::to_string(steps);
  config.lr.steps = steps;
  if (leads() && steps != config.run.steps && !mode_.dry_run)
    log::info("the learning-rate schedule ends at step {} (lr.steps), but the run ends at step {}",
              steps, config.run.steps);
}

/// Called on rank 0: writes the config, the log and the record of this launch.
void TrainLaunch::open_logs(const nlohmann::json& stored) {
  const nlohmann::ordered_json schedule = keep_schedule(config, directory);
  log_differences(stored, trains());
  // Written before any other file: it makes the directory a run.
  if (trains() || !history.config) owned_->write_config(write_config(with_absolute_paths(asked())));
  if (stored.empty()) keep_model_from(config);  // the first launch
  keep_for_export(config, dataset->classes());
  monitor = std::make_unique<Monitor>(config, directory, done);
  log_start();
  nlohmann::ordered_json facts = launch_facts(*this, done);
  facts["schedule"] = schedule;
  record_.emplace(run_file(directory, kLaunchesFile), std::move(facts));
  monitor->event(
      done, EventKind::start,
      {{"layout", short_form(trainer.layout())}, {"ranks", world.size()}, {"resumed", done > 0}});
}

/// Logs all differences from the earlier launches that the run tolerates.
void TrainLaunch::log_differences(const nlohmann::json& stored, bool trains) const {
  for (const auto& [key, now] : own_identity.items())
    if (may_change(key) && stored.contains(key) && stored[key] != now)
      log::info("{}: trained with {} so far, continuing with {}", key,
                stored[key].get<std::string>(), now.get<std::string>());
  if (stored.contains(kProgress) && stored[kProgress].contains(kUnread) &&
      stored.value(kWholeText, "") != own_identity.value(kWholeText, ""))
    log::warn(
        "the data differs from that of the first {}: it is assumed to have been repaired, since "
        "an error in {} ended the run",
        counted(done, "step"), stored[kProgress][kUnread].value("where", ""));
  if (!history.config) return;
  const std::vector<std::string> changes = changed_keys(*history.config, asked());
  if (changes.empty()) return;
  if (trains)
    log::info("resuming with changed keys: {}", fmt::join(changes, ", "));
  else
    log::warn("nothing is left to train, so config.toml is unchanged; this launch has {}",
              fmt::join(changes, ", "));
}

void TrainLaunch::log_start() const {
  for (const auto& [variable, value] : from_environment(config))
    log::info("from the environment: {} = {}", variable, value);
  const int frozen = config.freeze.units;
  const auto stages = std::ssize(trainer.layout().pipelines[0].stages);
  log::info("{}: {}, {} per pipeline, {}, {}{}", directory, short_form(trainer.layout()),
            counted(stages, "stage"), config.numerics.compute, backend->describe(),
            frozen > 0 ? ", frozen: " + frozen_names(trainer.job().model, frozen) : "");
  if (const std::string trained = trained_text(trainer.job().model, frozen); !trained.empty())
    log::info("{}", trained);
  if (backend->emulates(trainer.job().model.activation))
    log::warn("this processor has no {} matrix instructions; emulation is slower than fp32",
              config.numerics.compute);
  if (done > 0) log::info("resuming after step {}", done);
  if (done > config.run.steps)
    log::warn("the checkpoint is at step {}, but run.steps is {}: nothing to train", done,
              config.run.steps);
  else if (done < config.run.steps && !trains())
    log::warn("{}: nothing to train (run.patience = {})", ending(selection), config.run.patience);
}

void go_on_in_place(RunConfig& config, MpiEnvironment& mpi) {
  const bool has_state = newest_commit(checkpoint_directory(config)) ||
                         newest_whole(snapshot_parts(snapshot_run(run_directory(config))));
  const LocalState local = mpi.local_state();
  const bool may = has_state && std::ssize(local.dead) <= config.parallel.spare;
  if (local.speaks && !local.dead.empty()) report_death(local.dead, mpi.world().rank(), may);
  if (!may) throw death_of(local.dead, -1);
  config.parallel.spare -= mpi.go_on();
  if (config.parallel.spare < 0)
    throw_failure("more ranks have died than there were spares", run_directory(config));
  if (mpi.world().rank() == 0) report_in_place(mpi.lost());
}

}  // namespace concertina
