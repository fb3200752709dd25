#include "experiments/run/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "core/cpu/isa.h"
#include "core/cuda/backend.h"
#include "core/cuda/base/sizes.h"
#include "core/cuda/device.h"
#include "core/error.h"
#include "core/host_name.h"
#include "core/log.h"
#include "core/number_text.h"
#include "experiments/machine/gather.h"
#include "experiments/run/memory_advice.h"
#include "experiments/run/planning.h"
#include "experiments/run/predict_memory.h"
#include "experiments/run/trainer.h"

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

cuda::AttentionBy attention_of(const RunConfig& config) {
  using cuda::AttentionBy, cuda::kAttentionNames;
  const auto name =
      std::find(kAttentionNames.begin(), kAttentionNames.end(), config.numerics.attention);
  const auto by = static_cast<AttentionBy>(name - kAttentionNames.begin());
  const bool may = by != AttentionBy::automatic || precision_of(config).storage == DType::bf16;
  return may ? by : AttentionBy::own;
}

/// The same on every rank, since bits are those of the kernels: cuDNN's only where all have it, of
/// one version. Collective.
cuda::AttentionBy agreed_attention(const RunConfig& config, int gpu, Communicator& world) {
  const cuda::AttentionBy wanted = attention_of(config);
  if (wanted == cuda::AttentionBy::own || world.size() == 1) return wanted;
  const std::vector<nlohmann::json> all =
      gather_json(world, {{"refusal", cuda::dnn_refusal(gpu)}, {"version", cuda::dnn_status()}});
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    std::string why = all[rank]["refusal"];
    if (why.empty() && all[rank]["version"] != all[0]["version"])
      why = fmt::format("cuDNN {}, not {} as on rank 0", all[rank]["version"].get<std::string>(),
                        all[0]["version"].get<std::string>());
    if (why.empty()) continue;
    if (wanted == cuda::AttentionBy::cudnn)
      throw_input(fmt::format("attention cannot be cuDNN's: rank {}: {}", rank, why),
                  config.where("numerics.attention"),
                  "numerics.attention = \"auto\", or one cuDNN on all machines");
    if (world.rank() == 0) log::info("attention by our own kernels: rank {}: {}", rank, why);
    return cuda::AttentionBy::own;
  }
  return wanted;
}

cuda::BackendOptions options_of(const RunConfig& config, int gpu, cuda::AttentionBy attention) {
  cuda::BackendOptions options{.device = gpu, .attention = attention};
  if (!config.run.graphs) options.graphs = 0;
  return options;
}

/// By the instruction set that `numerics.isa` names; this process keeps to it.
std::unique_ptr<Backend> make_cpu(const RunConfig& config, int threads) {
  const std::string& isa = config.numerics.isa;
  if (isa == "auto") return make_cpu_backend(threads);
  const std::vector<cpu::Isa> all = cpu::available_isas();
  if (std::none_of(all.begin(), all.end(), [&](const cpu::Isa& one) { return one.name == isa; }))
    throw_input(fmt::format("this processor has no {}", isa), config.where("numerics.isa"),
                fmt::format("numerics.isa = \"auto\", or \"{}\"", all.back().name));
  cpu::bind_onednn(isa);
  return make_cpu_backend(threads, isa);
}

std::unique_ptr<Backend> make_backend(const RunConfig& config, int threads,
                                      const cuda::BackendOptions& options) {
  std::unique_ptr<Backend> backend =
      on_gpu(config) ? cuda::make_cuda_backend(options) : make_cpu(config, threads);
  backend->require(precision_of(config));
  return backend;
}

/// Ranks that share a device, and what they want of it.
struct Sharers {
  std::vector<int> ranks;
  std::vector<std::size_t> wanted;
  std::size_t free = 0, unplanned = 0, shared = 0;
};

std::size_t without(std::size_t bytes, std::size_t others) {
  return bytes - std::min(bytes, others);
}

std::string text(const Sharers& sharers) {
  std::string each;
  for (std::size_t i = 0; i < sharers.ranks.size(); ++i)
    each += fmt::format("{}rank {} needs {}", i == 0 ? "" : ", ", sharers.ranks[i],
                        gib_text(sharers.wanted[i]));
  if (sharers.shared > 0) each += fmt::format(", cache.memory {}", gib_text(sharers.shared));
  return each;
}

/// The memory of a GPU, or of the host.
std::optional<Memory::Pool> pool_of(const Trainer& trainer) {
  if (const auto pool = trainer.tensor_memory().pool()) return pool;
  const std::optional<MemoryBytes> host = memory();
  if (!host) return {};
  return Memory::Pool{.name = "memory", .free = host->available, .unplanned = 0};
}

}  // namespace

std::unique_ptr<Backend> make_backend(const RunConfig& config, int threads, int gpu) {
  return make_backend(config, threads, options_of(config, gpu, attention_of(config)));
}

std::unique_ptr<Backend> make_backend(const RunConfig& config, int threads, Communicator& world) {
  if (!on_gpu(config)) return make_backend(config, threads);
  const int rank = local_rank(world);  // before anything that one rank's machine may lack
  const int gpu = rank % std::max(1, cuda::device_count());
  return make_backend(config, threads,
                      options_of(config, gpu, agreed_attention(config, gpu, world)));
}

std::unique_ptr<Backend> make_sizing_backend(const RunConfig& config, int threads) {
  return on_gpu(config) ? cuda::make_sizing_backend(attention_of(config))
                        : make_cpu(config, threads);
}

std::optional<MemoryBytes> device_memory(const RunConfig& config) {
  if (!on_gpu(config)) return memory();
  const std::vector<cuda::Device> devices = cuda::devices();
  if (devices.empty()) return {};
  return MemoryBytes{devices[0].total_bytes, without(devices[0].free_bytes, cuda::kUnplannedBytes),
                     "GPU 0"};
}

namespace {

/// Every device of the run by name, with the ranks that share it. `wanted`: of this rank; `shared`:
/// see require_memory(). Collective.
std::map<std::string, Sharers> gather_sharers(std::size_t wanted, Trainer& trainer,
                                              std::size_t shared = 0) {
  const std::optional<Memory::Pool> pool = pool_of(trainer);
  const std::string own = pool ? host_name() + ", " + pool->name : "";
  const std::vector<nlohmann::json> all =
      gather_json(trainer.world(), {{"pool", own},
                                    {"free", pool ? pool->free : 0},
                                    {"unplanned", pool ? pool->unplanned : 0},
                                    {"wanted", wanted},
                                    {"shared", on_gpu(trainer.config()) ? 0 : shared}});
  std::map<std::string, Sharers> pools;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank]["pool"] == "") continue;
    Sharers& sharers = pools[all[rank]["pool"]];
    const std::size_t free = all[rank]["free"];
    sharers.free = sharers.ranks.empty() ? free : std::min(sharers.free, free);
    sharers.ranks.push_back(static_cast<int>(rank));
    sharers.wanted.push_back(all[rank]["wanted"]);
    sharers.unplanned += all[rank]["unplanned"].get<std::size_t>();
    sharers.shared = all[rank]["shared"];
  }
  return pools;
}

/// Throws on all ranks if those that share a device want more than it has free.
void require_free(std::size_t wanted, Trainer& trainer, int threads, std::size_t shared = 0) {
  const RunConfig& config = trainer.config();
  Communicator& world = trainer.world();
  for (const auto& [name, sharers] : gather_sharers(wanted, trainer, shared)) {
    const std::size_t free = without(sharers.free, sharers.unplanned);
    const std::size_t sum =
        std::accumulate(sharers.wanted.begin(), sharers.wanted.end(), sharers.shared);
    if (sum > free)
      throw_input(fmt::format("{}: {}, {} are free", name, text(sharers), gib_text(free)),
                  on_gpu(config) ? config.where("run.device") : name,
                  sharers.shared > 0 && sum - sharers.shared <= free
                      ? "a smaller cache.memory"
                      : what_fits(config, world.size(), threads, free / sharers.ranks.size()));
  }
}

}  // namespace

std::optional<std::size_t> free_for_rank(Trainer& trainer) {
  for (const auto& [name, sharers] : gather_sharers(0, trainer))
    if (std::ranges::find(sharers.ranks, trainer.world().rank()) != sharers.ranks.end())
      return without(sharers.free, sharers.unplanned) / sharers.ranks.size();
  return std::nullopt;
}

void require_memory(Trainer& trainer, int threads, std::size_t shared) {
  require_free(trainer.memory().total(), trainer, threads, shared);
}

void require_memory_for(const Assignment& next, Trainer& trainer, int threads) {
  const int rank = trainer.world().rank();
  const std::size_t held = trainer.state().bytes() + trainer.engine().arena().capacity();
  const std::size_t after =
      predict_memory_of(rank, trainer.config(), trainer.job(), next, threads).total();
  const std::size_t meanwhile =
      trainer.plan_adoption(next).peak_bytes[static_cast<std::size_t>(rank)];
  require_free(without(std::max(after, meanwhile), held), trainer, threads);
}

}  // namespace concertina
