// `concertina quickstart`: a first run with the installed recipe and text.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/log.h"
#include "experiments/commands/supervised_options.h"
#include "experiments/machine/program.h"
#include "io/file.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;

constexpr int kQuickstartRanks = 4;  // two replicas of two stages each
constexpr const char* kNext = R"(
To continue, in this directory:
  {0} report {1} --serve      # shows where the time went, in a browser
  {0} run --ranks 2 -- train {1} run.steps={2} parallel.dp=1      # resumes with another layout
  {0} generate {1} generate.prompt='In the beginning '
)";

struct QuickstartCommand : CommandOptions {
  std::vector<std::string> words;  // of `train`
};

/// The arguments of `train`.
std::vector<std::string> quickstart_words(const QuickstartCommand& options) {
  const fs::path recipes = shipped_folder("recipes");
  std::vector<std::string> words{"train", "@" + (recipes / "quickstart.toml").string()};
  fs::path text = recipes / "../quickstart.txt";
  if (!exists_at(text))  // in a build from source, quickstart.sh writes it
    text = fs::path(own_program()).parent_path() / "../data/bible.txt";
  const bool named = std::ranges::any_of(
      options.words, [](const std::string& word) { return word.starts_with("data."); });
  if (!named && !exists_at(text)) {
    log::info("training on the guide, since there is no {}", text.lexically_normal().string());
    text = recipes / "../guide/*.md";
  }
  if (!named) words.push_back("data.text=" + text.lexically_normal().string());
  words.insert(words.end(), options.words.begin(), options.words.end());
  return words;
}

/// The command that starts this program in a shell.
std::string as_called() {
  std::error_code unknown;
  const std::string own = own_program();
  const fs::path found = find_program("concertina");
  return !found.empty() && fs::equivalent(found, own, unknown) ? "concertina" : shell_word(own);
}

int quickstart(const QuickstartCommand& options) {
  SupervisedOptions run;
  run.app = options.app;
  run.ranks = kQuickstartRanks;
  run.words = quickstart_words(options);
  const SupervisedTraining training = supervised_training(run, "quickstart");
  const SuperviseSummary summary = run_supervised(training, /*json=*/false);
  if (summary.code == 0)
    print_once(fmt::format(kNext, as_called(), shell_word(run_directory(training.config)),
                           training.config.run.steps + 50));
  return summary.code;
}

void add_quickstart_options(CLI::App& app, QuickstartCommand& options) {
  app.add_option(
         "words", options.words,
         "arguments for `train`: another text, number of steps or layout, such as run.steps=2000")
      ->type_name("TABLE.KEY=VALUE");
}

}  // namespace

Command command_quickstart() {
  return make_command<QuickstartCommand>(
      "train a small GPT on the King James Bible with 4 local ranks within a minute",
      add_quickstart_options, quickstart);
}

}  // namespace concertina
