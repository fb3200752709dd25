#include "experiments/run/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "core/cuda/backend.h"
#include "core/cuda/device.h"
#include "core/error.h"
#include "experiments/run/gather.h"
#include "experiments/run/memory_advice.h"
#include "experiments/run/rank_engine.h"

namespace concertina {
namespace {

bool on_gpu(const RunConfig& config) {
  return config.run.device == "cuda";
}

/// This rank's number among those of its host.
int local_rank(Communicator& world) {
  const std::vector<nlohmann::json> hosts = gather_json(world, host_name());
  const auto own = hosts.begin() + world.rank();
  return static_cast<int>(std::count(hosts.begin(), own, *own));
}

/// Ranks that share a device, and what they want of it.
struct Sharers {
  std::vector<int> ranks;
  std::vector<std::size_t> wanted;
  std::size_t free = 0, unplanned = 0;
};

std::size_t without(std::size_t bytes, std::size_t others) {
  return bytes - std::min(bytes, others);
}

std::string text(const Sharers& sharers) {
  std::string each;
  for (std::size_t i = 0; i < sharers.ranks.size(); ++i)
    each += fmt::format("{}rank {} needs {}", i == 0 ? "" : ", ", sharers.ranks[i],
                        gib_text(sharers.wanted[i]));
  return each;
}

}  // namespace

std::unique_ptr<Backend> make_backend(const RunConfig& config, int threads, int gpu) {
  cuda::BackendOptions options{.device = gpu};
  if (!config.run.graphs) options.graphs = 0;
  std::unique_ptr<Backend> backend =
      on_gpu(config) ? cuda::make_cuda_backend(options) : make_cpu_backend(threads);
  backend->require(precision_of(config));
  return backend;
}

std::unique_ptr<Backend> make_backend(const RunConfig& config, int threads, Communicator& world) {
  if (!on_gpu(config)) return make_backend(config, threads);
  const int rank = local_rank(world);  // before anything that one rank's machine may lack
  return make_backend(config, threads, rank % std::max(1, cuda::device_count()));
}

std::unique_ptr<Backend> make_sizing_backend(const RunConfig& config, int threads) {
  return on_gpu(config) ? cuda::make_sizing_backend() : make_cpu_backend(threads);
}

std::optional<MemoryBytes> device_memory(const RunConfig& config) {
  if (!on_gpu(config)) return memory();
  const std::vector<cuda::Device> devices = cuda::devices();
  if (devices.empty()) return {};
  return MemoryBytes{devices[0].total_bytes, without(devices[0].free_bytes, cuda::kUnplannedBytes),
                     "GPU 0"};
}

void require_memory(const RankEngine& engine, const RunConfig& config, int threads,
                    Communicator& world) {
  const std::optional<Memory::Pool> pool = engine.tensor_memory().pool();
  const std::string own = pool ? host_name() + ", " + pool->name : "";
  const std::vector<nlohmann::json> all =
      gather_json(world, {{"pool", own},
                          {"free", pool ? pool->free : 0},
                          {"unplanned", pool ? pool->unplanned : 0},
                          {"wanted", engine.memory().total()}});
  std::map<std::string, Sharers> pools;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank]["pool"] == "") continue;
    Sharers& sharers = pools[all[rank]["pool"]];
    sharers.ranks.push_back(static_cast<int>(rank));
    sharers.wanted.push_back(all[rank]["wanted"]);
    const std::size_t free = all[rank]["free"];
    sharers.free = sharers.free == 0 ? free : std::min(sharers.free, free);
    sharers.unplanned += all[rank]["unplanned"].get<std::size_t>();
  }
  for (const auto& [name, sharers] : pools) {
    const std::size_t free = without(sharers.free, sharers.unplanned);
    const std::size_t sum =
        std::accumulate(sharers.wanted.begin(), sharers.wanted.end(), std::size_t{0});
    if (sum > free)
      throw_input(fmt::format("{}: {}, {} are free", name, text(sharers), gib_text(free)),
                  config.where("run.device"),
                  what_fits(engine.run(), config, threads, free / sharers.ranks.size()));
  }
}

}  // namespace concertina
