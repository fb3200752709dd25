#include "experiments/run/devices.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/cpu/isa.h"
#include "core/cuda/backend.h"
#include "core/cuda/base/sizes.h"
#include "core/cuda/device.h"
#include "core/error.h"
#include "core/host_name.h"
#include "core/log.h"
#include "experiments/machine/gather.h"
#include "experiments/run/planning.h"

namespace concertina {
namespace {

bool on_gpu(const RunConfig& config) {
  return config.run.device == "cuda";
}

/// This rank's index among the ranks on its host.
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

/// The attention kernels, which must be the same on all ranks for bit-identical results: cuDNN's
/// only if all ranks have the same version. Collective.
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
      throw_input(fmt::format("cannot use cuDNN's attention: rank {}: {}", rank, why),
                  config.where("numerics.attention"),
                  "numerics.attention = \"auto\", or the same cuDNN on all machines");
    if (world.rank() == 0) log::info("using built-in attention kernels: rank {}: {}", rank, why);
    return cuda::AttentionBy::own;
  }
  return wanted;
}

cuda::BackendOptions options_of(const RunConfig& config, int gpu, cuda::AttentionBy attention) {
  cuda::BackendOptions options{.device = gpu, .attention = attention};
  if (!config.run.graphs) options.graphs = 0;
  return options;
}

/// Creates the backend for the instruction set `numerics.isa`, which this process then keeps.
std::unique_ptr<Backend> make_cpu(const RunConfig& config, int threads) {
  const std::string& isa = config.numerics.isa;
  if (isa == "auto") return make_cpu_backend(threads);
  const std::vector<cpu::Isa> all = cpu::available_isas();
  if (std::none_of(all.begin(), all.end(), [&](const cpu::Isa& one) { return one.name == isa; }))
    throw_input(fmt::format("this processor does not support {}", isa),
                config.where("numerics.isa"),
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

}  // namespace

std::unique_ptr<Backend> make_backend(const RunConfig& config, int threads, int gpu) {
  return make_backend(config, threads, options_of(config, gpu, attention_of(config)));
}

std::unique_ptr<Backend> make_backend(const RunConfig& config, int threads, Communicator& world) {
  if (!on_gpu(config)) return make_backend(config, threads);
  const int rank = local_rank(world);  // collective, so before anything that may throw on one rank
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
  const std::size_t free = devices[0].free_bytes;
  return MemoryBytes{devices[0].total_bytes, free - std::min(free, cuda::kUnplannedBytes), "GPU 0"};
}

}  // namespace concertina
