#include "experiments/cache/cache_room.h"

#include <fmt/format.h>
#include <algorithm>

#include "core/error.h"
#include "core/text/number_text.h"

namespace concertina {
namespace {

bool has_budget(const RunConfig& config) {
  return config.cache.memory.bytes > 0 || config.cache.disk.bytes > 0;
}

bool ever_freezes(const RunConfig& config) {
  return config.freeze.policy != "none" || config.freeze.units > 0;
}

/// Throws if the budget is too small for one sample.
void require_room(const RunConfig& config, std::string_view key, ByteSize budget,
                  std::uint64_t entry_bytes) {
  const auto bytes = static_cast<std::uint64_t>(budget.bytes);
  if (bytes == 0 || fit_slots(0, 1, entry_bytes, bytes).count > 0) return;
  const std::uint64_t least = CacheSlots{0, 1, entry_bytes}.file_bytes();
  const auto kib = static_cast<std::int64_t>(align_up(least, 4096) / 1024);
  throw_input(fmt::format("{} = \"{}\" is too small: the frozen units' output for one sample takes "
                          "{} bytes, and the smallest cache file with its headers and whole pages "
                          "needs {} KiB",
                          key, to_text(budget), entry_bytes, kib),
              config.where(key), fmt::format("{} = \"{} KiB\" or more, or 0", key, kib));
}

}  // namespace

nlohmann::ordered_json to_json(const CacheUse& use) {
  return {{"memory_hits", use.memory_hits}, {"disk_hits", use.disk_hits}, {"moved", use.moved},
          {"misses", use.misses},           {"writes", use.writes},       {"faults", use.faults},
          {"samples", use.samples},         {"slots", use.slots}};
}

namespace {

/// Explains why samples had to be computed, for reasons other than faults.
std::string why_computed(const CacheUse& use) {
  if (use.misses == 0 || use.samples == 0) return "";
  const auto number = [](std::uint64_t value) { return grouped(static_cast<std::int64_t>(value)); };
  std::string text =
      fmt::format("; {} were computed, each sample at least once", number(use.misses));
  if (use.slots < use.samples)
    text += fmt::format(": the budgets hold {} of the {} samples of an epoch", number(use.slots),
                        number(use.samples));
  return text;
}

}  // namespace

std::string text_of(const CacheUse& use) {
  const std::uint64_t hits = use.memory_hits + use.disk_hits, all = hits + use.misses;
  const std::string faults = counted(static_cast<std::int64_t>(use.faults), "fault");
  if (all == 0 && use.faults > 0)
    return fmt::format("cached activations: none could be stored ({}: see the warnings)", faults);
  if (all == 0) return "cached activations: none requested";
  return fmt::format(
      "cached activations: {:.0f}% of {} samples with frozen units were read ({} from memory, {} "
      "from disk), {} written{}{}",
      100.0 * static_cast<double>(hits) / static_cast<double>(all),
      grouped(static_cast<std::int64_t>(all)), grouped(static_cast<std::int64_t>(use.memory_hits)),
      grouped(static_cast<std::int64_t>(use.disk_hits)),
      grouped(static_cast<std::int64_t>(use.writes)), use.faults > 0 ? ", " + faults : "",
      why_computed(use));
}

bool uses_cache(const RunConfig& config) {
  return has_budget(config) && ever_freezes(config);
}

std::string idle_cache(const RunConfig& config) {
  if (!has_budget(config) || ever_freezes(config)) return "";
  return fmt::format("{} is set, but nothing is ever frozen: no activations are cached",
                     config.cache.memory.bytes > 0 ? "cache.memory" : "cache.disk");
}

CacheRoom cache_room(const RunConfig& config, const ModelSpec& model, std::uint64_t samples) {
  if (!uses_cache(config)) return {};
  const auto per_microbatch = static_cast<std::uint64_t>(model.samples);
  CacheRoom room{.samples = samples,
                 .entry_bytes = model.boundary_bytes / per_microbatch,
                 .memory = {},
                 .disk = {}};
  CONCERTINA_CHECK(room.entry_bytes * per_microbatch == model.boundary_bytes && samples > 0,
                   "{} bytes for {} samples, {} samples per epoch", model.boundary_bytes,
                   per_microbatch, samples);
  const auto bytes = [](ByteSize size) { return static_cast<std::uint64_t>(size.bytes); };
  require_room(config, "cache.memory", config.cache.memory, room.entry_bytes);
  require_room(config, "cache.disk", config.cache.disk, room.entry_bytes);
  room.memory = fit_slots(0, samples, room.entry_bytes, bytes(config.cache.memory));
  room.disk = fit_slots(room.memory.count, samples, room.entry_bytes, bytes(config.cache.disk));
  return room;
}

int cached_units(const Layout& layout) {
  int units = layout.frozen_units;
  for (const Pipeline& pipeline : layout.pipelines)
    units = std::min(units, pipeline.stages[0].last_unit);
  return units;
}

}  // namespace concertina
