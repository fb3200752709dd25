#include "experiments/launch/launch.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "core/clock.h"
#include "core/cpu/isa.h"
#include "core/error.h"
#include "core/index.h"
#include "core/log.h"
#include "core/text/number_text.h"
#include "core/version.h"
#include "experiments/config/config_environment.h"
#include "experiments/config/schedule_file.h"
#include "experiments/hugging_face/model_from.h"
#include "experiments/machine/machine.h"
#include "experiments/machine/output.h"
#include "experiments/machine/program.h"
#include "experiments/machine/stall_report.h"
#include "experiments/predict/predict_memory.h"
#include "experiments/run/agreement.h"
#include "experiments/run/devices.h"
#include "experiments/run/planning.h"
#include "experiments/run/run_identity.h"
#include "experiments/run/text_identity.h"
#include "io/checkpoint/checkpoint_shard.h"
#include "io/checkpoint/run_directory.h"
#include "io/datasets/masked_tokens.h"
#include "io/datasets/views.h"
#include "io/file.h"
#include "io/log_lines.h"
#include "io/run_files.h"
#include "io/sha256.h"
#include "models/task.h"
#include "parallel/plan/plan_index.h"

namespace concertina {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson hosts_json(const Launch& launch) {
  std::map<std::string, std::vector<int>> ranks_of;
  for (std::size_t rank = 0; rank < launch.cores.size(); ++rank)
    ranks_of[launch.cores[rank].host].push_back(static_cast<int>(rank));
  OrderedJson hosts = OrderedJson::array();
  for (const auto& [host, ranks] : ranks_of) {
    const RankCores& first = launch.cores[static_cast<std::size_t>(ranks[0])];
    std::vector<int> threads;
    for (const int rank : ranks)
      threads.push_back(launch.thread_counts[static_cast<std::size_t>(rank)]);
    hosts.push_back({{"host", host},
                     {"processor", first.processor},
                     {"load", first.load},
                     {"ranks", to_ranges(ranks)},
                     {"threads", threads}});
  }
  return hosts;
}

std::vector<int> choose_threads(const RunConfig& config, const std::vector<RankCores>& cores,
                                int rank) {
  std::vector<int> threads;
  for (int r = 0; r < static_cast<int>(cores.size()); ++r)
    threads.push_back(threads_of(config.run.threads, cores, r));
  if (rank == 0) {
    for (const auto& [host, text] : thread_warnings(cores, threads)) log::warn("{}", text);
    const std::string unequal = processor_warning(cores);
    if (!unequal.empty() && config.run.device == "cpu") log::warn("{}", unequal);
  }
  return threads;
}

/// Identifies the tokenizer and the teacher by their content, because results depend on that and
/// not on their paths.
RunConfig with_content(RunConfig config, const Tokenizer& tokenizer,
                       const Teacher* teacher = nullptr) {
  if (teacher != nullptr) config.distill.teacher = teacher->sha256();
  if (config.data.tokenizer != kBytesTokenizer) config.data.tokenizer = tokenizer.fingerprint();
  return config;
}

std::vector<RankClaim> claims(const RunConfig& config, const std::string& command,
                              const Tokenizer& tokenizer, const Dataset* dataset,
                              const std::string& data_fingerprint) {
  std::vector<RankClaim> all =
      claims_of(with_content(config, tokenizer), command, data_fingerprint);
  if (dataset == nullptr || dataset->classes().empty()) return all;
  constexpr std::size_t kShown = 200;
  const std::string names = fmt::format("{}", fmt::join(dataset->classes(), ", "));
  all.push_back({"the names of classes", names.size() <= kShown ? names : sha256_hex(names)});
  return all;
}

RunConfig with_isa(RunConfig config, const std::string& isa) {
  if (!isa.empty()) config.numerics.isa = isa;
  return config;
}

std::shared_ptr<const Dataset> open_data(const RunConfig& config,
                                         const std::shared_ptr<const Tokenizer>& tokenizer,
                                         const std::shared_ptr<Teacher>& teacher) {
  if (data_files(config).empty()) return nullptr;
  // Masking adds the special tokens to the vocabulary: a mask is a token as well.
  const bool masks = task_of(config.model.family, config.model.task).masks;
  const std::shared_ptr<const Dataset> dataset =
      open_sources(config, tokenizer, [&](std::shared_ptr<const Dataset> source) {
        if (masks) source = masked_tokens(std::move(source), tokenizer);
        source = with_views(std::move(source), static_cast<std::uint64_t>(config.data.views));
        return teacher == nullptr ? source : taught(std::move(source), config, teacher);
      });
  if (config.model.vocab < dataset->vocabulary())
    throw_input(fmt::format("the vocabulary has {} entries, but the tokenizer '{}' has {} tokens",
                            config.model.vocab, config.data.tokenizer, dataset->vocabulary()),
                config.where("model.vocab"),
                fmt::format("model.vocab = {}", dataset->vocabulary()));
  auto classes = static_cast<std::int64_t>(dataset->classes().size());
  const int scores = field_index(*dataset, "scores");
  if (scores >= 0) classes = dataset->fields()[static_cast<std::size_t>(scores)].elements();
  const bool declared =
      scores >= 0 || field_index(*dataset, "label") >= 0 || field_index(*dataset, "tags") >= 0;
  if (declared && scores < 0 && classes == 1)
    throw_input(fmt::format("all samples belong to class '{}': there is nothing to learn",
                            dataset->classes()[0]),
                config.where(files_key(config)), "data with at least two classes");
  if (declared && classes > 0 && classes != config.model.classes)
    throw_input(fmt::format("the model has {1} {0}, but the data has {2}",
                            dataset->classes().empty() ? "scores" : "classes", config.model.classes,
                            classes),
                config.where("model.classes"), fmt::format("model.classes = {}", classes));
  return dataset;
}

/// Sets run.steps to the first step after which run.epochs epochs are complete. If the run selects
/// its best model or may stop early, it evaluates after each epoch unless eval.every is set.
RunConfig with_steps(RunConfig config, const std::shared_ptr<const Dataset>& dataset) {
  if (config.run.epochs == 0 || dataset == nullptr) return config;
  const TrainingSource source(dataset, data_seed(config), config.batch.global);
  const std::int64_t steps = source.first_step(static_cast<std::uint64_t>(config.run.epochs));
  if (config.origins.contains("run.steps") && config.run.steps != steps && config.run.steps > 0)
    throw_input(fmt::format("run.steps = {}, but run.epochs = {} takes {} with this data",
                            config.run.steps, config.run.epochs, counted(steps, "step")),
                config.where("run.steps"), "run.epochs = 0, or run.steps = 0");
  config.run.steps = steps;
  if (config.eval.every == 0 && (!config.checkpoint.best.empty() || config.run.patience > 0))
    config.eval.every = source.first_step(1);
  validate(config);
  return config;
}

void require_fields(const Dataset& dataset, const ModelSpec& model) {
  const std::vector<Field> fields = fields_of(model);
  std::vector<int> places(fields.size());
  find_fields(dataset.fields(), fields, places);
}

CacheRoom room_of_cache(const RunConfig& config, const ModelSpec& model,
                        const std::shared_ptr<const Dataset>& dataset) {
  if (!uses_cache(config) || dataset == nullptr) return {};
  const TrainingSource source(dataset, data_seed(config), config.batch.global);
  return cache_room(config, model, source.samples_of_views());
}

/// Whether the run's schedule file, as it is now, can be executed by this many ranks.
bool file_fits(const std::string& path, const RunConfig& config, int world) {
  const Layout& layout = config.parallel.layout;
  if (!is_file(path)) return false;
  if (!layout.pipelines.empty()) return rank_count(layout) == world;
  return fitting_replicas(read_schedule_file(path), world, config.batch.microbatches) > 0;
}

}  // namespace

OrderedJson launch_facts(const Launch& launch, std::int64_t from) {
  const RunConfig& config = launch.config;
  OrderedJson facts = {{"start", utc_text()},
                       {"end", nullptr},
                       {"exit", nullptr},
                       {"version", program_version().number},
                       {"commit", program_version().commit},
                       {"program", program_build()},
                       {"command", command_line()},
                       {"ranks", launch.world.size()},
                       {"hosts", hosts_json(launch)},
                       {"device", config.run.device},
                       {"layout", short_form(launch.trainer.layout())},
                       {"schedule", config.parallel.schedule},
                       {"compute", config.numerics.compute},
                       {"seed", config.run.seed},
                       {"model_seed", model_seed(config)},
                       {"data_seed", data_seed(config)},
                       {"from", from},
                       {"to", nullptr}};
  facts["libraries"] = {{"mpi", mpi_library()}, {"hdf5", hdf5_version()}};
  for (const auto& [variable, value] : from_environment(config))
    facts["environment"][variable] = value;
  if (!launch.data_fingerprint.empty()) facts["text"] = launch.data_fingerprint;
  if (!launch.isa.empty()) facts.update({{"isa", launch.isa}, {"onednn", cpu::onednn_version()}});
  return facts;
}

LaunchRecord::LaunchRecord(std::string path, OrderedJson facts)
    : path_(std::move(path)), line_(std::move(facts)) {
  append_line(path_, line_);
}

void LaunchRecord::end(std::int64_t to, int exit_code) {
  const std::string before = json_line(line_);
  line_["end"] = utc_text();
  line_["exit"] = exit_code;
  line_["to"] = to;
  try {
    std::string all = read_file(path_, kMostLogBytes);
    const std::size_t at = all.rfind(before);
    if (at == std::string::npos) return;  // edited by a user
    all.replace(at, before.size(), json_line(line_));
    atomic_replace(path_, all);
  } catch (const Error& error) {
    log::warn("cannot record the end of this launch: {}: {}", error.message(), error.where());
  }
}

OrderedJson keep_schedule(const RunConfig& config, const std::string& directory) {
  const std::string& path = config.parallel.schedule;
  if (!is_schedule_file(path)) return path;
  const std::string content = read_file(path, kMostScheduleBytes);
  const std::string hash = sha256_hex(content);
  const std::string copy = fmt::format("schedule-{}.csv", hash.substr(0, 12));
  if (!std::filesystem::exists(directory + "/" + copy))
    atomic_replace(directory + "/" + copy, content);
  return {{"file", path}, {"copy", copy}, {"sha256", hash}};
}

Launch::Launch(const RunConfig& given, MpiEnvironment& mpi, const std::string& command)
    : world(mpi.world()),
      watchdog(world.rank(),
               {.limit = Watchdog::Seconds(given.run.watchdog),
                .ends_by_pace = !supervised_run().empty(),
                .log = mpi.operations(),
                .host = mpi.operations_of_host(),
                .on_stall =
                    [this, events = command == "train" ? run_file(run_directory(given), kEventsFile)
                                                       : ""](Stall stall) {
                      if (stall.waits_for >= 0) stall.peer_host = cores[at(stall.waits_for)].host;
                      report_stall(stall, events);
                    }},
               [rank = world.rank()](const std::string& report) { end_hung_launch(rank, report); }),
      launch_watch(mpi),
      starting(std::in_place, &watchdog, "starting"),
      cores(gather_cores(mpi)),
      thread_counts(choose_threads(given, cores, world.rank())),
      threads(thread_counts[at(world.rank())]),
      tokenizer(tokenizer_of(given)),
      teacher(distills(given) ? std::make_shared<Teacher>() : nullptr),
      dataset(open_data(given, tokenizer, teacher)),
      config(command == "train" || command == "verify" ? with_steps(given, dataset) : given),
      data_fingerprint(dataset == nullptr ? "" : dataset->corpus().fingerprint()),
      isa(agree(world, given, claims(given, command, *tokenizer, dataset.get(), data_fingerprint))),
      backend(make_backend(with_isa(given, isa), threads, world)),
      trainer(config, *backend, world, &watchdog,
              fmt::format("mpirun -n {{}} concertina {} ...", command)),
      cache(command == "train" ? room_of_cache(given, trainer.job().model, dataset) : CacheRoom{}) {
  if (dataset != nullptr) require_fields(*dataset, trainer.job().model);
  require_memory(trainer, threads, cache.memory_bytes());
  trainer.start();
  if (teacher != nullptr && dataset != nullptr)
    teacher->start(config, *dataset, *tokenizer, threads, world);
}

void Launch::make_first_state() {
  trainer.initialize();
  if (!config.model.from.empty()) start_from(trainer, config);
}

void Launch::begin() {
  watchdog.at("waiting for all ranks to start");
  world.barrier();
  starting.reset();
}

std::vector<Continuation> Launch::generate(std::span<const Prompt> prompts,
                                           const std::function<bool()>& stop,
                                           const SeeContinuation& see) {
  const std::unique_ptr<Backend> decoding = make_backend(with_isa(config, isa), threads, world);
  backend->synchronize();
  return concertina::generate({config, trainer.assignment(), trainer.state().weights(), world,
                               trainer.tensors(), &watchdog},
                              trainer.job().model, *decoding, *tokenizer, prompts, stop, see);
}

nlohmann::json Launch::identity(bool remember) {
  if (dataset == nullptr) return numerics_identity(with_content(config, *tokenizer), "");
  // A directory that is not a run yet stays unchanged until the launch is accepted.
  const bool keep = remember && RunDirectory::exists(config.run.dir, config.run.name);
  const TextIdentity text =
      text_identity(world, *dataset, run_directory(config), keep, [this] { watchdog.beat(); });
  nlohmann::json identity =
      numerics_identity(with_content(config, *tokenizer, teacher.get()), text.sampled);
  identity[kWholeText] = text.whole;
  if (!isa.empty()) {
    identity["numerics.isa"] = isa;
    identity["oneDNN"] = cpu::onednn_version();
  }
  return identity;
}

namespace {

/// Clears the layout of `config` and returns the reason if it cannot be used with `world` ranks;
/// returns an empty text if it can.
std::string drop_unfit_layout(RunConfig& config, int world) {
  ParallelSection& parallel = config.parallel;
  if (const std::string path = parallel.schedule; is_schedule_file(path)) {
    if (file_fits(path, config, world)) return "";
    parallel = {};
    return fmt::format("{} is not a schedule for {}", path, counted(world, "rank"));
  }
  std::set<int> ranks;
  for (const Pipeline& pipeline : parallel.layout.pipelines)
    for (const StagePlacement& stage : pipeline.stages) ranks.insert(stage.rank);
  const int product = std::max(1, parallel.pp) * std::max(1, parallel.dp);
  const bool given = parallel.pp > 0 && parallel.dp > 0;
  if (ranks.empty() ? (given ? product == world : world % product == 0)
                    : static_cast<int>(ranks.size()) == world)
    return "";
  std::string own = "for " + counted(std::ssize(ranks), "rank");
  if (ranks.empty())
    own = fmt::format("{}{}{}", parallel.pp > 0 ? fmt::format("pp={}", parallel.pp) : "",
                      given ? " " : "", parallel.dp > 0 ? fmt::format("dp={}", parallel.dp) : "");
  parallel.pp = parallel.dp = 0;
  parallel.layout = {};
  return fmt::format("the run's own layout ({}) does not fit {}", own, counted(world, "rank"));
}

}  // namespace

std::unique_ptr<Launch> open_launch(RunConfig config, MpiEnvironment& mpi,
                                    const std::string& command) {
  const std::string unfit = drop_unfit_layout(config, mpi.world().size());
  config.distill = {};
  auto launch = std::make_unique<Launch>(config, mpi, command);
  if (!unfit.empty()) log::info("{}: using {}", unfit, short_form(launch->trainer.layout()));
  return launch;
}

}  // namespace concertina
