#include "io/text_dataset.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "core/error.h"
#include "core/nearest.h"
#include "core/rng.h"
#include "io/tokenizer.h"

namespace concertina {
namespace {

constexpr std::int32_t kIgnored = -1;

/// Bytes of the tail that validate.
std::uint64_t validation_share(std::uint64_t bytes, double share) {
  if (!(share >= 0 && share < 1))
    throw_input(fmt::format("the validation share {} is not in [0, 1)", share), "data.validation",
                "0.1 keeps the last tenth of the text for validation, 0 none");
  return static_cast<std::uint64_t>(static_cast<double>(bytes) * share);
}

/// Writes the corpus's bytes [begin, begin + valid) as tokens and [begin + 1, begin + valid + 1)
/// as targets; the rest of the row is padding. Either pointer may be null.
void load_row(const Corpus& corpus, std::uint64_t begin, std::int64_t valid, std::int64_t row,
              std::int32_t* tokens, std::int32_t* targets) {
  std::array<std::byte, 4096> chunk;
  for (std::int64_t done = 0; done < valid;) {
    const std::int64_t n = std::min<std::int64_t>(valid - done, chunk.size() - 1);
    corpus.read(begin + done, std::span(chunk).first(static_cast<std::size_t>(n) + 1));
    for (std::int64_t i = 0; i < n; ++i) {
      if (tokens != nullptr) tokens[done + i] = std::to_integer<std::int32_t>(chunk[i]);
      if (targets != nullptr) targets[done + i] = std::to_integer<std::int32_t>(chunk[i + 1]);
    }
    done += n;
  }
  if (tokens != nullptr) std::fill(tokens + valid, tokens + row, 0);
  if (targets != nullptr) std::fill(targets + valid, targets + row, kIgnored);
}

std::int32_t* row_of(View view, std::int64_t row, std::int64_t length) {
  return view.empty() ? nullptr : view.i32() + row * length;
}

void check_request(std::int64_t step, std::int64_t first, std::int64_t count, std::int64_t batch,
                   std::int64_t length, View tokens, View targets) {
  CONCERTINA_CHECK(step >= 0 && first >= 0 && count >= 0 && first <= batch - count,
                   "samples [{}, +{}) of {} in step {}", first, count, batch, step);
  for (const View& view : {tokens, targets})
    CONCERTINA_CHECK(view.empty() || (view.dtype == DType::i32 &&
                                      std::cmp_greater_equal(view.count, count * length)),
                     "a view of {} elements for {} samples of {}", view.count, count, length);
}

/// Whether `name` means fixed windows.
bool means_fixed(const std::string& name) {
  const auto* const found = std::ranges::find(kWindowsNames, name);
  if (found == std::end(kWindowsNames))
    throw_input(fmt::format("unknown windows '{}'", name), "data.windows",
                one_of(nearest_word(name, kWindowsNames), kWindowsNames));
  return *found == "fixed";
}

}  // namespace

TextDataset::TextDataset(const TextOptions& options)
    : corpus_((require_tokenizer(options.tokenizer, "data.tokenizer"), options.text), "data.text"),
      tokens_(options.tokens_per_sample),
      fields_(text_fields(options.tokens_per_sample)),
      fixed_windows_(means_fixed(options.windows)) {
  CONCERTINA_CHECK(tokens_ >= 1, "{} tokens a sample", tokens_);
  const std::uint64_t tail = validation_share(corpus_.size(), options.validation);
  train_bytes_ = corpus_.size() - tail;
  const auto needed = static_cast<std::uint64_t>(tokens_) + 1;
  if (train_bytes_ < needed)
    throw_input(
        fmt::format("the text is shorter than one sample: {} of its {} bytes are for training, a "
                    "sample of {} tokens and its last target take {}",
                    train_bytes_, corpus_.size(), tokens_, needed),
        "data.text",
        train_bytes_ < 2
            ? "a longer text"
            : fmt::format("a longer text, or model.context of at most {}", train_bytes_ - 1));
  if (options.validation > 0 && tail < 2)
    throw_input(fmt::format("the validation part has {} of {} bytes, at least 2 are needed", tail,
                            corpus_.size()),
                "data.validation", "a longer text, a larger share, or 0 for no validation");
}

std::int64_t TextDataset::vocabulary() const {
  return kByteVocabulary;
}

std::string TextDataset::summary() const {
  std::array<std::byte, 72> start;
  const auto shown = std::span(start).first(std::min<std::uint64_t>(start.size(), corpus_.size()));
  corpus_.read(0, shown);
  const std::string_view text(reinterpret_cast<const char*>(shown.data()), shown.size());
  std::string lines;
  for (const std::string& file : corpus_.files()) lines += fmt::format("file        {}\n", file);
  lines += fmt::format("bytes       {}\n", corpus_.size());
  lines += fmt::format("training    {} bytes, {} samples of {} tokens an epoch\n", train_bytes_,
                       (train_bytes_ - 1) / static_cast<std::uint64_t>(tokens_), tokens_);
  lines += fmt::format("validation  {} bytes\n", validation_bytes());
  lines += fmt::format("begins      {}\n", escape_bytes(text));
  return lines;
}

TrainingSource::TrainingSource(std::shared_ptr<const TextDataset> dataset, std::uint64_t seed,
                               std::int64_t global_batch)
    : dataset_(std::move(dataset)),
      seed_(seed),
      global_batch_(global_batch),
      epoch_(make_epoch(0, 0)) {
  CONCERTINA_CHECK(global_batch >= 1, "batch of {}", global_batch);
}

TrainingSource::Epoch TrainingSource::make_epoch(std::uint64_t number, std::uint64_t first) const {
  const auto length = static_cast<std::uint64_t>(dataset_->tokens_per_sample());
  const std::uint64_t bytes = dataset_->train_bytes();
  std::uint64_t offset = 0;
  if (!dataset_->fixed_windows()) {
    const auto word = Rng(seed_, Purpose::offset)
                          .words(static_cast<std::uint32_t>(number),
                                 static_cast<std::uint32_t>(number >> 32), 0, 0);
    // A text of less than two samples still has one sequence whatever the offset. 64 random bits:
    // the modulo's bias is below 2^-32 for any sample that fits memory.
    offset = (std::uint64_t{word[0]} << 32 | word[1]) % std::min(length, bytes - length);
  }
  return {number, first, offset, Permutation(seed_, number, (bytes - 1 - offset) / length)};
}

void TrainingSource::seek(std::uint64_t index) {
  if (index < epoch_.first) epoch_ = make_epoch(0, 0);
  while (index - epoch_.first >= epoch_.order.size())
    epoch_ = make_epoch(epoch_.number + 1, epoch_.first + epoch_.order.size());
}

std::uint64_t TrainingSource::index_of(std::int64_t step, std::int64_t place) const {
  CONCERTINA_CHECK(step >= 0 && step < std::numeric_limits<std::int64_t>::max() / global_batch_ &&
                       place >= 0 && place < global_batch_,
                   "sample {} of step {}", place, step);
  return static_cast<std::uint64_t>(step * global_batch_ + place);
}

TrainingSource::Place TrainingSource::place(std::uint64_t index) {
  seek(index);
  const auto length = static_cast<std::uint64_t>(dataset_->tokens_per_sample());
  return {epoch_.number, epoch_.offset + epoch_.order(index - epoch_.first) * length};
}

TrainingSource::Position TrainingSource::position(std::int64_t step) {
  const std::uint64_t index = index_of(step, 0);
  seek(index);
  return {epoch_.number, index - epoch_.first, epoch_.order.size()};
}

std::int64_t TrainingSource::first_step(std::uint64_t epoch) const {
  Epoch at = make_epoch(0, 0);
  while (at.number < epoch) at = make_epoch(at.number + 1, at.first + at.order.size());
  const auto batch = static_cast<std::uint64_t>(global_batch_);
  return static_cast<std::int64_t>((at.first + batch - 1) / batch);
}

std::uint64_t TrainingSource::sample(std::int64_t step, std::int64_t place) {
  CONCERTINA_CHECK(dataset_->fixed_windows(), "shifted windows have no sample numbers");
  const std::uint64_t index = index_of(step, place);
  seek(index);
  return epoch_.order(index - epoch_.first);
}

std::uint64_t TrainingSource::samples_per_epoch() const {
  CONCERTINA_CHECK(dataset_->fixed_windows(), "shifted windows differ by epoch");
  return epoch_.order.size();
}

void TrainingSource::load(std::int64_t step, std::int64_t first, std::int64_t count,
                          std::span<const View> views) {
  const View tokens = views[0], targets = views[1];
  const std::int64_t length = dataset_->tokens_per_sample();
  check_request(step, first, count, global_batch_, length, tokens, targets);
  for (std::int64_t i = 0; i < count; ++i) {
    const Place at = place(index_of(step, first + i));
    load_row(dataset_->corpus(), at.begin, length, length, row_of(tokens, i, length),
             row_of(targets, i, length));
  }
}

ValidationSource::ValidationSource(std::shared_ptr<const TextDataset> dataset, std::int64_t batch,
                                   std::int64_t most)
    : dataset_(std::move(dataset)), batch_(batch), targets_(dataset_->validation_targets()) {
  CONCERTINA_CHECK(batch >= 1 && most >= 0, "batch of {}, {} targets", batch, most);
  if (most > 0) targets_ = std::min(targets_, most);
}

std::int64_t ValidationSource::batches() const {
  const std::int64_t per_batch = batch_ * dataset_->tokens_per_sample();
  return targets_ / per_batch + (targets_ % per_batch != 0);
}

std::int64_t ValidationSource::valid_targets(std::int64_t step, std::int64_t samples) const {
  CONCERTINA_CHECK(step >= 0 && step < batches(), "batch {} of {}", step, batches());
  return std::min(samples * dataset_->tokens_per_sample(),
                  targets_ - step * batch_ * dataset_->tokens_per_sample());
}

void ValidationSource::load(std::int64_t step, std::int64_t first, std::int64_t count,
                            std::span<const View> views) {
  const View tokens = views[0], targets = views[1];
  const std::int64_t length = dataset_->tokens_per_sample();
  check_request(step, first, count, batch_, length, tokens, targets);
  const std::int64_t valid = valid_targets(step, batch_);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t done = (first + i) * length;  // targets of this batch before the row
    load_row(dataset_->corpus(),
             dataset_->train_bytes() + static_cast<std::uint64_t>(step * batch_ * length + done),
             std::clamp<std::int64_t>(valid - done, 0, length), length, row_of(tokens, i, length),
             row_of(targets, i, length));
  }
}

}  // namespace concertina
