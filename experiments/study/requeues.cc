#include "experiments/study/requeues.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "io/checkpoint_commit.h"
#include "io/file.h"
#include "io/run_files.h"

namespace concertina {
namespace {

std::string requeues_of(const std::string& trial) {
  return trial + "/requeues.json";
}

}  // namespace

int count_requeue(const std::string& trial) {
  constexpr std::uint64_t kMostBytes = 4096;
  const std::string path = requeues_of(trial);
  std::int64_t before = 0;
  int launches = 0;
  if (std::error_code error; std::filesystem::is_regular_file(path, error)) {
    const auto json = nlohmann::json::parse(read_file(path, kMostBytes), nullptr, false);
    if (json.is_object() && json.value("/step"_json_pointer, nlohmann::json()).is_number() &&
        json.value("/launches"_json_pointer, nlohmann::json()).is_number()) {
      before = json["step"].get<std::int64_t>();
      launches = json["launches"].get<int>();
    }
  }
  const auto commit = newest_commit(run_file(trial + "/run", kCheckpointFolder));
  const std::int64_t step = commit ? commit->step : 0;
  launches = step > before ? 0 : launches + 1;
  atomic_replace(path, nlohmann::json{{"step", step}, {"launches", launches}}.dump() + "\n");
  return launches;
}

void forget_requeues(const std::string& trial) {
  std::error_code error;
  std::filesystem::remove(requeues_of(trial), error);
}

}  // namespace concertina
