#include "io/datasets/source.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/error.h"
#include "core/rng.h"

namespace concertina {
namespace {

// Four rounds make a Feistel network a pseudo-random permutation (Luby and Rackoff, 1988). Two more
// rounds compensate for the small halves of small domains.
constexpr std::uint32_t kRounds = 6;

void check_request(std::int64_t step, std::int64_t first, std::int64_t count, std::int64_t batch,
                   std::span<const Field> fields, std::span<const View> views) {
  CONCERTINA_CHECK(step >= 0 && first >= 0 && count >= 0 && first <= batch - count,
                   "samples [{}, +{}) of {} in step {}", first, count, batch, step);
  CONCERTINA_CHECK(views.size() == fields.size(), "{} views for {} fields", views.size(),
                   fields.size());
  for (std::size_t f = 0; f < fields.size(); ++f)
    CONCERTINA_CHECK(
        views[f].empty() || (views[f].dtype == fields[f].type &&
                             std::cmp_greater_equal(views[f].count, count * fields[f].elements())),
        "invalid view of {} elements for {} samples of {}", views[f].count, count, fields[f].name);
}

/// Selects the part of `views` that belongs to sample `i`.
void select_row(std::span<const Field> fields, std::span<const View> views, std::int64_t i,
                std::span<View> row) {
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const auto n = static_cast<std::size_t>(fields[f].elements());
    row[f] = views[f].empty() ? View{} : views[f].slice(static_cast<std::size_t>(i) * n, n);
  }
}

}  // namespace

Permutation::Permutation(std::uint64_t seed, std::uint64_t epoch, std::uint64_t n)
    : seed_(seed), epoch_(epoch), n_(n) {
  CONCERTINA_CHECK(n >= 1 && n <= (std::uint64_t{1} << 62), "permutation of {} elements", n);
  while ((std::uint64_t{1} << (2 * half_bits_)) < n) ++half_bits_;
}

std::uint64_t Permutation::encrypt(std::uint64_t value) const {
  const Rng rng(seed_, Purpose::shuffle);
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = value >> half_bits_, right = value & mask;
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    const auto word =
        rng.words(static_cast<std::uint32_t>(epoch_), static_cast<std::uint32_t>(epoch_ >> 32),
                  round, static_cast<std::uint32_t>(right))[0];
    const std::uint64_t next = left ^ (word & mask);
    left = right;
    right = next;
  }
  return left << half_bits_ | right;
}

std::uint64_t Permutation::operator()(std::uint64_t index) const {
  CONCERTINA_CHECK(index < n_, "index {} is not in [0, {})", index, n_);
  // The domain has fewer than 4n elements, so this takes fewer than four iterations on average. It
  // terminates because the cycle that contains `index` returns to it.
  std::uint64_t value = encrypt(index);
  while (value >= n_) value = encrypt(value);
  return value;
}

EpochRow::EpochRow(std::shared_ptr<const Dataset> dataset, std::uint64_t seed)
    : dataset_(std::move(dataset)), seed_(seed), epoch_(make_epoch(0, 0)) {}

EpochRow::Epoch EpochRow::make_epoch(std::uint64_t number, std::uint64_t first) const {
  return {number, first, Permutation(seed_, number, dataset_->samples_of_epoch(seed_, number))};
}

const EpochRow::Epoch& EpochRow::at(std::uint64_t index) {
  if (index < epoch_.first / 2) epoch_ = make_epoch(0, 0);
  while (index < epoch_.first)
    epoch_ = make_epoch(epoch_.number - 1,
                        epoch_.first - dataset_->samples_of_epoch(seed_, epoch_.number - 1));
  while (index - epoch_.first >= epoch_.order.size())
    epoch_ = make_epoch(epoch_.number + 1, epoch_.first + epoch_.order.size());
  return epoch_;
}

TrainingSource::TrainingSource(std::shared_ptr<const Dataset> dataset, std::uint64_t seed,
                               std::int64_t global_batch)
    : dataset_(std::move(dataset)),
      mixture_(mixture_of(*dataset_)),
      seed_(seed),
      global_batch_(global_batch),
      row_(dataset_->fields().size()) {
  CONCERTINA_CHECK(global_batch >= 1, "invalid batch size {}", global_batch);
  if (mixture_ == nullptr) rows_.emplace_back(dataset_, seed);
  for (std::size_t s = 0; mixture_ != nullptr && s < mixture_->sources().size(); ++s)
    rows_.emplace_back(mixture_->sources()[s].dataset, Mixture::seed_of(seed, s));
}

std::uint64_t TrainingSource::index_of(std::int64_t step, std::int64_t place) const {
  CONCERTINA_CHECK(step >= 0 && step < std::numeric_limits<std::int64_t>::max() / global_batch_ &&
                       place >= 0 && place < global_batch_,
                   "invalid sample {} of step {}", place, step);
  return static_cast<std::uint64_t>(step * global_batch_ + place);
}

TrainingSource::Place TrainingSource::place(std::uint64_t index) const {
  const std::size_t source = mixture_ == nullptr ? 0 : mixture_->order().source(index);
  const std::uint64_t within =
      mixture_ == nullptr ? index : mixture_->order().before(index, source);
  const EpochRow::Epoch& epoch = rows_[source].at(within);
  return {epoch.number, (mixture_ == nullptr ? 0 : mixture_->first(Split::train, source)) +
                            epoch.order(within - epoch.first)};
}

TrainingSource::Position TrainingSource::position(std::int64_t step) const {
  const std::uint64_t index = index_of(step, 0);
  if (mixture_ != nullptr) {
    const std::uint64_t samples = mixture_->samples(Split::train);
    return {index / samples, index % samples, samples};
  }
  const EpochRow::Epoch& epoch = rows_[0].at(index);
  return {epoch.number, index - epoch.first, epoch.order.size()};
}

std::int64_t TrainingSource::first_step(std::uint64_t epoch) const {
  std::uint64_t first = 0;
  if (mixture_ != nullptr) first = epoch * mixture_->samples(Split::train);
  for (std::uint64_t e = 0; mixture_ == nullptr && e < epoch; ++e)
    first += dataset_->samples_of_epoch(seed_, e);
  const auto batch = static_cast<std::uint64_t>(global_batch_);
  return static_cast<std::int64_t>((first + batch - 1) / batch);
}

std::uint64_t TrainingSource::sample(std::int64_t step, std::int64_t place) const {
  CONCERTINA_CHECK(dataset_->repeats(), "samples that differ between epochs have no numbers");
  const Place at = this->place(index_of(step, place));
  return at.epoch % dataset_->views() * samples_per_epoch() + at.sample;
}

std::uint64_t TrainingSource::samples_per_epoch() const {
  CONCERTINA_CHECK(dataset_->repeats(), "samples differ between epochs");
  return dataset_->samples(Split::train);
}

std::int64_t TrainingSource::valid_targets(std::int64_t step, std::int64_t samples) const {
  std::int64_t targets = 0;
  for (std::int64_t i = 0; i < samples; ++i) {
    const std::uint64_t sample = place(index_of(step, i)).sample;
    targets += dataset_->targets_before(Split::train, sample + 1) -
               dataset_->targets_before(Split::train, sample);
  }
  return targets;
}

void TrainingSource::load(std::int64_t step, std::int64_t first, std::int64_t count,
                          std::span<const View> views) {
  check_request(step, first, count, global_batch_, fields(), views);
  for (std::int64_t i = 0; i < count; ++i) {
    const Place at = place(index_of(step, first + i));
    select_row(fields(), views, i, row_);
    dataset_->write({.sample = at.sample, .seed = seed_, .epoch = at.epoch}, row_);
  }
}

ValidationSource::ValidationSource(std::shared_ptr<const Dataset> dataset, std::int64_t batch,
                                   std::int64_t most, Split split)
    : dataset_(std::move(dataset)),
      batch_(batch),
      targets_(dataset_->targets(split)),
      split_(split),
      row_(dataset_->fields().size()) {
  CONCERTINA_CHECK(batch >= 1 && most >= 0, "invalid batch size {} or limit {}", batch, most);
  if (most > 0) targets_ = std::min(targets_, most);
  // Find the smallest number of samples with this many targets.
  auto low = std::int64_t{0}, high = static_cast<std::int64_t>(dataset_->samples(split));
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (before(middle) < targets_)
      low = middle + 1;
    else
      high = middle;
  }
  samples_ = low;
  // There are no targets to count, for example in rows without labels.
  if (targets_ == 0 && split == Split::test)
    samples_ = static_cast<std::int64_t>(dataset_->samples(split));
}

std::int64_t ValidationSource::before(std::int64_t sample) const {
  return dataset_->targets_before(split_, static_cast<std::uint64_t>(sample));
}

std::int64_t ValidationSource::samples(std::int64_t step) const {
  CONCERTINA_CHECK(step >= 0 && step < batches(), "batch {} is not in [0, {})", step, batches());
  return std::min(batch_, samples_ - step * batch_);
}

std::int64_t ValidationSource::valid_targets(std::int64_t step, std::int64_t samples) const {
  const std::int64_t first = step * batch_, count = std::min(samples, this->samples(step));
  return std::min(before(first + count), targets_) - before(first);
}

void ValidationSource::load(std::int64_t step, std::int64_t first, std::int64_t count,
                            std::span<const View> views) {
  check_request(step, first, count, batch_, fields(), views);
  const std::int64_t valid = samples(step);
  for (std::int64_t i = 0; i < count; ++i) {
    select_row(fields(), views, i, row_);
    if (first + i >= valid) {
      blank_sample(fields(), row_);
      continue;
    }
    const std::int64_t sample = step * batch_ + first + i;
    dataset_->write({.split = split_,
                     .sample = static_cast<std::uint64_t>(sample),
                     .most = targets_ - before(sample)},
                    row_);
  }
}

}  // namespace concertina
