// Measures saves, loads and snapshots of a state, and how fast the disk and the memory handle the
// same number of bytes, with google-benchmark: checkpoint_bench [--benchmark_min_time=...] in the
// folder to measure; MB=400 is the size.
// Invariant: measures what a run does on one rank: hashed shards until they are durable, verified
// reads, and snapshots until they are named.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <span>

#include "io/checkpoint/checkpoint_commit.h"
#include "io/checkpoint/checkpoint_reader.h"
#include "io/checkpoint/checkpoint_shard.h"
#include "io/checkpoint/snapshot_file.h"
#include "io/file.h"

namespace concertina {
namespace {

constexpr std::size_t kTensors = 48, kBlock = std::size_t{1} << 20;  // of a raw write or read

std::size_t megabytes() {
  const char* const text = std::getenv("MB");
  return text == nullptr ? 256 : std::strtoul(text, nullptr, 10);
}

/// A state of equal tensors with two optimizer states each, and room for a copy.
struct State {
  const std::size_t each = std::max<std::size_t>(1, megabytes() * 1'000'000 / 12 / kTensors);
  std::vector<float> data = std::vector<float>(3 * each * kTensors), other = data;
  std::vector<TensorPiece> pieces;
  std::vector<CheckpointReader::Range> ranges;

  State() {
    std::uint32_t x = 1;
    for (float& value : data) value = static_cast<float>(x = x * 1664525 + 1013904223);
    for (std::size_t t = 0; t < kTensors; ++t) {
      const float* const at = &data[3 * each * t];
      const std::string name = fmt::format("{:03}.bench/weight", t);
      pieces.push_back({name,
                        {static_cast<std::int64_t>(each)},
                        0,
                        each,
                        {{"weight", at}, {"m", at + each}, {"v", at + 2 * each}}});
      for (const StatePart& part : pieces.back().parts)
        ranges.push_back(
            {name, part.name, 0, {&other[static_cast<std::size_t>(part.data - &data[0])], each}});
    }
  }
  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(data)); }
  std::span<std::byte> room() { return std::as_writable_bytes(std::span(other)); }
};

State& state() {
  static State one;
  return one;
}

const std::string kFolder = fmt::format("checkpoint-bench-{}", ::getpid());

std::string save(std::int64_t step) {
  static ShardStructure structure;
  const std::string partial = begin_checkpoint(kFolder, step);
  return write_manifest(partial, {write_shard(partial, 0, state().pieces, {}, &structure)},
                        {{"step", step}});
}

void write_raw(const std::string& path) {
  make_directories(kFolder);
  File file(path, File::Mode::create);
  const auto bytes = state().bytes();
  for (std::size_t at = 0; at < bytes.size(); at += kBlock)
    file.write_at(at, bytes.subspan(at, std::min(kBlock, bytes.size() - at)));
  file.sync();
  file.close();
}

void forget(const std::string& path) {
  ::posix_fadvise(File(path, File::Mode::read).descriptor(), 0, 0, POSIX_FADV_DONTNEED);
}

/// Runs `work` once per iteration; `before` runs before it and is not measured.
template <class Before, class Work>
void measure(benchmark::State& rounds, Before before, Work work) {
  for (auto _ : rounds) {
    rounds.PauseTiming();
    before();
    rounds.ResumeTiming();
    work();
  }
  rounds.SetBytesProcessed(rounds.iterations() * static_cast<std::int64_t>(state().bytes().size()));
}

void save_a_checkpoint(benchmark::State& rounds) {
  std::int64_t step = 0;
  measure(
      rounds, [&] { remove_tree(kFolder); }, [&] { save(++step); });
}

void write_and_sync(benchmark::State& rounds) {
  measure(
      rounds, [] { remove_tree(kFolder); }, [] { write_raw(kFolder + "/raw"); });
}

/// `cold`: from the disk, as far as the page cache releases the file.
void load_a_checkpoint(benchmark::State& rounds, bool cold) {
  const std::string commit = save(1);
  measure(
      rounds,
      [&] {
        if (cold) forget(commit + "/" + shard_name(0));
      },
      [&] { CheckpointReader(commit).read(state().ranges); });
}

void read_the_bytes(benchmark::State& rounds, bool cold) {
  const std::string raw = kFolder + "/raw";
  remove_tree(kFolder);
  write_raw(raw);
  measure(
      rounds,
      [&] {
        if (cold) forget(raw);
      },
      [&] {
        const File file(raw, File::Mode::read);
        for (std::size_t at = 0; at < file.size(); at += kBlock)
          file.read_at(at,
                       state().room().subspan(at, std::min<std::size_t>(kBlock, file.size() - at)));
      });
}

void write_a_snapshot(benchmark::State& rounds) {
  const std::string prefix = "/dev/shm/concertina-" + kFolder;
  {
    SnapshotFile snapshot({.prefix = prefix, .key = std::string(64, 'a')}, 0);
    std::int64_t step = 0;
    measure(
        rounds, [] {},
        [&] {
          snapshot.copy({.launch = 1, .rank = 0, .world = 1, .step = ++step}, {}, state().pieces);
          snapshot.seal();
        });
  }
  remove_snapshots(prefix);
}

void copy_in_memory(benchmark::State& rounds) {
  measure(
      rounds, [] {},
      [] { std::memcpy(state().room().data(), state().bytes().data(), state().bytes().size()); });
}

BENCHMARK(save_a_checkpoint)->UseRealTime();
BENCHMARK(write_and_sync)->UseRealTime();
BENCHMARK_CAPTURE(load_a_checkpoint, warm, false)->UseRealTime();
BENCHMARK_CAPTURE(read_the_bytes, warm, false)->UseRealTime();
BENCHMARK_CAPTURE(load_a_checkpoint, cold, true)->UseRealTime();
BENCHMARK_CAPTURE(read_the_bytes, cold, true)->UseRealTime();
BENCHMARK(write_a_snapshot)->UseRealTime();
BENCHMARK(copy_in_memory)->UseRealTime();

}  // namespace
}  // namespace concertina

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  concertina::remove_tree(concertina::kFolder);
}
