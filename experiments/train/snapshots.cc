#include "experiments/train/snapshots.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <random>
#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "experiments/machine/gather.h"

namespace concertina {

Snapshots::Snapshots(Communicator& world, const std::vector<int>& hosts,
                     const std::string& directory, std::int64_t every, bool takes)
    : asked_(every) {
  const nlohmann::json shared = from_first(world, [&] {
    std::random_device random;
    run_ = snapshot_run(directory);
    return nlohmann::json{{"prefix", run_.prefix},
                          {"key", run_.key},
                          {"launch", (std::uint64_t{random()} << 32) | random()}};
  });
  run_ = {shared["prefix"], shared["key"],
          std::filesystem::absolute(directory).lexically_normal().string()};
  of_ = {.launch = shared["launch"], .rank = world.rank(), .world = world.size(), .step = 0};
  if (takes && every >= 0 && !run_.prefix.empty()) {
    file_ = std::make_unique<SnapshotFile>(run_, world.rank());
    copies_ = std::make_unique<PartnerCopies>(world, hosts, run_.prefix);
  }
  every_ = std::max<std::int64_t>(1, every);
}

double Snapshots::share(double step_seconds) const {
  if (failed_) return std::numeric_limits<double>::infinity();
  return file_ ? file_->seconds() / step_seconds : 0;
}

bool Snapshots::busy() {
  if (!file_) return false;
  copies_->advance();
  if (!copies_->problem().empty() && !std::exchange(told_no_copies_, true))
    log::warn("no copies of another host's snapshots are kept here: {}", copies_->problem());
  return !file_->whole() || copies_->busy();
}

void Snapshots::plan(double share, bool busy) {
  if (!file_) return;
  busy_ = busy;
  if (!std::isfinite(share)) {
    copies_.reset();
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
  if (!file_ || busy_ || step < last_ + every_) return;
  last_ = step;
  of_.step = step;
  try {
    save_snapshot(trainer, *file_, of_, identity, progress());
  } catch (const Error& error) {  // the next step tells all ranks
    failed_ = true;
    log::warn("no snapshots in memory: {} ({})", error.message(), error.where());
  }
  copies_->begin(failed_ ? nullptr : file_.get());
}

void Snapshots::remove() {
  finish();
  remove_snapshots(run_.prefix);
}

}  // namespace concertina
