#include "experiments/cache/auto_cache.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/index.h"
#include "core/log.h"
#include "core/step_history.h"
#include "experiments/cache/sample_places.h"
#include "experiments/machine/gather.h"
#include "experiments/machine/machine.h"

namespace concertina {
namespace {

using nlohmann::ordered_json;

constexpr const char* kOtherBits =
    "this processor's kernels may compute different bits for a sample at another position in its "
    "microbatch";

/// The properties that distinguish prefixes with the same weights in different models.
std::string text_of_units(const ModelSpec& model, int units) {
  std::string text = fmt::format("{} x {} tokens, {}", model.samples, model.tokens_per_sample,
                                 name_of(model.activation));
  for (int u = 0; u < units; ++u) {
    text += "\n" + model.units[at(u)].name;
    for (const ParameterSpec& parameter : model.units[at(u)].parameters)
      text += fmt::format(" {}[{}]", parameter.name, fmt::join(parameter.shape, ","));
  }
  return text;
}

}  // namespace

AutoCache::AutoCache(Trainer& trainer, const Options& options)
    : trainer_(trainer),
      decided_(options.decided),
      source_(options.dataset, data_seed(trainer.config()), trainer.config().batch.global),
      room_(cache_room(trainer.config(), trainer.job().model, source_.samples_of_views())),
      per_microbatch_(static_cast<std::size_t>(trainer.job().model.samples)),
      numerics_(options.numerics),
      unit_forward_(at(trainer.job().units())) {
  CONCERTINA_CHECK(uses_cache(trainer.config()), "no budget");
  if (!trainer.tensor_memory().on_host())
    staging_.resize(per_microbatch_ * static_cast<std::size_t>(room_.entry_bytes));
  const Watchdog::Patience patience(trainer.watchdog(), "creating the activation cache");
  open_files();
  make_slot_plan();
  own_read_seconds_ = store_->measure_read();
  trainer_.world().barrier();  // all ranks have finished measuring
  trainer_.reuse(this);
}

AutoCache::~AutoCache() {
  trainer_.reuse(nullptr);
}

/// One rank per host creates the files; the others open them.
void AutoCache::open_files() {
  const RunConfig& config = trainer_.config();
  Communicator& world = trainer_.world();
  const std::vector<int>& hosts = trainer_.hosts();
  const auto leader_of = [&](int rank) {
    return static_cast<std::size_t>(std::ranges::find(hosts, hosts[at(rank)]) - hosts.begin());
  };
  const std::size_t leader = leader_of(world.rank());
  const CacheOptions files{.samples = room_.samples,
                           .entry_bytes = room_.entry_bytes,
                           .memory_bytes = static_cast<std::uint64_t>(config.cache.memory.bytes),
                           .disk_bytes = static_cast<std::uint64_t>(config.cache.disk.bytes),
                           .disk_directory = cache_directory(config),
                           .warn = {}};
  if (std::cmp_equal(leader, world.rank())) store_ = std::make_unique<ActivationCache>(files);
  const std::vector<nlohmann::json> made =
      gather_json(world, store_ ? store_->shared() : nlohmann::json());
  if (!store_) store_ = std::make_unique<ActivationCache>(files, made[leader]);
  // A rank whose slots differ from its leader's would look for samples in the wrong places.
  const std::vector<nlohmann::json> seen =
      gather_json(world, {store_->slots(CachePlace::memory), store_->slots(CachePlace::disk)});
  bool agree = true;
  for (int rank = 0; rank < world.size(); ++rank)
    agree = agree && seen[at(rank)] == seen[leader_of(rank)];
  if (agree) return;
  if (world.rank() == 0)
    log::warn("activation cache disabled: the ranks of one host do not see the same cache files");
  store_ = std::make_unique<ActivationCache>(CacheOptions{.samples = room_.samples,
                                                          .entry_bytes = room_.entry_bytes,
                                                          .disk_directory = {},
                                                          .warn = {}});
}

/// Creates the slot plan if there are fewer slots than samples. It starts with the epoch in which
/// this launch begins, which is the same on all ranks.
void AutoCache::make_slot_plan() {
  const std::uint64_t slots = store_->slots(CachePlace::memory) + store_->slots(CachePlace::disk);
  if (slots >= room_.samples) return;
  const std::uint64_t samples = source_.samples_per_epoch();
  const auto order = [this](std::uint64_t epoch, std::vector<std::uint64_t>& samples_in_order) {
    const Permutation permutation = source_.order(epoch);
    samples_in_order.resize(permutation.size());
    for (std::size_t i = 0; i < samples_in_order.size(); ++i) samples_in_order[i] = permutation(i);
  };
  slots_.emplace(order, samples, room_.samples / samples, slots,
                 source_.position(trainer_.done()).epoch,
                 static_cast<std::uint64_t>(trainer_.job().batch()));
}

void AutoCache::before_step(std::int64_t step) {
  if (trainer_.layout() != layout_)
    follow(step);
  else if (step == decide_at_)
    decide(step);
  if (kept_units() == 0) return;
  if (next_step_ == step)
    std::swap(samples_, next_);
  else
    list_samples(step, samples_);
  step_ = step;
  next_step_ = step + trainer_.assignment().batches;
  list_samples(next_step_, next_);
  wanted_.clear();
  for (const int m : microbatches_)
    for (std::size_t i = 0; i < per_microbatch_; ++i)
      if (const std::int64_t slot = next_[first_of(m) + i].before;
          slot >= 0 && store_->place(static_cast<std::uint64_t>(slot)) == CachePlace::disk)
        wanted_.push_back(static_cast<std::uint64_t>(slot));
  store_->prefetch(wanted_);
}

/// Lists samples in the order of StepBatch and TrainingSource::load().
void AutoCache::list_samples(std::int64_t step, std::vector<StepSample>& samples) {
  const auto first = static_cast<std::uint64_t>((step - 1) * trainer_.job().batch());
  const std::uint64_t per_epoch = source_.samples_per_epoch();
  for (const int m : microbatches_)
    for (std::size_t i = first_of(m); i < first_of(m) + per_microbatch_; ++i) {
      const auto [epoch, sample] = source_.place(first + i);
      StepSample& one = samples[i];
      one.number = epoch % (room_.samples / per_epoch) * per_epoch + sample;
      one.before = slots_ ? slots_->before(epoch, sample) : static_cast<std::int64_t>(one.number);
      one.after = slots_ ? slots_->after(epoch, sample) : one.before;
    }
}

/// Handles a changed assignment: other units are frozen, or other microbatches begin here.
void AutoCache::follow(std::int64_t step) {
  const Watchdog::Patience patience(trainer_.watchdog(), "digests of frozen weights");
  layout_ = trainer_.layout();
  units_ = cached_units(layout_);
  next_step_ = -1;
  make_room(trainer_.assignment().batches);
  microbatches_.clear();
  for (const Pipeline& pipeline : layout_.pipelines)
    if (pipeline.stages[0].rank == trainer_.world().rank())
      for (int m = pipeline.first_microbatch; m < pipeline.last_microbatch; ++m)
        microbatches_.push_back(m);
  prefixes_.clear();
  const std::vector<Bucket>& buckets = trainer_.assignment().buckets;
  hashes_.resize(buckets.size());
  for (std::size_t b = 0; b < buckets.size(); ++b)
    if (!buckets[b].frozen) hashes_[b].clear();
  if (units_ > 0) {
    std::erase(lengths_, units_);
    lengths_.insert(lengths_.begin(), units_);
    lengths_.resize(std::min(lengths_.size(), kPrefixes));
    for (const int length : lengths_)
      if (length <= units_ && !microbatches_.empty()) prefixes_.push_back({length, digest(length)});
  }
  try_places();
  decide(step);
  decide_at_ = step + kMeasured * trainer_.assignment().batches;
}

/// The hash of a frozen bucket's weights, which is reused while they stay frozen.
const std::string& AutoCache::hash_of(std::size_t bucket) {
  if (!hashes_[bucket].empty()) return hashes_[bucket];
  const Bucket& one = trainer_.assignment().buckets[bucket];
  CONCERTINA_CHECK(one.frozen, "{} trains", one.name);
  std::vector<std::byte> scratch;
  const View weights =
      host_view(trainer_.tensor_memory(), trainer_.state().weights()[bucket], scratch);
  CONCERTINA_CHECK(!weights.empty(), "no weights of {}", one.name);
  hashes_[bucket] =
      sha256_hex(std::span(static_cast<const std::byte*>(weights.data), weights.bytes()));
  trainer_.beat();
  return hashes_[bucket];
}

/// The digest of units [0, units), which must all be frozen and on this rank. Units with equal
/// digests compute the same output for the same sample.
Sha256Digest AutoCache::digest(int units) {
  const std::vector<Bucket>& buckets = trainer_.assignment().buckets;
  std::vector<std::string> tensors;
  for (std::size_t b = 0; b < buckets.size(); ++b)
    if (buckets[b].uses.front() < units) tensors.push_back(buckets[b].name + " " + hash_of(b));
  return prefix_digest(text_of_units(trainer_.job().model, units), numerics_, tensors);
}

/// Resizes the buffers for steps of `batches` batches.
void AutoCache::make_room(int batches) {
  const auto samples = static_cast<std::size_t>(trainer_.job().batch() * batches);
  samples_.resize(samples);
  next_.resize(samples);
  places_.resize(samples);
  wanted_.reserve(samples);
}

/// On each rank that begins a pipeline, tests the units up to the end of the first layer; the units
/// of other layers have the same shapes.
void AutoCache::try_places() {
  const ModelSpec& model = trainer_.job().model;
  int units = units_;
  if (!model.layer_ends.empty()) units = std::min(units, model.layer_ends[0]);
  if (prefixes_.empty() || units <= tried_) return;
  tried_ = units;
  for (int s = 0; s < layout_.stage_count(); ++s)
    if (Stage* stage = trainer_.engine().stage(s); stage != nullptr && stage->first_unit() == 0) {
      // Emulated rounding removes most differences, but not all, so a trial may miss the rest.
      alike_ = alike_ && (per_microbatch_ == 1 || !trainer_.backend().emulates(model.activation)) &&
               same_in_any_place(*stage, units, model, source_, trainer_.tensor_memory());
      return;
    }
}

/// Gathers the unit times measured by the current engine, and the time of a read. Takes the median
/// over the ranks because the time on a rank that was descheduled can be arbitrarily long.
void AutoCache::gather_times() {
  std::vector<double> mine;
  for (const UnitSeconds& unit : trainer_.engine().executor().unit_clock().seconds())
    mine.push_back(unit.forward);
  mine.push_back(own_read_seconds_);
  mine.push_back(alike_ ? 0 : 1);
  const std::vector<double> all = trainer_.gather_working(mine);
  for (std::size_t u = 0; u < unit_forward_.size(); ++u) {
    double sum = 0;
    int seen = 0;
    for (std::size_t i = u; i < all.size(); i += mine.size()) {
      sum += all[i];
      seen += all[i] > 0 ? 1 : 0;
    }
    if (seen > 0) unit_forward_[u] = sum / seen;
  }
  std::vector<double> reads;
  bool alike = true;
  for (std::size_t i = mine.size() - 1; i < all.size(); i += mine.size()) {
    if (all[i - 1] > 0) reads.push_back(all[i - 1]);
    alike = alike && all[i] == 0;
  }
  if (!alike && !std::exchange(reported_, true) && trainer_.world().rank() == 0)
    log::warn("activation cache disabled: {}", kOtherBits);
  alike_ = alike;
  read_seconds_ = median(std::move(reads));
}

/// Seconds per sample for the cached units; 0 until all of them have been measured.
double AutoCache::forward_seconds() const {
  double sum = 0;
  for (int u = 0; u < units_; ++u) {
    if (unit_forward_[at(u)] <= 0) return 0;
    sum += unit_forward_[at(u)];
  }
  return sum / static_cast<double>(per_microbatch_);
}

void AutoCache::decide(std::int64_t step) {
  gather_times();
  on_ = false;
  if (units_ == 0) return;
  const double forward = forward_seconds();
  CacheVerdict verdict = cache_pays(room_.entry_bytes, read_seconds_, forward);
  if (read_seconds_ > 0 && forward <= 0)
    verdict = {true, "the time of these units is not known yet"};
  if (read_seconds_ <= 0) verdict = {false, "no sample has a slot"};
  if (!alike_) verdict = {false, kOtherBits};
  on_ = verdict.pays;
  if (trainer_.config().cache.use == "always" && !on_ && alike_) {
    on_ = true;
    verdict.reason += "; cache.use = \"always\"";
  }
  if (!decided_) return;
  decided_(step - 1, {{"units", units_},
                      {"entry_bytes", room_.entry_bytes},
                      {"samples", room_.samples},
                      {"memory_slots", store_->slots(CachePlace::memory)},
                      {"disk_slots", store_->slots(CachePlace::disk)},
                      {"share", outlook().share},
                      {"read_us", read_seconds_ * 1e6},
                      {"forward_us", forward * 1e6},
                      {"pays", verdict.pays},
                      {"on", on_},
                      {"why", verdict.reason}});
}

CacheOutlook AutoCache::outlook() const {
  const auto slots =
      static_cast<double>(store_->slots(CachePlace::memory) + store_->slots(CachePlace::disk));
  return {.on = on_,
          .units = units_,
          .read_seconds = read_seconds_,
          .share = std::min(1.0, slots / static_cast<double>(room_.samples))};
}

CacheUse AutoCache::use() {
  const CacheCounts counts = store_->counts();
  const std::uint64_t slots = store_->slots(CachePlace::memory) + store_->slots(CachePlace::disk);
  const std::vector<nlohmann::json> all = gather_json(
      trainer_.world(),
      {counts.memory_hits, counts.disk_hits, moved_, computed_, counts.writes, counts.faults});
  CacheUse sum{.samples = room_.samples, .slots = slots};
  for (const nlohmann::json& one : all) {
    const std::vector<std::uint64_t> values = one;
    sum.memory_hits += values[0];
    sum.disk_hits += values[1];
    sum.moved += values[2];
    sum.misses += values[3];
    sum.writes += values[4];
    sum.faults += values[5];
  }
  return sum;
}

/// The index of the prefix whose output is stored for `sample`; -1 if there is none.
int AutoCache::place_of(const StepSample& sample) {
  if (sample.before < 0) return -1;
  const std::optional<CacheKey> key = store_->held(static_cast<std::uint64_t>(sample.before));
  if (!key || key->sample != sample.number) return -1;
  for (std::size_t i = 0; i < prefixes_.size(); ++i)
    if (prefixes_[i].digest == key->prefix) return static_cast<int>(i);
  return -1;
}

int AutoCache::restore(const Stage& stage, const MicrobatchIo& io) {
  if (kept_units() == 0) return 0;
  CONCERTINA_CHECK(io.step == step_, "prepared step {}, got step {}", step_, io.step);
  const std::size_t first = first_of(io.microbatch), end = first + per_microbatch_;
  bool same = true;
  for (std::size_t i = first; i < end; ++i) {
    places_[i] = place_of(samples_[i]);
    same = same && places_[i] >= 0 && places_[i] == places_[first];
  }
  if (same) {
    const Prefix& prefix = prefixes_[at(places_[first])];
    if (read(prefix, first, stage.frozen_output(prefix.units - 1, io))) {
      if (places_[first] > 0) moved_ += per_microbatch_;
      return prefix.units;
    }
  }
  computed_ += per_microbatch_;
  return 0;
}

bool AutoCache::read(const Prefix& prefix, std::size_t first, View output) {
  Memory& memory = trainer_.tensor_memory();
  auto* const bytes = memory.on_host() ? static_cast<std::byte*>(output.data) : staging_.data();
  for (std::size_t i = 0; i < per_microbatch_; ++i) {
    const std::span entry(bytes + i * room_.entry_bytes, room_.entry_bytes);
    const StepSample& sample = samples_[first + i];
    const CacheKey key{static_cast<std::uint64_t>(sample.before), sample.number, prefix.digest};
    if (store_->read(key, entry)) continue;
    // The other entries of this microbatch are probably damaged, too: rewrite them all.
    std::fill_n(places_.begin() + static_cast<std::ptrdiff_t>(first), per_microbatch_, -1);
    return false;
  }
  if (!memory.on_host()) memory.copy(staging_.data(), output.data, output.bytes());
  return true;
}

void AutoCache::keep(const MicrobatchIo& io, View output) {
  const std::size_t first = first_of(io.microbatch);
  Memory& memory = trainer_.tensor_memory();
  bool fetched = memory.on_host();
  const auto* const bytes = fetched ? static_cast<const std::byte*>(output.data) : staging_.data();
  for (std::size_t i = 0; i < per_microbatch_; ++i) {
    const StepSample& sample = samples_[first + i];
    if (places_[first + i] == 0 || sample.after < 0) continue;
    if (!fetched) memory.copy(output.data, staging_.data(), output.bytes());
    fetched = true;
    store_->write({static_cast<std::uint64_t>(sample.after), sample.number, prefixes_[0].digest},
                  std::span(bytes + i * room_.entry_bytes, room_.entry_bytes));
  }
}

}  // namespace concertina
