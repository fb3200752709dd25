#include "experiments/cache/cache_use.h"

#include <fmt/format.h>

#include "core/number_text.h"

namespace concertina {

nlohmann::ordered_json to_json(const CacheUse& use) {
  return {{"memory_hits", use.memory_hits}, {"disk_hits", use.disk_hits}, {"moved", use.moved},
          {"misses", use.misses},           {"writes", use.writes},       {"faults", use.faults}};
}

std::optional<CacheUse> cache_use_from(const nlohmann::json& result) {
  try {
    const nlohmann::json& cache = result.at("cache");
    return CacheUse{.memory_hits = cache.at("memory_hits"),
                    .disk_hits = cache.at("disk_hits"),
                    .moved = cache.at("moved"),
                    .misses = cache.at("misses"),
                    .writes = cache.at("writes"),
                    .faults = cache.at("faults")};
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

std::string text_of(const CacheUse& use) {
  const std::uint64_t hits = use.memory_hits + use.disk_hits, all = hits + use.misses;
  const std::string faults = counted(static_cast<std::int64_t>(use.faults), "fault");
  if (all == 0 && use.faults > 0)
    return fmt::format("cached activations: none could be kept ({}: see the warnings)", faults);
  if (all == 0) return "cached activations: none was asked for";
  return fmt::format(
      "cached activations: {:.0f}% of {} samples with frozen units were read ({} from memory, {} "
      "from disk), {} written{}",
      100.0 * static_cast<double>(hits) / static_cast<double>(all),
      grouped(static_cast<std::int64_t>(all)), grouped(static_cast<std::int64_t>(use.memory_hits)),
      grouped(static_cast<std::int64_t>(use.disk_hits)),
      grouped(static_cast<std::int64_t>(use.writes)), use.faults > 0 ? ", " + faults : "");
}

}  // namespace concertina
