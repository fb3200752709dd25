#include "experiments/bench/bench_checkpoint.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"
#include "core/step_history.h"
#include "io/checkpoint_commit.h"
#include "io/checkpoint_reader.h"
#include "io/checkpoint_shard.h"
#include "io/file.h"
#include "io/snapshot_file.h"

namespace concertina {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kBlock = std::size_t{1} << 20;  // of a raw write or read

/// A state, and room for another one.
struct BenchState {
  std::size_t floats = 0;
  std::unique_ptr<float[]> data, other;
  std::vector<TensorPiece> pieces;

  explicit BenchState(const CheckpointBenchOptions& options) {
    const auto tensors = static_cast<std::size_t>(options.tensors);
    const auto each = std::max<std::size_t>(
        1, static_cast<std::size_t>(options.bytes) / sizeof(float) / 3 / tensors);
    floats = 3 * each * tensors;
    data = std::make_unique_for_overwrite<float[]>(floats);
    other = std::make_unique<float[]>(floats);
    std::uint32_t x = 1;
    for (std::size_t i = 0; i < floats; ++i)
      data[i] = static_cast<float>(x = x * 1664525 + 1013904223);
    for (std::size_t t = 0; t < tensors; ++t) {
      const float* const at = &data[3 * each * t];
      pieces.push_back({fmt::format("{:03}.bench/weight", t),
                        {static_cast<std::int64_t>(each)},
                        0,
                        each,
                        {{"weight", at}, {"m", at + each}, {"v", at + 2 * each}}});
    }
  }
  std::span<std::byte> bytes() const {
    return std::as_writable_bytes(std::span(data.get(), floats));
  }
  std::span<std::byte> room() const {
    return std::as_writable_bytes(std::span(other.get(), floats));
  }
};

/// A folder that goes when the bench does.
class BenchFolder {
 public:
  explicit BenchFolder(const std::string& parent)
      : path_(fmt::format("{}/concertina-bench-checkpoint-{}", parent, ::getpid())) {
    make_directories(path_);
  }
  ~BenchFolder() {
    remove_snapshots(snapshots());
    try {
      remove_tree(path_);
    } catch (const Error& error) {
      log::warn("{}: {}", error.where(), error.message());
    }
  }
  BenchFolder(const BenchFolder&) = delete;
  BenchFolder& operator=(const BenchFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string snapshots() const { return fmt::format("/dev/shm/concertina-bench-{}", ::getpid()); }

 private:
  std::string path_;
};

double seconds_of(const std::function<void()>& work) {
  const double start = now();
  work();
  return now() - start;
}

void write_raw(const std::string& path, std::span<const std::byte> bytes) {
  File file(path, File::Mode::create);
  for (std::size_t at = 0; at < bytes.size(); at += kBlock)
    file.write_at(at, bytes.subspan(at, std::min(kBlock, bytes.size() - at)));
  file.sync();
  file.close();
}

void read_raw(const std::string& path, std::span<std::byte> room) {
  const File file(path, File::Mode::read);
  const auto size = std::min<std::size_t>(room.size(), file.size());
  for (std::size_t at = 0; at < size; at += kBlock)
    file.read_at(at, room.subspan(at, std::min(kBlock, size - at)));
}

void forget(const std::string& path) {
  const File file(path, File::Mode::read);
  ::posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
}

void load(const std::string& commit, const BenchState& state) {
  CheckpointReader reader(commit);
  std::vector<CheckpointReader::Range> ranges;
  for (const TensorPiece& piece : state.pieces)
    for (const StatePart& part : piece.parts)
      ranges.push_back(
          {piece.name,
           part.name,
           0,
           {&state.other[static_cast<std::size_t>(part.data - state.data.get())], piece.count}});
  reader.read(ranges);
}

/// What is measured, and its bound, in turns.
struct Pair {
  std::vector<double> seconds, bounds, ratios;
  void run(int round, const std::function<void()>& work, const std::function<void()>& bound) {
    double first = 0, second = 0;
    if (round % 2 == 0) first = seconds_of(work);
    second = seconds_of(bound);
    if (round % 2 != 0) first = seconds_of(work);
    seconds.push_back(first);
    bounds.push_back(second);
    ratios.push_back(second / first);
  }
  Json figures() const {
    return {{"ms", median(seconds) * 1e3},
            {"bound_ms", median(bounds) * 1e3},
            {"ratio", median(ratios)}};
  }
};

}  // namespace

Json bench_checkpoint(const CheckpointBenchOptions& options) {
  const BenchState state(options);
  const BenchFolder folder(options.directory);
  const std::string raw = folder.path() + "/raw", commits = folder.path() + "/checkpoints";
  SnapshotFile snapshot({.prefix = folder.snapshots(), .key = std::string(64, 'a')}, 0);
  ShardStructure structure;
  Pair save, warm, cold, memory;
  std::int64_t step = 0;
  // The first round makes what later ones find: files in memory, the structure of a shard.
  for (int round = -1; round < options.rounds; ++round) {
    Pair unused[4];
    Pair* const pairs[] = {&save, &warm, &cold, &memory};
    const auto pair = [&](int i) -> Pair& { return round < 0 ? unused[i] : *pairs[i]; };
    std::string commit;
    const auto raw_write = [&] { write_raw(raw, state.bytes()); };
    const auto raw_read = [&] { read_raw(raw, state.room()); };
    pair(0).run(
        round,
        [&] {
          const std::string partial = begin_checkpoint(commits, ++step);
          commit = write_manifest(partial, {write_shard(partial, 0, state.pieces, {}, &structure)},
                                  {{"step", step}});
        },
        raw_write);
    pair(1).run(
        round, [&] { load(commit, state); }, raw_read);
    forget(raw);
    forget(commit + "/" + shard_name(0));
    pair(2).run(
        round, [&] { load(commit, state); }, raw_read);
    pair(3).run(
        round,
        [&] {
          snapshot.write({.launch = 1, .rank = 0, .world = 1, .step = step}, {}, state.pieces);
          snapshot.finish();
        },
        [&] { std::memcpy(state.room().data(), state.bytes().data(), state.bytes().size()); });
    remove_tree(commit);
    remove_tree(raw);
  }
  return {{"bytes", state.bytes().size()}, {"tensors", options.tensors},
          {"rounds", options.rounds},      {"directory", options.directory},
          {"save", save.figures()},        {"load", warm.figures()},
          {"cold_load", cold.figures()},   {"snapshot", memory.figures()}};
}

std::string checkpoint_table(const Json& result) {
  std::string text = fmt::format(
      "{:.1f} MB in {} tensors below {}, medians of {} rounds\n{:<12}{:>10}{:>10}{:>12}{:>10}  "
      "of\n",
      result["bytes"].get<double>() * 1e-6, result["tensors"].get<int>(),
      result["directory"].get<std::string>(), result["rounds"].get<int>(), "", "ms", "MB/s",
      "bound, ms", "ratio");
  const auto add = [&](const char* key, const char* bound) {
    const Json& one = result[key];
    text += fmt::format("{:<12}{:>10.1f}{:>10.0f}{:>12.1f}{:>10.2f}  {}\n", key,
                        one["ms"].get<double>(),
                        result["bytes"].get<double>() * 1e-3 / one["ms"].get<double>(),
                        one["bound_ms"].get<double>(), one["ratio"].get<double>(), bound);
  };
  add("save", "a write of the bytes and fsync");
  add("load", "a read of the bytes from the page cache");
  add("cold_load", "a read of the bytes from the disk");
  add("snapshot", "a memcpy");
  return text;
}

}  // namespace concertina
