#include "io/activation_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/clock.h"
#include "core/log.h"
#include "core/step_history.h"

namespace concertina {
namespace {

constexpr std::uint64_t kProbes = 32, kProbeBytes = 32 << 20;

/// Slots spread over the whole tier, like those that a step reads.
std::vector<std::uint64_t> probe_slots(const CacheSlots& slots) {
  const std::uint64_t count =
      std::min({slots.count, kProbes, std::max<std::uint64_t>(1, kProbeBytes / slots.entry_bytes)});
  std::vector<std::uint64_t> samples;
  for (std::uint64_t i = 0; i < count; ++i)
    samples.push_back(slots.first + slots.count / count * i);
  return samples;
}

std::string why_off(const char* tier, const Error& error) {
  return fmt::format("activations are not cached in {}: {} ({})", tier, error.message(),
                     error.where());
}

/// Returns the median time of a hit in seconds, or 0 if there was none.
double hit_seconds(CacheTier& tier) {
  // All processes have the same data, so they may measure at the same time.
  std::vector<std::byte> data(tier.slots().entry_bytes);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 131 >> 3);
  const Sha256Digest prefix = prefix_digest("measurement", "", {});
  const std::vector<std::uint64_t> slots = probe_slots(tier.slots());
  for (const std::uint64_t slot : slots) tier.write({slot, 0, prefix}, data);
  std::vector<double> seconds;
  for (const std::uint64_t slot : slots) {
    const double start = now();
    // Another process may have cleared the slot by now, which makes this a miss.
    if (tier.read({slot, 0, prefix}, data) == CacheOutcome::hit) seconds.push_back(now() - start);
  }
  for (const std::uint64_t slot : slots) tier.clear(slot);
  return seconds.empty() ? 0 : std::max(median(std::move(seconds)), 1e-9);
}

}  // namespace

CacheVerdict cache_pays(std::uint64_t entry_bytes, double read_seconds, double forward_seconds) {
  if (!(read_seconds > 0) || !(forward_seconds > 0) || !std::isfinite(read_seconds) ||
      !std::isfinite(forward_seconds))
    return {false, "the cost of reading or computing an entry is unknown"};
  const double ratio = read_seconds / forward_seconds;
  return {ratio < 1,
          fmt::format("reading {:.1f} KiB takes {:.3g} ms, recomputing it {:.3g} ms: {:.3g}%",
                      static_cast<double>(entry_bytes) / 1024, read_seconds * 1e3,
                      forward_seconds * 1e3, ratio * 100)};
}

ActivationCache::ActivationCache(const CacheOptions& options, const nlohmann::json& leader)
    : options_(options) {
  CONCERTINA_CHECK(options.entry_bytes > 0, "{} bytes per entry", options.entry_bytes);
  CONCERTINA_CHECK(options.disk_bytes == 0 || !options.disk_directory.empty(), "no directory");
  std::string faults;
  const auto start = [&](Tier& tier, const std::function<void()>& make) {
    try {
      make();
    } catch (const Error& error) {
      faults += (faults.empty() ? "" : "; ") + why_off(tier.name, error);
    }
  };
  if (leader.is_null()) {
    start(memory_, [&] { make(memory_, options.memory_directory, 0, options.memory_bytes); });
    start(disk_, [&] {
      make(disk_, options.disk_directory, slots(CachePlace::memory), options.disk_bytes);
    });
  } else {
    for (Tier* tier : {&memory_, &disk_})
      if (const nlohmann::json& shared = leader[tier->name]; !shared.is_null())
        start(*tier, [&] { tier->file.emplace(CacheTier::open(shared)); });
  }
  if (!faults.empty()) fault(faults);
}

void ActivationCache::make(Tier& tier, const std::string& directory, std::uint64_t first,
                           std::uint64_t budget) {
  if (budget == 0) return;
  const CacheSlots slots = fit_slots(first, options_.samples, options_.entry_bytes, budget);
  if (slots.count > 0)
    tier.file.emplace(CacheTier::create(directory, slots));
  else if (first < options_.samples)
    throw_input(
        fmt::format("no entry of {1} bytes fits into {0} bytes", budget, options_.entry_bytes),
        tier.name, "use a larger budget, or 0");
}

nlohmann::json ActivationCache::shared() const {
  nlohmann::json tiers = nlohmann::json::object();
  for (const Tier* tier : {&memory_, &disk_})
    tiers[tier->name] = tier->file ? tier->file->shared() : nlohmann::json();
  return tiers;
}

ActivationCache::Tier* ActivationCache::find(std::uint64_t slot) {
  for (Tier* tier : {&memory_, &disk_})
    if (tier->has(slot)) return tier->off.load(std::memory_order_relaxed) ? nullptr : tier;
  return nullptr;
}

template <class Use>
bool ActivationCache::attempt(Tier* tier, const Use& use) {
  if (tier == nullptr) return false;
  try {
    use(*tier->file);
    return true;
  } catch (const Error& error) {
    if (!tier->off.exchange(true)) fault(why_off(tier->name, error));
    return false;
  }
}

std::optional<CacheKey> ActivationCache::held(std::uint64_t slot) {
  std::optional<CacheKey> key;
  attempt(find(slot), [&](CacheTier& file) { key = file.held(slot); });
  return key;
}

bool ActivationCache::read(const CacheKey& key, std::span<std::byte> out) {
  Tier* const tier = find(key.slot);
  CacheOutcome outcome = CacheOutcome::miss;
  attempt(tier, [&](CacheTier& file) { outcome = file.read(key, out); });
  if (outcome == CacheOutcome::damaged)
    fault(fmt::format("{} has a damaged entry in slot {} ({}); recomputing it", tier->name,
                      key.slot, tier->file->directory()));
  ++(outcome == CacheOutcome::hit ? tier->hits : misses_);
  return outcome == CacheOutcome::hit;
}

bool ActivationCache::write(const CacheKey& key, std::span<const std::byte> data) {
  const bool written = attempt(find(key.slot), [&](CacheTier& file) { file.write(key, data); });
  if (written) ++writes_;
  return written;
}

void ActivationCache::prefetch(std::span<const std::uint64_t> slots) {
  for (const std::uint64_t slot : slots)
    if (Tier* const tier = find(slot); tier == &disk_) tier->file->prefetch(slot);
}

CachePlace ActivationCache::place(std::uint64_t slot) const {
  if (memory_.has(slot)) return CachePlace::memory;
  return disk_.has(slot) ? CachePlace::disk : CachePlace::nowhere;
}

std::uint64_t ActivationCache::slots(CachePlace place) const {
  const auto count = [](const Tier& tier) { return tier.file ? tier.file->slots().count : 0; };
  const std::uint64_t memory = count(memory_), disk = count(disk_);
  if (place == CachePlace::nowhere)
    return options_.samples - std::min(options_.samples, memory + disk);
  return place == CachePlace::memory ? memory : disk;
}

double ActivationCache::measure_read() {
  double seconds = 0, slots = 0;
  for (Tier* const tier : {&memory_, &disk_}) {
    if (!tier->file || tier->off) continue;
    attempt(tier, [&](CacheTier& file) {
      const double hit = hit_seconds(file);
      const double count = hit > 0 ? static_cast<double>(file.slots().count) : 0;
      seconds += count * hit;
      slots += count;
    });
  }
  return slots > 0 ? seconds / slots : 0;
}

void ActivationCache::fault(const std::string& text) {
  ++faults_;
  if (warned_.exchange(true)) {
    log::debug("{}", text);
  } else if (options_.warn) {
    options_.warn(text);
  } else {
    log::warn("{}", text);
  }
}

}  // namespace concertina
