#include "experiments/run/best_commit.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/text/number_text.h"
#include "experiments/run/run_identity.h"
#include "io/checkpoint/checkpoint_commit.h"
#include "io/file.h"

namespace concertina {

std::optional<BestCommit> best_commit_of(const nlohmann::json& metadata) {
  const auto progress = metadata.find(kProgress);
  if (progress == metadata.end() || !progress->contains(kBestKey)) return std::nullopt;
  const nlohmann::json& best = (*progress)[kBestKey];
  if (!best.is_object() || best.value("kept", nlohmann::json()) != true) return std::nullopt;
  return BestCommit{best.value("by", ""), best.at("step").get<std::int64_t>(),
                    best.at("value").get<double>()};
}

std::optional<OpenCommit> open_best(const std::string& checkpoints) {
  for (std::int64_t seen = -1;;) {
    std::optional<OpenCommit> newest = open_newest(checkpoints);
    if (!newest) return std::nullopt;
    const std::optional<BestCommit> best = best_commit_of(newest->manifest.metadata);
    if (!best || best->step == newest->manifest.step) return newest;
    const std::string path = checkpoints + "/" + commit_name(best->step);
    if (exists_at(path)) return OpenCommit{path, open_manifest(path)};
    // A run in progress may have saved a better one and removed this one in the meantime.
    if (seen == newest->manifest.step)
      throw_input(fmt::format("the run's best checkpoint by {}, of step {}, is missing", best->by,
                              best->step),
                  checkpoints,
                  fmt::format("restore it, or use the newest checkpoint, of step {}, with --newest",
                              newest->manifest.step));
    seen = newest->manifest.step;
  }
}

std::string step_text(std::int64_t step, const nlohmann::json& metadata) {
  const std::optional<BestCommit> best = best_commit_of(metadata);
  if (!best || best->step != step) return fmt::format("step {}", step);
  return fmt::format("step {}, the best of the run by {} ({})", step, best->by,
                     number_text(best->value));
}

}  // namespace concertina
