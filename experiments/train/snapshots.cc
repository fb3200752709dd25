#include "experiments/train/snapshots.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "core/error.h"
#include "core/log.h"
#include "experiments/machine/gather.h"

namespace concertina {

Snapshots::Snapshots(Communicator& world, const std::string& directory, std::int64_t every,
                     bool takes)
    : asked_(every) {
  const nlohmann::json shared = from_first(world, [&] {
    std::random_device random;
    return nlohmann::json{{"prefix", snapshot_prefix(directory)},
                          {"launch", (std::uint64_t{random()} << 32) | random()}};
  });
  prefix_ = shared["prefix"].get<std::string>();
  of_ = {.launch = shared["launch"], .rank = world.rank(), .world = world.size(), .step = 0};
  if (takes && every >= 0 && !prefix_.empty())
    file_ = std::make_unique<SnapshotFile>(prefix_, world.rank());
  every_ = std::max<std::int64_t>(1, every);
}

double Snapshots::share(double step_seconds) const {
  if (failed_) return std::numeric_limits<double>::infinity();
  return file_ ? file_->seconds() / step_seconds : 0;
}

void Snapshots::plan(double share) {
  if (!file_) return;
  if (!std::isfinite(share)) {
    file_.reset();
    remove();
  } else if (asked_ == 0) {
    constexpr double kMostSteps = 1e6;
    every_ = std::max<std::int64_t>(
        1, static_cast<std::int64_t>(std::ceil(std::min(kMostSteps, share / kMostShare))));
  }
}

void Snapshots::after_step(const Trainer& trainer, std::int64_t step,
                           const nlohmann::json& identity,
                           const std::function<nlohmann::json()>& progress) {
  if (!file_ || failed_ || step < last_ + every_) return;
  last_ = step;
  of_.step = step;
  try {
    save_snapshot(trainer, *file_, of_, identity, progress());
  } catch (const Error& error) {  // the next step tells all ranks
    failed_ = true;
    log::warn("no snapshots in memory: {} ({})", error.message(), error.where());
  }
}

void Snapshots::remove() {
  if (file_) file_->finish();
  remove_snapshots(prefix_);
}

}  // namespace concertina
