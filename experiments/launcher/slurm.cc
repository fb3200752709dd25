#include "experiments/launcher/slurm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "core/error.h"
#include "core/log.h"
#include "experiments/launcher/launcher.h"
#include "experiments/machine/program.h"
#include "io/file.h"
#include "io/process.h"

namespace concertina {
namespace {

std::string slurm_variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

int slurm_number(const char* name) {
  return std::atoi(slurm_variable(name).c_str());
}

/// The value of "key = value" or "key=value" in `text`, the output of scontrol.
std::string value_in(const std::string& text, const std::string& key) {
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (word.starts_with(key + "=")) return word.substr(key.size() + 1);
    std::string equals, value;
    if (word == key && words >> equals >> value) return value;
  }
  return "";
}

/// Parses SLURM_TASKS_PER_NODE, such as "3(x2),1": the number of tasks of each node.
std::vector<int> tasks_by_node(const std::string& text) {
  std::vector<int> tasks;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    int count = 0, times = 1;
    std::istringstream word(part);
    word >> count;
    if (const std::size_t x = part.find("(x"); x != std::string::npos)
      times = std::atoi(part.c_str() + x + 2);
    tasks.insert(tasks.end(), static_cast<std::size_t>(std::max(times, 0)), count);
  }
  return tasks;
}

/// The job ID for scontrol: the last task of an array has the whole array's ID in SLURM_JOB_ID.
std::string own_job() {
  const std::string array = slurm_variable("SLURM_ARRAY_JOB_ID");
  return array.empty() ? slurm_variable("SLURM_JOB_ID")
                       : array + "_" + slurm_variable("SLURM_ARRAY_TASK_ID");
}

/// Returns the output of the command on stdout and stderr. Throws Error{failure} if the command
/// fails (with this output) or takes more than five minutes.
std::string slurm_says(const std::vector<std::string>& words, const std::string& fix) {
  constexpr double kLimit = 300;  // seconds; a busy controller is slow
  const auto [code, output] = run_process(words, kLimit);
  std::string text = output;
  while (text.ends_with('\n')) text.pop_back();
  if (!code)
    throw_failure(fmt::format("{} did not finish within {:g} s", words[0], kLimit),
                  shell_line(words), fix);
  if (*code != 0)
    throw_failure(
        fmt::format("{} failed: {}", words[0], text.empty() ? "it printed nothing" : text),
        shell_line(words), fix);
  return text;
}

}  // namespace

std::optional<int> slurm_restarts() {
  if (std::getenv("SLURM_JOB_ID") == nullptr) return std::nullopt;
  return slurm_number("SLURM_RESTART_COUNT");
}

int slurm_nodes() {
  return slurm_number("SLURM_JOB_NUM_NODES");
}

std::vector<Host> slurm_hosts(bool by_mpirun) {
  if (slurm_nodes() < 2) return {};
  constexpr const char* kFix = "--hosts node1:4,node2:4";
  for (const char* program : {"scontrol", by_mpirun ? "srun" : "scontrol"})
    if (find_program(program).empty())
      throw_input(fmt::format("this Slurm job has {} nodes, but {} is not on PATH",
                              slurm_nodes(), program),
                  "SLURM_JOB_NUM_NODES", fmt::format("{}, to specify the hosts", kFix));
  const std::string nodes = slurm_variable("SLURM_JOB_NODELIST");
  const std::vector<int> tasks = tasks_by_node(slurm_variable("SLURM_TASKS_PER_NODE"));
  std::istringstream names(slurm_says({"scontrol", "show", "hostnames", nodes}, kFix));
  std::vector<Host> hosts;
  for (std::string name; std::getline(names, name);)
    hosts.push_back({name, hosts.size() < tasks.size() ? tasks[hosts.size()] : 1});
  std::erase_if(hosts, [](const Host& host) { return host.slots < 1; });
  return hosts;
}

void requeue_slurm_job() try {
  if (!slurm_restarts()) return;
  const std::string job = own_job();
  if (value_in(slurm_says({"scontrol", "show", "job", job}, ""), "JobState") == "RUNNING")
    slurm_says({"scontrol", "requeue", job}, "");
} catch (const Error& error) {
  log::warn("cannot requeue this job: {}", error.message());
}

}  // namespace concertina
