// `concertina checkpoint verify`: checks whether a checkpoint is intact.
#include <fmt/format.h>

#include "core/error.h"
#include "experiments/commands/checkpoint/checkpoint_options.h"
#include "experiments/hugging_face/stored_run.h"
#include "io/checkpoint/checkpoint_reader.h"

namespace concertina {
namespace {

/// Returns exit code 1 if the checkpoint is damaged.
int run_checkpoint_verify(const CheckpointOptions& options) {
  const std::string commit = stored_commit(options.path);
  const std::vector<std::string> problems = verify(commit);
  if (options.json) {
    const nlohmann::ordered_json report{
        {"path", commit}, {"ok", problems.empty()}, {"problems", problems}};
    fmt::print("{}\n", report.dump());
  } else if (problems.empty()) {
    fmt::print("ok: {} is intact\n", commit);
  } else {
    fmt::print("{}\n", fmt::join(problems, "\n"));
  }
  if (problems.empty()) return 0;
  throw_failure(fmt::format("the checkpoint is damaged in {} place{}", problems.size(),
                            problems.size() == 1 ? "" : "s"),
                commit, recovery_advice(commit));
}

}  // namespace

Command command_checkpoint_verify() {
  return make_command<CheckpointOptions>("read every byte and compare it with the stored hashes",
                                         add_checkpoint_options, run_checkpoint_verify);
}

}  // namespace concertina
