#include "io/activation_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <string_view>

#include "core/log.h"

namespace concertina {
namespace {

/// 32 hex digits that no other owner has.
std::string owner_word(const std::string& owner) {
  return sha256_hex(owner).substr(0, 32);
}

std::string why_off(const char* tier, const Error& error) {
  return fmt::format("no activations are kept in {}: {} ({})", tier, error.message(),
                     error.where());
}

}  // namespace

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

ActivationCache::Tier* ActivationCache::find(std::uint64_t sample) {
  for (Tier* tier : {&memory_, &disk_})
    if (tier->has(sample)) return tier->off.load(std::memory_order_relaxed) ? nullptr : tier;
  return nullptr;
}

std::optional<CacheKey> ActivationCache::held(std::uint64_t sample) {
  Tier* const tier = find(sample);
  try {
    if (tier != nullptr) return tier->file->held(sample);
  } catch (const Error& error) {
    turn_off(*tier, error);
  }
  return {};
}

bool ActivationCache::read(const CacheKey& key, std::span<std::byte> out) {
  Tier* const tier = find(key.sample);
  CacheOutcome outcome = CacheOutcome::miss;
  try {
    if (tier != nullptr) outcome = tier->file->read(key, out);
  } catch (const Error& error) {
    turn_off(*tier, error);
  }
  if (outcome == CacheOutcome::damaged)
    fault(fmt::format("{} has a damaged entry of sample {} ({}): it is computed again", tier->name,
                      key.sample, tier->path));
  ++(outcome == CacheOutcome::hit ? tier->hits : misses_);
  return outcome == CacheOutcome::hit;
}

bool ActivationCache::write(const CacheKey& key, std::span<const std::byte> data) {
  Tier* const tier = find(key.sample);
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

void ActivationCache::prefetch(std::span<const std::uint64_t> samples) {
  for (const std::uint64_t sample : samples)
    if (Tier* const tier = find(sample); tier == &disk_) tier->file->prefetch(sample);
}

CachePlace ActivationCache::place(std::uint64_t sample) const {
  if (memory_.has(sample)) return CachePlace::memory;
  return disk_.has(sample) ? CachePlace::disk : CachePlace::nowhere;
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
