#include "experiments/train/snapshots.h"

#include <algorithm>
#include <filesystem>
#include <random>

#include "core/error.h"
#include "core/log.h"
#include "core/step_history.h"
#include "experiments/machine/gather.h"
#include "experiments/run/checkpoint_writer.h"

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

double Snapshots::news(double step_seconds) {
  if (copies_) copies_->advance();
  if (failed_ || task_.error()) return -1;
  const bool sends = stages_.now() == SaveStages::Stage::committing && copies_->busy();
  constexpr double kLeast = 1e-12;  // before the first one
  return !task_.over() || sends ? 0 : std::max(kLeast, seconds_ / step_seconds);
}

void Snapshots::heard(std::span<const double> news) {
  if (!file_) return;
  if (std::ranges::min(news) < 0) {
    copies_.reset();
    file_.reset();
    return remove();
  }
  if (std::ranges::min(news) > 0 && asked_ == 0)
    every_ = steps_between(std::ranges::max(news), kMostShare);
  if (!stages_.hear(news) || !stages_.busy()) return;
  task_.wait();  // of a spare rank, whose news is not used
  if (!copies_->begin(*file_)) stages_.end();
}

void Snapshots::after_step(const Trainer& trainer, std::int64_t step,
                           const nlohmann::json& identity,
                           const std::function<nlohmann::json()>& progress) {
  if (!file_ || stages_.busy() || step < last_ + every_) return;
  last_ = of_.step = step;
  stages_.begin();
  try {
    seconds_ = copy_snapshot(trainer, *file_, of_, identity, progress());
    task_.start([this] { seconds_ += file_->seal(); }, true, run_.prefix);
  } catch (const Error& error) {  // reported to all ranks after the next step
    failed_ = true;
    log::warn("cannot keep snapshots in memory: {} ({})", error.message(), error.where());
  }
}

void Snapshots::finish() {
  task_.wait();
  if (copies_) copies_->finish();
}

void Snapshots::remove() {
  finish();
  remove_snapshots(run_.prefix);
}

}  // namespace concertina
