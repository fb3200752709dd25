#include "experiments/study/slurm.h"

#include <fmt/format.h>

#include <cstdlib>
#include <sstream>

#include "core/error.h"
#include "experiments/study/launcher.h"
#include "io/paths.h"
#include "io/process.h"

namespace concertina {
namespace {

/// What the command prints on stdout and stderr. Throws a failure with that if it does not end
/// well.
std::string said_by(const std::vector<std::string>& words, const std::string& fix) {
  constexpr double kLimit = 300;  // seconds; a busy controller answers late
  const auto [code, output] = run_process(words, kLimit);
  std::string text = output;
  while (text.ends_with('\n')) text.pop_back();
  if (!code)
    throw_failure(fmt::format("{} did not answer for {:g} s", words[0], kLimit), shell_line(words),
                  fix);
  if (*code != 0)
    throw_failure(
        fmt::format("{} failed: {}", words[0], text.empty() ? "it ended without a word" : text),
        shell_line(words), fix);
  return text;
}

int number_in_environment(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? 0 : std::atoi(text);
}

}  // namespace

void require_sbatch() {
  if (find_program("sbatch").empty())
    throw_input(
        "there is no sbatch on PATH", "this machine",
        "a machine of a cluster with Slurm; --dry-run shows the script anywhere; `concertina "
        "study run` needs no Slurm");
}

std::string submit_batch(const std::string& script, const std::string& after) {
  std::vector<std::string> words = {"sbatch", "--parsable", script};
  if (!after.empty()) words.insert(words.begin() + 2, "--dependency=afterany:" + after);
  const std::string said = said_by(words, "what sbatch says above, in the script or in --sbatch");
  // Warnings come first; then "12", or "12;CLUSTER".
  const std::string last = said.substr(said.find_last_of('\n') + 1);
  const std::string job = last.substr(0, last.find(';'));
  if (job.empty() || job.find_first_not_of("0123456789") != std::string::npos)
    throw_failure(fmt::format("sbatch said no ID of a job: {}", said), script);
  return job;
}

std::optional<std::vector<SlurmTask>> slurm_tasks() {
  if (find_program("squeue").empty()) return std::nullopt;
  // A line per array task, whether it waits or runs.
  std::istringstream lines(said_by({"squeue", "--noheader", "--array", "--user",
                                    std::to_string(getuid()), "--format", "%F %K %T %N"},
                                   "try again once squeue answers"));
  std::vector<SlurmTask> tasks;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    SlurmTask task;
    if (words >> task.job >> task.index >> task.state) {  // of other jobs %K is no number
      words >> task.nodes;
      tasks.push_back(task);
    }
  }
  return tasks;
}

int most_array_indices() {
  constexpr int kUsual = 1001;
  if (find_program("scontrol").empty()) return kUsual;
  std::string text;
  try {
    text = said_by({"scontrol", "show", "config"}, "");
  } catch (const Error&) {
    return kUsual;  // sbatch says what is wrong
  }
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string key, equals;
    int value = 0;
    if (!(words >> key >> equals >> value) || key != "MaxArraySize") continue;
    if (value < 1)
      throw_input("this cluster takes no array jobs", "MaxArraySize of `scontrol show config`",
                  "concertina study run, in one allocation for the whole study");
    return value;
  }
  return kUsual;
}

std::optional<int> slurm_restarts() {
  if (std::getenv("SLURM_JOB_ID") == nullptr) return std::nullopt;
  return number_in_environment("SLURM_RESTART_COUNT");
}

int slurm_nodes() {
  return number_in_environment("SLURM_JOB_NUM_NODES");
}

}  // namespace concertina
