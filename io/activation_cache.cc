#include "io/activation_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <random>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "core/log.h"

namespace concertina {
namespace {

constexpr std::uint64_t kProbes = 32, kProbeBytes = 32 << 20;

/// Slots that are spread over the whole tier, as those of a step are.
std::vector<std::uint64_t> probe_slots(const CacheSlots& slots) {
  const std::uint64_t count =
      std::min({slots.count, kProbes, std::max<std::uint64_t>(1, kProbeBytes / slots.entry_bytes)});
  std::vector<std::uint64_t> samples;
  for (std::uint64_t i = 0; i < count; ++i)
    samples.push_back(slots.first + slots.count / count * i);
  return samples;
}

double rate_of(std::uint64_t bytes, std::vector<double> seconds) {
  if (seconds.empty()) return 0;
  const auto middle = seconds.begin() + std::ssize(seconds) / 2;
  std::nth_element(seconds.begin(), middle, seconds.end());
  return static_cast<double>(bytes) / std::max(*middle, 1e-9);
}

/// 32 hex digits that no other owner has.
std::string owner_word(const std::string& owner) {
  return sha256_hex(owner).substr(0, 32);
}

std::string why_off(const char* tier, const Error& error) {
  return fmt::format("no activations are kept in {}: {} ({})", tier, error.message(),
                     error.where());
}

}  // namespace

TierRates measure_tier(CacheTier& tier) {
  const std::uint64_t bytes = tier.slots().entry_bytes;
  // The same in every process: they may measure at the same time.
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 131 >> 3);
  const Sha256Digest prefix = prefix_digest("measurement", "", {});
  const std::vector<std::uint64_t> slots = probe_slots(tier.slots());
  const auto rate = [&](const std::function<bool(const CacheKey&)>& act) {
    std::vector<double> seconds;
    for (const std::uint64_t slot : slots) {
      const double start = now();
      if (act({slot, 0, prefix})) seconds.push_back(now() - start);
    }
    return rate_of(bytes, std::move(seconds));
  };
  const auto write = [&](const CacheKey& key) {
    tier.write(key, data);
    return true;
  };
  // Another process may have cleared it by now: that is no read.
  const auto read = [&](const CacheKey& key) { return tier.read(key, data) == CacheOutcome::hit; };
  TierRates rates;
  rates.write = rate(write);
  rates.read = rate(read);
  tier.evict();
  rates.read_cold = rate(read);
  for (const std::uint64_t slot : slots) tier.clear(slot);
  return rates;
}

CacheVerdict cache_pays(std::uint64_t entry_bytes, double read_bytes_per_s,
                        double forward_seconds) {
  if (!(read_bytes_per_s > 0) || !(forward_seconds > 0) || !std::isfinite(forward_seconds))
    return {false, "it is not known what reading and computing an entry cost"};
  const double read_seconds = static_cast<double>(entry_bytes) / read_bytes_per_s;
  const double ratio = read_seconds / forward_seconds;
  return {ratio < 1,
          fmt::format("reading {:.1f} KiB takes {:.3g} ms, computing them {:.3g} ms: {:.3g}%",
                      static_cast<double>(entry_bytes) / 1024, read_seconds * 1e3,
                      forward_seconds * 1e3, ratio * 100)};
}

ActivationCache::ActivationCache(const CacheOptions& options, bool leader)
    : options_(options), named_(leader) {
  CONCERTINA_CHECK(options.entry_bytes > 0 && !options.owner.empty(), "{} bytes an entry",
                   options.entry_bytes);
  CONCERTINA_CHECK(options.disk_bytes == 0 || !options.disk_directory.empty(), "no directory");
  Sha256 hash;
  hash.update(options.owner);
  owner_ = hash.digest();
  const std::string word = owner_word(options.owner);
  memory_.path = options.memory_path;
  if (memory_.path.empty())
    memory_.path = fmt::format("{}/concertina-cache-{}", options.memory_directory, word);
  disk_.path = fmt::format("{}/activations-{}.cache", options.disk_directory, word);
  if (leader) {
    make(memory_, 0, options.memory_bytes);
    make(disk_, slots(CachePlace::memory), options.disk_bytes);
  } else {
    if (options.memory_bytes > 0) open(memory_);
    if (options.disk_bytes > 0) open(disk_);
  }
  if (!start_fault_.empty()) fault(start_fault_);
}

ActivationCache::~ActivationCache() {
  hide();
}

CacheTier ActivationCache::create(Tier& tier, const CacheSlots& slots) {
  try {
    return CacheTier::create(tier.path, owner_, slots);
  } catch (const Error& error) {
    if (&tier != &memory_ || error.code() != Exit::bad_input) throw;
    log::debug("{}", error.what());
  }
  std::random_device random;
  tier.path += fmt::format("-{:08x}{:08x}", random(), random());
  return CacheTier::create(tier.path, owner_, slots);
}

void ActivationCache::make(Tier& tier, std::uint64_t first, std::uint64_t budget) {
  try {
    const CacheSlots slots = fit_slots(first, options_.samples, options_.entry_bytes, budget);
    if (slots.count > 0) {
      tier.file.emplace(create(tier, slots));
      return;
    }
    // No budget, or a smaller one than before: what a killed launch has left goes all the same.
    CacheTier::remove(tier.path, owner_);
    if (budget > 0 && first < options_.samples)
      throw_input(fmt::format("{} bytes hold no entry of {} bytes", budget, options_.entry_bytes),
                  tier.name, "a larger budget, or 0");
  } catch (const Error& error) {
    if (budget > 0)
      start_fault_ += (start_fault_.empty() ? "" : "; ") + why_off(tier.name, error);
    else
      log::debug("{}", error.what());
  }
}

void ActivationCache::open(Tier& tier) {
  try {
    tier.file.emplace(CacheTier::open(tier.path, owner_, options_.entry_bytes));
  } catch (const Error& error) {
    // The leader could not make it either, and has said so.
    if (error.system_error() == ENOENT)
      log::debug("{}", error.what());
    else
      start_fault_ += (start_fault_.empty() ? "" : "; ") + why_off(tier.name, error);
  }
}

void ActivationCache::hide() {
  if (!named_) return;
  named_ = false;
  for (const Tier* tier : {&memory_, &disk_}) {
    if (!tier->file) continue;
    try {
      CacheTier::remove(tier->path, owner_);
    } catch (const Error& error) {
      log::debug("{}", error.what());
    }
  }
}

ActivationCache::Tier* ActivationCache::find(std::uint64_t slot) {
  for (Tier* tier : {&memory_, &disk_})
    if (tier->has(slot)) return tier->off.load(std::memory_order_relaxed) ? nullptr : tier;
  return nullptr;
}

std::optional<CacheKey> ActivationCache::held(std::uint64_t slot) {
  Tier* const tier = find(slot);
  try {
    if (tier != nullptr) return tier->file->held(slot);
  } catch (const Error& error) {
    turn_off(*tier, error);
  }
  return {};
}

bool ActivationCache::read(const CacheKey& key, std::span<std::byte> out) {
  Tier* const tier = find(key.slot);
  CacheOutcome outcome = CacheOutcome::miss;
  try {
    if (tier != nullptr) outcome = tier->file->read(key, out);
  } catch (const Error& error) {
    turn_off(*tier, error);
  }
  if (outcome == CacheOutcome::damaged)
    fault(fmt::format("{} has a damaged entry in slot {} ({}): it is computed again", tier->name,
                      key.slot, tier->path));
  ++(outcome == CacheOutcome::hit ? tier->hits : misses_);
  return outcome == CacheOutcome::hit;
}

bool ActivationCache::write(const CacheKey& key, std::span<const std::byte> data) {
  Tier* const tier = find(key.slot);
  if (tier == nullptr) return false;
  try {
    tier->file->write(key, data);
  } catch (const Error& error) {
    turn_off(*tier, error);
    return false;
  }
  ++writes_;
  return true;
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

CacheCounts ActivationCache::counts() const {
  return {memory_.hits, disk_.hits, misses_, writes_, faults_};
}

CacheRates ActivationCache::measure() {
  CacheRates rates;
  for (const auto& [tier, rate] : {std::pair{&memory_, &rates.memory}, {&disk_, &rates.disk}}) {
    if (!tier->file || tier->off) continue;
    try {
      *rate = measure_tier(*tier->file);
    } catch (const Error& error) {
      turn_off(*tier, error);
    }
  }
  return rates;
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

void ActivationCache::turn_off(Tier& tier, const Error& error) {
  if (!tier.off.exchange(true)) fault(why_off(tier.name, error));
}

}  // namespace concertina
