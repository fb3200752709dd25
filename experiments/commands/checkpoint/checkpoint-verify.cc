// `concertina checkpoint verify`: whether a checkpoint is as it was written.
#include <fmt/format.h>

#include "core/error.h"
#include "experiments/commands/checkpoint/checkpoint_options.h"
#include "experiments/hugging_face/stored_run.h"
#include "io/checkpoint/checkpoint_reader.h"

namespace concertina {
namespace {

/// Exit code 1 if anything is not as it was written.
int run_checkpoint_verify(const CheckpointOptions& options) {
  const std::string commit = stored_commit(options.path);
  const std::vector<std::string> problems = verify(commit);
  if (options.json) {
    const nlohmann::ordered_json report{
        {"path", commit}, {"ok", problems.empty()}, {"problems", problems}};
    fmt::print("{}\n", report.dump());
  } else if (problems.empty()) {
    fmt::print("ok: every byte of {} is as it was written\n", commit);
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
  return make_command<CheckpointOptions>("read every byte and compare it with what was written",
                                         add_checkpoint_options, run_checkpoint_verify);
}

}  // namespace concertina
