#include "experiments/commands/python_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <span>

#include "core/error.h"
#include "experiments/machine/program.h"
#include "io/file.h"
#include "io/process.h"

namespace concertina {
namespace {

namespace stdfs = std::filesystem;

/// Returns "study-table" for `concertina study table`.
std::string module_name(const CLI::App& app) {
  const CLI::App* const parent = app.get_parent();
  if (parent->get_parent() == nullptr) return app.get_name();
  return module_name(*parent) + "-" + app.get_name();
}

/// The interpreter of the environment that this program is installed in, or the one on PATH.
std::string interpreter() {
  const stdfs::path nearby = stdfs::path(own_program()).parent_path() / "python3";
  return ::access(nearby.c_str(), X_OK) == 0 ? nearby.string() : "python3";
}

std::vector<std::string> option_words(const CLI::App& app,
                                      const std::map<std::string, std::string>& resolved) {
  std::vector<std::string> words;
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_single_name();
    if (resolved.contains(name)) continue;
    for (const std::string& value : option->results())
      words.push_back(fmt::format("--{}={}", name, value));
    if (option->empty() && !option->get_default_str().empty())
      words.push_back(fmt::format("--{}={}", name, option->get_default_str()));
  }
  for (const auto& [name, value] : resolved) words.push_back(fmt::format("--{}={}", name, value));
  return words;
}

/// The command line that runs the module `name`, without its options.
std::vector<std::string> module_words(const std::string& python, const std::string& name) {
  const stdfs::path package = shipped_folder("python");
  if (package.empty())
    throw_input("the Python package that implements this command is missing", own_program(),
                "install share/concertina with the program");
  return {python, package / "concertina", "--parsed", name};
}

[[noreturn]] void refuse_without_python() {
  throw_input("this command requires python3, which is not installed", "PATH",
              "apt-get install python3");
}

/// Runs python3 with these arguments and `data` as its input, and waits for it.
int run_module(const std::vector<std::string>& words, const nlohmann::ordered_json& data) {
  if (find_program(words[0]).empty()) refuse_without_python();
  File input = memory_file("the input of python3");
  const std::string text = json_line(data);
  input.write_at(0, std::as_bytes(std::span(text)));
  Process python({.words = words,
                  .environment = {{"CONCERTINA", own_program()}},
                  .in = input.descriptor(),
                  .out = STDOUT_FILENO,
                  .terminate_with_parent = true});
  std::optional<int> code;
  while (!code) code = python.wait(60);
  return *code;
}

}  // namespace

CLI::Option* add_text_option(CLI::App& app, const std::string& name, const char* type,
                             const std::string& help) {
  return app.add_option(name, help)->type_name(type);
}

CLI::Option* add_list_option(CLI::App& app, const std::string& name, const char* type,
                             const std::string& help) {
  return add_text_option(app, name, type, help)
      ->expected(1, CLI::detail::expected_max_vector_size)
      ->delimiter(',')
      ->allow_extra_args(false);
}

CLI::Option* add_repeated_option(CLI::App& app, const std::string& name, const char* type,
                                 const std::string& help) {
  return add_text_option(app, name, type, help)
      ->expected(1, CLI::detail::expected_max_vector_size)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void add_passed_flag(CLI::App& app, const std::string& name, const std::string& help) {
  app.add_flag(name, help);
}

int run_in_python(const CLI::App& app, const std::map<std::string, std::string>& resolved) {
  const std::string name = module_name(app), python = interpreter();
  std::vector<std::string> words = module_words(python, name);
  for (std::string& word : option_words(app, resolved)) words.push_back(std::move(word));
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::setenv("CONCERTINA", own_program().c_str(), 1);
  flush_output();
  ::execvp(python.c_str(), arguments.data());
  if (errno != ENOENT) throw_errno("exec", python, "another python3 on PATH");
  refuse_without_python();
}

int run_passed(const CommandOptions& options) {
  const CLI::App& app = *options.app;
  if (app.get_option_no_throw("--alpha") != nullptr)
    options.needs("--alpha", "--equivalent", options.given("--equivalent"));
  if (const CLI::Option* const output = app.get_option_no_throw("--out"); output != nullptr) {
    const std::string path =
        output->empty() ? output->get_default_str() : output->as<std::string>();
    if (!path.empty()) require_output(path, "--out");
  }
  return run_in_python(app);
}

int call_python(const std::string& name, const std::map<std::string, std::string>& options,
                const nlohmann::ordered_json& data) {
  std::vector<std::string> words = module_words(interpreter(), name);
  for (const auto& [option, value] : options)
    words.push_back(fmt::format("--{}={}", option, value));
  return run_module(words, data);
}

int call_python(const CLI::App& app, const nlohmann::ordered_json& data,
                const std::map<std::string, std::string>& more) {
  const std::string name = module_name(app);
  std::vector<std::string> words = module_words(interpreter(), name);
  for (std::string& word : option_words(app, more)) words.push_back(std::move(word));
  return run_module(words, data);
}

}  // namespace concertina
