#include "experiments/launcher/launcher.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string_view>

#include "core/error.h"
#include "experiments/machine/program.h"
#include "io/file.h"

namespace concertina {
namespace {

/// Whether `name`, in the braces that open at `open`, can only be meant as a placeholder.
bool is_placeholder(const std::string& word, std::size_t open, const std::string& name) {
  const bool letters = !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  });
  return letters && (open == 0 || word[open - 1] != '$');
}

/// Returns `word` with each {name} replaced.
std::string filled(const std::string& word, const std::map<std::string, std::string>& values,
                   const std::string& where) {
  std::string text;
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t open = word.find('{', at);
    const std::size_t close = open == std::string::npos ? open : word.find('}', open);
    if (close == std::string::npos) return text + word.substr(at);
    const std::string name = word.substr(open + 1, close - open - 1);
    const auto found = values.find(name);
    if (found == values.end() && is_placeholder(word, open, name))
      throw_input(fmt::format("unknown placeholder {{{}}} in the launcher command", name), where,
                  name == "hosts"
                      ? "--hosts node1:4,node2:4"
                      : fmt::format("{{ranks}}, {{program}} and {{args}}; for shell "
                                    "braces, write {{ {} }}",
                                    name));
    // Keeps braces that belong to the shell.
    text += word.substr(at, open - at) +
            (found == values.end() ? word.substr(open, close - open + 1) : found->second);
    at = close + 1;
  }
  return text;
}

}  // namespace

std::map<std::string, std::string> launch_environment() {
  std::map<std::string, std::string> variables = {
      {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
      {"OMPI_MCA_mpi_yield_when_idle", "1"},
      {"OMPI_MCA_hwloc_base_binding_policy", "none"},
      {"OMPI_MCA_oob_tcp_keepalive_time", "2"},
      {"OMPI_MCA_oob_tcp_keepalive_intvl", "1"},
      {"OMPI_MCA_oob_tcp_keepalive_probes", "2"},
      {"PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"},  // Open MPI 5
      {"PRTE_MCA_hwloc_default_binding_policy", "none"}};
  if (geteuid() == 0)
    variables.insert({{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}});
  std::erase_if(variables,
                [](const auto& entry) { return std::getenv(entry.first.c_str()) != nullptr; });
  return variables;
}

void forward_own_variables(std::vector<std::string>& words,
                           std::map<std::string, std::string>& environment) {
  constexpr std::string_view kOwn = "CONCERTINA";
  constexpr const char* kList = "OMPI_MCA_mca_base_env_list";
  std::set<std::string> names;
  for (const auto& [name, value] : environment)
    if (name.starts_with(kOwn)) names.insert(name);
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    if (const std::string_view text = *entry; text.starts_with(kOwn))
      names.emplace(text.substr(0, text.find('=')));
  const auto option = std::ranges::find(words, "-x");
  if (option != words.end()) {
    std::vector<std::string> options;
    for (const std::string& name : names) options.insert(options.end(), {"-x", name});
    words.insert(option, options.begin(), options.end());
    return;
  }
  const char* const before = std::getenv(kList);
  std::string list = before == nullptr ? "" : before;
  for (const std::string& name : names) list += (list.empty() ? "" : ";") + name;
  environment.insert_or_assign(kList, list);
}

std::vector<std::string> split_words(const std::string& command, const std::string& where) {
  std::vector<std::string> words;
  bool open = false;  // inside a word
  char quote = 0;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    if (quote == 0 && (c == ' ' || c == '\t' || c == '\n')) {
      open = false;
      continue;
    }
    if (!open) words.emplace_back();
    open = true;
    if (quote == 0 && (c == '"' || c == '\''))
      quote = c;
    else if (c == quote)
      quote = 0;
    else if (c == '\\' && quote != '\'' && i + 1 < command.size())
      words.back() += command[++i];
    else
      words.back() += c;
  }
  if (quote != 0) throw_input("unterminated quote", where, command + quote);
  if (words.empty()) throw_input("the command is empty", where, kDefaultLauncher);
  return words;
}

std::string shell_line(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + shell_word(word);
  return text;
}

std::vector<std::string> launch_words(const std::string& command, int ranks,
                                      const std::string& program,
                                      const std::vector<std::string>& args,
                                      const std::string& where, const std::string& hosts) {
  std::map<std::string, std::string> values = {
      {"ranks", std::to_string(ranks)}, {"program", program}, {"args", shell_line(args)}};
  if (!hosts.empty()) values.insert({"hosts", hosts});
  std::vector<std::string> words;
  for (const std::string& word : split_words(command, where))
    if (word == "{args}")
      words.insert(words.end(), args.begin(), args.end());
    else
      words.push_back(filled(word, values, where));
  return words;
}

void require_launcher(const std::string& command, const std::string& where,
                      const std::string& hosts) {
  const std::string launcher = launch_words(command, 1, "{program}", {}, where, hosts)[0];
  if (!hosts.empty() && command.find("{hosts}") == std::string::npos)
    throw_input("the launcher command does not use the hosts", where,
                fmt::format("{{hosts}} in it: \"{}\"", kHostsLauncher));
  if (launcher != "{program}" && find_program(launcher).empty())
    throw_input(fmt::format("the launcher '{}' does not exist or is not executable", launcher),
                where, "a program on PATH or a path: \"mpirun -n {ranks} {program} {args}\"");
}

}  // namespace concertina
