#include "experiments/run/checkpoint_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <new>

#include "core/clock.h"
#include "core/index.h"
#include "core/log.h"
#include "experiments/machine/gather.h"
#include "experiments/machine/machine.h"
#include "experiments/run/run_identity.h"
#include "io/checkpoint/checkpoint_commit.h"
#include "io/checkpoint/checkpoint_shard.h"
#include "parallel/plan/moves.h"
#include "parallel/runtime/step_sums.h"

namespace concertina {
namespace {

/// The parts of the state that `rank` owns, in the order of State::each_owned(), without data.
std::vector<TensorPiece> pieces_of(const Assignment& assignment, int rank,
                                   const std::vector<std::string>& kinds) {
  std::vector<TensorPiece> pieces;
  for (std::size_t b = 0; b < assignment.buckets.size(); ++b) {
    const Bucket& bucket = assignment.buckets[b];
    const int index = assignment.owners[b].index_of(rank);
    if (index < 0) continue;
    std::vector<StatePart> parts{{"weight"}};
    if (own_state(assignment, b, rank) != nullptr)
      for (const std::string& kind : kinds) parts.push_back({kind});
    for (const TensorRun& run : tensor_runs(bucket, assignment.owners[b].parts[at(index)])) {
      const BucketTensor& tensor = bucket.tensors[at(run.tensor)];
      pieces.push_back(
          {tensor.name, tensor.shape, run.begin - tensor.offset, run.end - run.begin, parts});
    }
  }
  return pieces;
}

/// Returns a tensor's data where host code can read it.
using Readable = std::function<const float*(View tensor)>;

/// The state of the parts that this rank owns.
std::vector<TensorPiece> own_pieces(const Trainer& trainer, const Readable& readable) {
  const State& state = trainer.state();
  std::vector<TensorPiece> pieces = pieces_of(trainer.assignment(), state.rank(), state.kinds());
  auto piece = pieces.begin();
  state.each_owned([&](const OwnedRun& run) {
    auto part = (piece++)->parts.begin();
    (part++)->data = readable(run.weight);
    for (const View& kind : run.kinds) (part++)->data = readable(kind);
  });
  return pieces;
}

/// Reads tensors in place if host code can, otherwise copies them to `fetched`.
Readable in_place(const State& state, std::list<std::vector<std::byte>>& fetched) {
  return
      [&](View tensor) { return host_view(state.memory(), tensor, fetched.emplace_back()).f32(); };
}

/// Throws for a state from which no step can start: it has a NaN, an infinity, or a weight whose
/// square, and therefore any norm, overflows. Such a state is not saved.
void require_sound(const TensorPiece& piece, std::int64_t step) {
  constexpr std::uint32_t kInfinity = 0x7f800000, kSquareOverflows = 0x5f800000;  // 2^64
  for (const StatePart& part : piece.parts) {
    const std::uint32_t limit = part.name == "weight" ? kSquareOverflows : kInfinity;
    std::uint32_t largest = 0;
    for (std::size_t i = 0; i < piece.count; ++i)
      largest = std::max(largest, std::bit_cast<std::uint32_t>(part.data[i]) & 0x7fffffff);
    if (largest < limit) continue;
    throw_failure(
        fmt::format("training has diverged: after step {}, '{}' of {} {}; no checkpoint is written",
                    step, part.name, piece.name,
                    largest >= kInfinity ? "is not finite" : "has values above 2^64"),
        fmt::format("step {}", step), kDivergedAdvice);
  }
}

/// The metadata that a commit stores besides the tensors.
nlohmann::json metadata_of(const Trainer& trainer, std::int64_t step,
                           const nlohmann::json& identity, nlohmann::json progress) {
  nlohmann::json metadata = identity;
  progress["frozen_units"] = trainer.layout().frozen_units;
  progress["updates"] = step - trainer.ahead();
  progress["missed"] = trainer.state().missed();
  metadata[kProgress] = std::move(progress);
  return metadata;
}

}  // namespace

/// Whether a copy of this rank's part fits in memory if every rank on this host needs as much.
bool CheckpointWriter::make_copy_room() {
  const auto rank = static_cast<std::size_t>(trainer_.world().rank());
  const std::uint64_t bytes =
      state_bytes(trainer_.assignment(), trainer_.state().kinds().size())[rank];
  if (bytes <= copy_bytes()) return true;
  copy_.reset();
  copy_floats_ = 0;
  const std::vector<int>& hosts = trainer_.hosts();
  const auto sharers = static_cast<std::uint64_t>(std::ranges::count(hosts, hosts[rank]));
  const std::optional<MemoryBytes> host = memory();
  if (!host || bytes <= host->available / sharers)
    copy_.reset(new (std::nothrow) float[bytes / sizeof(float)]);
  if (copy_ != nullptr) copy_floats_ = bytes / sizeof(float);
  if (copy_ == nullptr && !std::exchange(reported_no_room_, true))
    log::warn("no memory for a copy of this rank's state ({:.1f} MiB): steps wait for checkpoints",
              static_cast<double>(bytes) / (1 << 20));
  return copy_ != nullptr;
}

std::vector<TensorPiece> CheckpointWriter::pieces_of_state(bool copied) {
  const State& state = trainer_.state();
  if (!copied) return own_pieces(trainer_, in_place(state, fetched_));
  float* next = copy_.get();
  return own_pieces(trainer_, [&](View tensor) {
    float* const at = std::exchange(next, next + tensor.count);
    state.memory().copy(tensor.data, at, tensor.bytes());
    return at;
  });
}

void CheckpointWriter::start(std::int64_t step, const nlohmann::json& identity,
                             nlohmann::json progress, bool concurrent, After after) {
  CONCERTINA_CHECK(!busy(), "saving step {} while saving step {}", step, step_);
  const Watchdog::Patience patience(trainer_.watchdog(), "saving a checkpoint");
  began_ = now();
  step_ = step;
  index_ =
      trainer_.engine().works() ? trainer_.assignment().working_index(trainer_.world().rank()) : -1;
  partial_ = partial_path(directory_, step);
  metadata_ = metadata_of(trainer_, step, identity, std::move(progress));
  after_ = std::move(after);
  together(
      trainer_.world(),
      [&] {
        concurrent_ = concurrent && make_copy_room();
        pieces_ = pieces_of_state(concurrent_);
        for (const TensorPiece& piece : pieces_) require_sound(piece, step);
        if (commits()) begin_checkpoint(directory_, step);
      },
      [&] {
        if (commits()) abandon_checkpoint(partial_);
      });
  stages_.begin();
  if (index_ >= 0) work(&CheckpointWriter::write_part);
}

void CheckpointWriter::work(void (CheckpointWriter::*task)()) {
  task_.start([this, task] { (this->*task)(); }, concurrent_, partial_,
              [this] { trainer_.beat(); });
}

void CheckpointWriter::write_part() {
  const ShardRecord record = write_shard(
      partial_, at(index_), pieces_, [this] { task_.made_progress(); }, &structure_);
  records_ = {to_json(record).dump()};
}

void CheckpointWriter::commit() {
  std::vector<ShardRecord> shards;
  for (const std::string& record : records_)
    shards.push_back(parse_shard_record(nlohmann::json::parse(record), partial_));
  write_manifest(partial_, std::move(shards), std::move(metadata_));
  durable_ = now() - began_;
  if (after_) after_(followed_);
}

double CheckpointWriter::news() const {
  if (!busy() || index_ < 0 || !task_.over()) return 0;
  if (task_.error()) return -1;
  if (stages_.now() == SaveStages::Stage::committing) return durable_;
  return static_cast<double>(records_.front().size());
}

/// Collects the records of all shards on the rank that commits.
void CheckpointWriter::collect_records(std::span<const double> news) {
  Communicator& world = trainer_.world();
  const std::vector<int>& working = trainer_.assignment().working;
  if (index_ > 0) world.isend(std::as_bytes(std::span(records_.front())), working.front()).wait();
  if (!commits()) return;
  for (std::size_t i = 1; i < working.size(); ++i) {
    std::string& record = records_.emplace_back(static_cast<std::size_t>(news[i]), ' ');
    world.irecv(std::as_writable_bytes(std::span(record)), working[i]).wait();
  }
}

/// Starts the next stage if all ranks are ready for it.
std::optional<SavedCheckpoint> CheckpointWriter::step_on(std::span<const double> news,
                                                         bool followed) {
  using enum SaveStages::Stage;
  if (!stages_.hear(stages_.now() == committing ? news.first(1) : news)) return {};
  task_.wait();
  if (stages_.now() == idle) return SavedCheckpoint{step_, news[0], followed_};
  if (stages_.now() == failed) return {};
  pieces_.clear();
  fetched_.clear();
  collect_records(news);
  followed_ = followed;
  if (commits()) work(&CheckpointWriter::commit);
  return {};
}

/// Throws any rank's error on all ranks.
void CheckpointWriter::raise() {
  if (stages_.now() != SaveStages::Stage::failed) return;
  stages_.end();
  together(
      trainer_.world(),
      [this] {
        if (index_ >= 0 && task_.error()) throw *task_.error();
      },
      [this] {
        if (commits()) abandon_checkpoint(partial_);
      });
}

std::optional<SavedCheckpoint> CheckpointWriter::hear(std::span<const double> news, bool followed) {
  std::optional<SavedCheckpoint> saved = step_on(news, followed);
  raise();
  return saved;
}

std::optional<SavedCheckpoint> CheckpointWriter::step_to_end(const Exchange& exchange) {
  const Watchdog::Patience patience(trainer_.watchdog(), "saving a checkpoint");
  std::optional<SavedCheckpoint> saved;
  while (busy() && stages_.now() != SaveStages::Stage::failed) {
    task_.wait();
    concurrent_ = false;  // the rest runs synchronously
    const double mine = news();
    saved = step_on(exchange(std::span(&mine, 1)), trainer_.done() > step_);
  }
  return saved;
}

std::optional<SavedCheckpoint> CheckpointWriter::finish() {
  std::optional<SavedCheckpoint> saved =
      step_to_end([this](std::span<const double> mine) { return trainer_.gather_working(mine); });
  raise();
  return saved;
}

std::optional<SavedCheckpoint> CheckpointWriter::finish_working() noexcept {
  try {
    return step_to_end([this](std::span<const double> mine) {
      return gather_values(trainer_.engine().working(), mine);
    });
  } catch (const std::exception& failure) {
    log::warn("the checkpoint of step {} is lost: {}", step_, failure.what());
    return {};
  }
}

void save_checkpoint(Trainer& trainer, const std::string& directory, std::int64_t step,
                     const nlohmann::json& identity, nlohmann::json progress) {
  CheckpointWriter writer(trainer, directory);
  writer.start(step, identity, std::move(progress), /*concurrent=*/false);
  writer.finish();
}

double copy_snapshot(const Trainer& trainer, SnapshotFile& file, const SnapshotOf& of,
                     const nlohmann::json& identity, nlohmann::json progress) {
  std::list<std::vector<std::byte>> copies;
  const std::vector<TensorPiece> pieces = own_pieces(trainer, in_place(trainer.state(), copies));
  return file.copy(of, metadata_of(trainer, of.step, identity, std::move(progress)), pieces);
}

std::vector<std::uint64_t> state_bytes(const Assignment& assignment, std::size_t kinds) {
  std::vector<std::uint64_t> bytes(at(assignment.world));
  for (int rank = 0; rank < assignment.world; ++rank)
    for (const TensorPiece& piece : pieces_of(assignment, rank, std::vector<std::string>(kinds)))
      bytes[at(rank)] += piece.count * piece.parts.size() * sizeof(float);
  return bytes;
}

std::uint64_t checkpoint_bytes(const Trainer& trainer) {
  constexpr std::uint64_t kInOtherFiles = 10 << 10;  // per part, in model.h5 and the manifest
  std::uint64_t bytes = 0;
  for (int rank = 0; rank < trainer.assignment().world; ++rank) {
    const std::vector<TensorPiece> pieces =
        pieces_of(trainer.assignment(), rank, trainer.state().kinds());
    bytes += shard_bytes_bound(pieces);
    for (const TensorPiece& piece : pieces) bytes += piece.parts.size() * kInOtherFiles;
  }
  return bytes + kInOtherFiles;
}

}  // namespace concertina
