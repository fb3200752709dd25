// `concertina completion`: the scripts in completion/, and the candidates that they request.
// Invariant: candidates come from the parser's tree of subcommands and options and from the table
// of config keys, never from a second list.
#include <algorithm>
#include <filesystem>
#include <set>

#include "experiments/commands/command.h"
#include "experiments/commands/program.h"
#include "experiments/config/config_keys.h"
#include "experiments/machine/program.h"
#include "io/file.h"
#include "io/run_files.h"
#include "parallel/generate/schedule_registry.h"

namespace concertina {
namespace {

namespace stdfs = std::filesystem;

using Words = std::set<std::string>;

void add_names(const std::vector<std::string_view>& names, const std::string& before,
               Words& result) {
  for (const std::string_view name : names) result.insert(before + std::string(name));
}

/// Adds the paths that begin with `text`, each after the prefix `before`: directories, with a
/// trailing '/', and files that end with `extension`.
void add_paths(const std::string& text, const std::string& before, Words& result,
               const std::string& extension = "") {
  const std::size_t slash = text.rfind('/') + 1;
  const std::string folder = text.substr(0, slash), start = text.substr(slash);
  std::error_code error;
  for (stdfs::directory_iterator it(folder.empty() ? "." : folder, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with(start) || (start.empty() && name.front() == '.')) continue;
    std::error_code ignored;
    const bool directory = it->is_directory(ignored);
    if (directory || name.ends_with(extension))
      result.insert(before + folder + name + (directory ? "/" : ""));
  }
}

/// Adds the run directories in runs/, or in the directory that a partial path names.
void add_runs(const std::string& text, Words& result) {
  const std::size_t slash = text.rfind('/') + 1;
  const std::string folder = slash == 0 ? "runs/" : text.substr(0, slash);
  std::error_code error;
  for (stdfs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (is_file(it->path() / kConfigFile)) result.insert(folder + it->path().filename().string());
  }
}

/// Adds completions of `text`, the beginning of "table.key=VALUE".
void add_assignments(const std::string& text, Words& result) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) {
    for (const Key& key : config_keys()) result.insert(std::string(key.name) + "=");
    return;
  }
  const Key* key = find_key(text.substr(0, equals));
  if (key == nullptr) return;
  const std::string before = text.substr(0, equals + 1), value = text.substr(equals + 1);
  if (holds<bool>(*key)) add_names({"false", "true"}, before, result);
  if (!key->choices.empty()) add_names(key->choices, before, result);
  const bool text_value = holds<std::string>(*key) || holds<std::vector<std::string>>(*key);
  if (key->is_file != nullptr || (text_value && key->choices.empty()))
    add_paths(value, before, result);
}

/// Adds the values that an option's type_name() describes: it names a kind of value, or lists the
/// values in lower case.
void add_values(const CLI::Option& option, const std::string& text, Words& result) {
  for (const std::string& kind : CLI::detail::split(option.get_type_name(), '|')) {
    if (kind == "TABLE.KEY=VALUE") {
      add_assignments(text, result);
    } else if (kind == "RUN") {
      add_runs(text, result);
    } else if (kind == "NAME") {
      add_names(names_of(schedules()), "", result);
    } else if (kind == "@FILE") {
      if (text.starts_with('@')) add_paths(text.substr(1), "@", result, ".toml");
    } else if (kind == "FILE" || kind == "DIRECTORY") {
      add_paths(text, "", result);
    } else if (std::all_of(kind.begin(), kind.end(), [](char c) { return c >= 'a' && c <= 'z'; })) {
      result.insert(kind);
    }
  }
}

void add_options(const CLI::App& app, Words& result) {
  for (const CLI::Option* option : app.get_options())
    if (!option->get_group().empty())  // otherwise the help also hides it
      for (const std::string& name : option->get_lnames()) result.insert("--" + name);
}

const CLI::Option* option_of(const CLI::App& app, const std::string& word) {
  return word.starts_with("--") ? app.get_option_no_throw(word) : nullptr;
}

bool takes_value(const CLI::Option* option) {
  return option != nullptr && option->get_items_expected_max() > 0;
}

/// Returns sorted candidates for the last of `words`, which may be empty. The words before it are
/// complete and do not include the program's name. A candidate that ends with '=' or '/' is
/// incomplete.
std::vector<std::string> complete(const CLI::App& program, const std::vector<std::string>& words) {
  const std::string text = words.empty() ? "" : words.back();
  const CLI::App* app = &program;
  const CLI::Option* before = nullptr;  // the option whose value `text` is
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const CLI::App* sub = subcommand_of(*app, words[i]);
    if (sub == nullptr && default_subcommand(*app) != nullptr) app = default_subcommand(*app);
    before = takes_value(before) ? nullptr : option_of(*app, words[i]);
    if (sub != nullptr) app = sub;
  }
  Words result;
  if (takes_value(before)) add_values(*before, text, result);
  for (; app != nullptr && !takes_value(before); app = default_subcommand(*app)) {
    if (text.starts_with('-')) {
      add_options(*app, result);
      continue;
    }
    for (const CLI::App* sub : app->get_subcommands([](const CLI::App*) { return true; }))
      result.insert(sub->get_name());
    for (const CLI::Option* option : app->get_options())
      if (option->get_positional()) add_values(*option, text, result);
  }
  std::vector<std::string> fitting;
  for (const std::string& word : result)
    if (word.starts_with(text)) fitting.push_back(word);
  return fitting;
}

struct CompletionOptions : CommandOptions {
  std::string shell;
  std::vector<std::string> words;
};

int run_completion(const CompletionOptions& options) {
  if (options.shell != "words") {
    options.excludes("line", options.shell, true);
    const auto script = options.shell == "zsh" ? "_concertina" : "concertina.bash";
    print_once(read_file(shipped_folder("completion") / script, 1 << 16));
    return 0;
  }
  std::string text;
  for (const std::string& word : complete(*options.app->get_parent(), options.words))
    text += word + "\n";
  print_once(text);
  return 0;
}

void add_completion_options(CLI::App& app, CompletionOptions& options) {
  app.add_option("shell", options.shell,
                 "shell to print a script for, for example source <(concertina completion bash); "
                 "words: print candidates for the next word, for use by these scripts")
      ->type_name("bash|zsh|words")
      ->check(CLI::IsMember({"bash", "zsh", "words"}).description(""))
      ->required();
  app.add_option("line", options.words, "command line so far, after `words --`")->type_name("WORD");
}

}  // namespace

Command command_completion() {
  return make_command<CompletionOptions>("print a script that completes commands in bash or zsh",
                                         add_completion_options, run_completion);
}

}  // namespace concertina
