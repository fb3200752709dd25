#include "experiments/predict/predict_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "core/error.h"
#include "core/host_name.h"
#include "core/text/number_text.h"
#include "experiments/machine/gather.h"

namespace concertina {
namespace {

bool on_gpu(const Trainer& trainer) {
  return trainer.config().run.device == "cuda";
}

/// Ranks that share a device, and the bytes that they need.
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

/// The memory pool of a GPU or of the host.
std::optional<Memory::Pool> pool_of(const Trainer& trainer) {
  if (const auto pool = trainer.tensor_memory().pool()) return pool;
  const std::optional<MemoryBytes> host = memory();
  if (!host) return {};
  return Memory::Pool{.name = "memory", .free = host->available, .unplanned = 0};
}

/// Every device of the run by name, and the ranks that share it. `wanted`: bytes needed by this
/// rank; `shared`: see require_memory(). Collective.
std::map<std::string, Sharers> gather_sharers(std::size_t wanted, Trainer& trainer,
                                              std::size_t shared = 0) {
  const std::optional<Memory::Pool> pool = pool_of(trainer);
  const std::string own = pool ? host_name() + ", " + pool->name : "";
  const std::vector<nlohmann::json> all =
      gather_json(trainer.world(), {{"pool", own},
                                    {"free", pool ? pool->free : 0},
                                    {"unplanned", pool ? pool->unplanned : 0},
                                    {"wanted", wanted},
                                    {"shared", on_gpu(trainer) ? 0 : shared}});
  std::map<std::string, Sharers> pools;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank]["pool"].get<std::string>().empty()) continue;
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

/// Throws on all ranks if the ranks that share a device need more than it has free.
void require_free(std::size_t wanted, Trainer& trainer, int threads, std::size_t shared = 0) {
  const RunConfig& config = trainer.config();
  Communicator& world = trainer.world();
  for (const auto& [name, sharers] : gather_sharers(wanted, trainer, shared)) {
    const std::size_t free = without(sharers.free, sharers.unplanned);
    const std::size_t sum =
        std::accumulate(sharers.wanted.begin(), sharers.wanted.end(), sharers.shared);
    if (sum > free)
      throw_input(fmt::format("{}: {}, but {} is free", name, text(sharers), gib_text(free)),
                  on_gpu(trainer) ? config.where("run.device") : name,
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
