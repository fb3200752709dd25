#include "experiments/bench/random_samples.h"

#include <algorithm>

#include "core/rng.h"

namespace concertina {
namespace {

std::uint32_t random_word(std::int64_t step, std::int64_t sample, std::uint32_t purpose,
                          std::int64_t i) {
  return Rng(1, Purpose::sample)
      .words(static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(sample), purpose,
             static_cast<std::uint32_t>(i))[0];
}

/// Number of targets in a sample of `length` tokens.
std::int64_t targets_of(const Field& field, std::int64_t length) {
  return field.most == 0 ? length : std::min(field.most, masked_count(length));
}

/// Whether element `i` is a target; targets are evenly spread.
bool is_target(const Field& field, std::int64_t length, std::int64_t i) {
  const std::int64_t count = targets_of(field, length);
  return i < length && (i + 1) * count / length > i * count / length;
}

}  // namespace

RandomSamples::RandomSamples(const RunConfig& config, const ModelSpec& model)
    : tokens_(model.tokens_per_sample),
      vocabulary_(model.vocabulary),
      classes_(config.model.classes),
      fields_(fields_of(model)) {
  const OptionValues& options = config.model.options.at(config.model.family);
  if (const auto types = options.find("types"); types != options.end())
    types_ = std::get<std::int64_t>(types->second);
}

bool RandomSamples::has(std::string_view field) const {
  return std::ranges::any_of(fields_, [&](const Field& one) { return one.name == field; });
}

std::int32_t RandomSamples::value(const Field& field, std::int64_t step, std::int64_t sample,
                                  std::int64_t i) const {
  const auto below = [&](std::int64_t end, std::uint32_t purpose, std::int64_t at) {
    return static_cast<std::int32_t>(random_word(step, sample, purpose, at) %
                                     static_cast<std::uint32_t>(end));
  };
  const auto length = [&] { return 1 + below(tokens_, 1, 0); };
  if (field.name == "tokens") return below(vocabulary_, 0, i);
  if (field.name == "targets")
    return is_target(field, has("lengths") ? length() : tokens_, i) ? below(vocabulary_, 0, i + 1)
                                                                    : kIgnored;
  if (field.name == "types") return below(types_, 2, i);
  if (field.name == "lengths") return length();
  if (field.name == "label" || field.name == "tags") return below(classes_, 3, i);
  return below(has("lengths") ? length() : tokens_, 4, 0);  // a position in the sample
}

void RandomSamples::load(std::int64_t step, std::int64_t first, std::int64_t count,
                         std::span<const View> views) {
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    if (views[f].empty()) continue;
    const std::int64_t elements = fields_[f].elements();
    for (std::int64_t s = 0; s < count; ++s)
      for (std::int64_t i = 0; i < elements; ++i) {
        const auto at = static_cast<std::size_t>(s * elements + i);
        if (fields_[f].type == DType::i32)
          views[f].i32()[at] = value(fields_[f], step, first + s, i);
        else
          views[f].f32()[at] =
              static_cast<float>(random_word(step, first + s, 5, i) >> 8) * 0x1p-23F - 1;
      }
  }
}

std::int64_t RandomSamples::valid_targets(std::int64_t step, std::int64_t samples) const {
  const auto targets = std::ranges::find(fields_, "targets", &Field::name);
  if (targets == fields_.end()) {
    const auto target = std::ranges::find(fields_, true, &Field::target);
    return samples * (target == fields_.end() ? 1 : target->elements());
  }
  if (!has("lengths")) return samples * targets_of(*targets, tokens_);
  const Field lengths{"lengths", DType::i32, {}};
  std::int64_t count = 0;
  for (std::int64_t s = 0; s < samples; ++s)
    count += targets_of(*targets, value(lengths, step, s, 0));
  return count;
}

}  // namespace concertina
