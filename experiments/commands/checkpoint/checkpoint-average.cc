// `concertina checkpoint average`: creates a run from the mean of several checkpoints' weights.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "experiments/commands/checkpoint/new_run.h"
#include "experiments/commands/command.h"
#include "experiments/hugging_face/model_from.h"
#include "io/checkpoint/checkpoint_commit.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;

struct AverageOptions : CommandOptions {
  std::vector<std::string> sources;
  std::string out;
  int last = 1;
};

/// The checkpoints to average: of each source, itself or its newest `last`.
std::vector<std::string> commits_of(const AverageOptions& options) {
  std::vector<std::string> commits;
  for (const std::string& source : options.sources) {
    const std::string newest = stored_commit(source);
    if (options.last == 1) {
      commits.push_back(newest);
      continue;
    }
    const std::string directory = fs::path(newest).parent_path();
    const std::vector<Commit> all = list_commits(directory);
    if (fs::equivalent(source, newest) || std::cmp_less(all.size(), options.last))
      throw_input(
          fmt::format("--last {}, but there are {} here", options.last,
                      fs::equivalent(source, newest) ? "no other checkpoints"
                                                     : fmt::format("{} checkpoints", all.size())),
          source, "a run that keeps as many (checkpoint.keep), or a smaller --last");
    for (const Commit& commit : std::span(all).last(static_cast<std::size_t>(options.last)))
      commits.push_back(commit.path);
  }
  if (commits.size() < 2)
    throw_input("one checkpoint has no other to be averaged with", options.sources[0],
                "several runs or checkpoints, or --last N");
  for (auto one = commits.begin(); one != commits.end(); ++one)
    if (std::find(commits.begin(), one, *one) != one)
      throw_input("this checkpoint is given twice", *one, "each checkpoint once");
  return commits;
}

/// Creates the run `out` with the first source's config and the averaged weights. Collective.
int run_checkpoint_average(const AverageOptions& options, MpiEnvironment& mpi) {
  const std::vector<std::string> commits = commits_of(options);
  const fs::path out = fs::absolute(options.out).lexically_normal();
  RunConfig config = require_stored_run(options.sources[0]).config;
  config.run.dir = out.parent_path(), config.run.name = out.filename();
  config.checkpoint.dir.clear();
  config.model.from = commits[0], config.model.head = "kept";
  const std::unique_ptr<Launch> launch = open_launch(config, mpi, "checkpoint average");
  launch->trainer.initialize();
  start_from_mean(launch->trainer, commits, launch->config);
  launch->begin();
  save_new_run(*launch, options.out);
  if (launch->leads())
    print_once(fmt::format("{}: mean of\n  {}\n", out.string(), fmt::join(commits, "\n  ")));
  return 0;
}

void add_average_options(CLI::App& app, AverageOptions& options) {
  app.add_option("source", options.sources, "runs or checkpoints; the first gives the config")
      ->type_name("RUN|STEP")
      ->required();
  app.add_option("--out", options.out, "run directory to create")
      ->type_name("DIRECTORY")
      ->required();
  add_default_option(app, "--last", options.last, "newest checkpoints to average of each run")
      ->type_name("N")
      ->check(whole_number(1, 1000));
}

}  // namespace

Command command_checkpoint_average() {
  return make_command<AverageOptions>("create a run from the mean weights of several checkpoints",
                                      add_average_options, run_checkpoint_average);
}

}  // namespace concertina
