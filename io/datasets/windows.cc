#include "io/datasets/windows.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/rng.h"
#include "io/datasets/text_overlap.h"
#include "io/sha256.h"

namespace concertina {

std::uint64_t WindowCut::offset(std::uint64_t seed, std::uint64_t epoch) const {
  if (fixed) return 0;
  const auto word =
      Rng(seed, Purpose::offset)
          .words(static_cast<std::uint32_t>(epoch), static_cast<std::uint32_t>(epoch >> 32), 0, 0);
  // A text shorter than two samples still has one window at any offset. With 64 random bits, the
  // modulo's bias is below 2^-32 for any sample that fits into memory.
  return (std::uint64_t{word[0]} << 32 | word[1]) % std::min(length, tokens - length);
}

std::vector<Option> window_options() {
  return {choice("windows", kWindowsNames[0],
                 "whether each epoch splits the text into samples from a new random offset "
                 "(shifted) or from the start of the text, so that all epochs have the same "
                 "samples, in different orders (fixed)",
                 {std::begin(kWindowsNames), std::end(kWindowsNames)})};
}

bool windows_are_fixed(const DataOptions& options) {
  return options.own<std::string>("windows") == "fixed";
}

std::optional<Variation> windows_vary(const DataOptions& options) {
  if (windows_are_fixed(options)) return std::nullopt;
  return Variation{"data.windows = \"shifted\"", "data.windows = \"fixed\""};
}

std::uint64_t held_out(std::uint64_t tokens, double share) {
  return static_cast<std::uint64_t>(static_cast<double>(tokens) * share);
}

namespace {

class WindowedDataset final : public FileDataset {
 public:
  WindowedDataset(const DataOptions& options, WindowedTokens parts)
      : parts_(std::move(parts)),
        cut_{parts_.sizes[0], static_cast<std::uint64_t>(options.tokens_per_sample),
             windows_are_fixed(options)},
        fields_(text_fields(options.tokens_per_sample)) {
    CONCERTINA_CHECK(options.tokens_per_sample >= 1, "invalid sample of {} tokens",
                     options.tokens_per_sample);
    check_sizes(options);
  }

  std::span<const Field> fields() const override { return fields_; }
  std::int64_t vocabulary() const override { return parts_.vocabulary; }
  bool repeats() const override { return cut_.fixed; }
  const Corpus& corpus() const override { return *parts_.corpus; }
  const Splits* splits() const override { return parts_.splits.get(); }
  void verify(const std::function<void()>& progress) const override {
    verify_tokens(parts_, progress);
  }

  std::uint64_t samples(Split split) const override {
    const std::uint64_t last = cut_.length - 1;  // only training windows must be full
    return (targets_in(split) + (split == Split::train ? 0 : last)) / cut_.length;
  }
  std::uint64_t samples_of_epoch(std::uint64_t seed, std::uint64_t epoch) const override {
    return cut_.count(seed, epoch);
  }
  std::int64_t targets_before(Split split, std::uint64_t sample) const override {
    const std::uint64_t targets = sample * cut_.length;
    return static_cast<std::int64_t>(split == Split::train ? targets
                                                           : std::min(targets, targets_in(split)));
  }

  void write(const SampleAt& at, std::span<const View> views) const override;
  SplitContent content(Split split, const std::function<void()>& progress) const override;
  std::string summary() const override;

 private:
  std::uint64_t size(Split split) const { return parts_.sizes[static_cast<std::size_t>(split)]; }
  /// Number of tokens that have a predecessor.
  std::uint64_t targets_in(Split split) const { return size(split) == 0 ? 0 : size(split) - 1; }
  void check_sizes(const DataOptions& options) const;

  WindowedTokens parts_;
  WindowCut cut_;
  std::vector<Field> fields_;
};

void WindowedDataset::check_sizes(const DataOptions& options) const {
  const std::string& word = parts_.word;
  const std::uint64_t train = size(Split::train), all = parts_.tokens->size();
  if (train < cut_.length + 1)
    throw_input(fmt::format("the text is shorter than one sample: {} of its {} {}s are for "
                            "training, but a sample of {} tokens and its last target need {}",
                            train, all, word, cut_.length, cut_.length + 1),
                std::string(find_format(options.format).files_key),
                train < 2
                    ? "use a longer text"
                    : fmt::format("use a longer text, or model.context of at most {}", train - 1));
  for (const Split split : {Split::validation, Split::test}) {
    const std::string name(kSplitNames[static_cast<std::size_t>(split)]);
    const auto& own = split == Split::test ? options.test_files : options.validation_files;
    const bool shared = split == Split::validation && own.empty();
    if ((shared ? options.validation > 0 : !own.empty()) && size(split) < 2)
      throw_input(fmt::format("the {} part has {} of {} {}s, but at least 2 are needed", name,
                              size(split), all, word),
                  shared ? "data.validation" : fmt::format("data.{}_files", name),
                  shared ? "use a longer text, a larger share, or 0 for no validation"
                         : "use a longer text");
  }
}

/// Token i of the row is token begin + i and its target is the next one. The row is padded after
/// `valid` tokens.
void WindowedDataset::write(const SampleAt& at, std::span<const View> views) const {
  std::int32_t* const tokens = views[0].i32();
  std::int32_t* const targets = views[1].i32();
  std::uint64_t begin = at.sample * cut_.length, valid = cut_.length;
  if (at.split == Split::train)
    begin = cut_.begin(at.seed, at.epoch, at.sample);
  else
    valid = std::min(valid, targets_in(at.split) - begin);
  valid = std::min(valid, static_cast<std::uint64_t>(at.most));
  for (std::size_t s = 0; s < static_cast<std::size_t>(at.split); ++s) begin += parts_.sizes[s];
  std::array<std::int32_t, 1024> chunk;
  for (std::uint64_t done = 0; done < valid;) {
    const std::uint64_t n = std::min<std::uint64_t>(valid - done, chunk.size() - 1);
    parts_.tokens->read(begin + done, std::span(chunk).first(n + 1));
    if (tokens != nullptr) std::copy_n(chunk.begin(), n, tokens + done);
    if (targets != nullptr) std::copy_n(chunk.begin() + 1, n, targets + done);
    done += n;
  }
  if (tokens != nullptr) std::fill(tokens + valid, tokens + cut_.length, 0);
  if (targets != nullptr) std::fill(targets + valid, targets + cut_.length, kIgnored);
}

SplitContent WindowedDataset::content(Split split, const std::function<void()>& progress) const {
  if (parts_.splits != nullptr) return FileDataset::content(split, progress);
  const auto at = static_cast<std::size_t>(split);
  const bool known = parts_.text[at] > 0;
  const std::array<std::uint64_t, 3>& sizes = known ? parts_.text : parts_.sizes;
  const std::uint64_t begin = std::accumulate(sizes.begin(), sizes.begin() + at, std::uint64_t{0});
  Sha256 hash;
  std::vector<std::int32_t> chunk(1 << 18);
  for (std::uint64_t done = 0, n = 0; done < sizes[at]; done += n) {
    n = std::min<std::uint64_t>(chunk.size(), sizes[at] - done);
    const auto part = std::span(chunk).first(n);
    if (known)
      parts_.corpus->read(begin + done, std::as_writable_bytes(part).first(n));
    else
      parts_.tokens->read(begin + done, part);
    hash.update(std::as_bytes(part).first(known ? n : part.size_bytes()));
    progress();
  }
  return {.sha256 = hash.hex(), .bytes = parts_.text[at]};
}

std::string WindowedDataset::summary() const {
  std::string lines;
  if (parts_.splits != nullptr)
    lines = split_summary(corpus(), *parts_.splits, "documents");
  else
    for (const std::string& file : corpus().files()) lines += fmt::format("file        {}\n", file);
  lines += fmt::format("{:<12}{}\n", parts_.word + "s", parts_.tokens->size());
  lines += fmt::format("training    {} {}s, {} samples of {} tokens per epoch\n",
                       size(Split::train), parts_.word, samples(Split::train), cut_.length);
  lines += fmt::format("validation  {} {}s\n", size(Split::validation), parts_.word);
  if (size(Split::test) > 0)
    lines += fmt::format("test        {} {}s\n", size(Split::test), parts_.word);
  lines += parts_.columns;
  if (!parts_.begins.empty()) lines += fmt::format("begins      {}\n", parts_.begins);
  return lines;
}

}  // namespace

std::unique_ptr<Dataset> windowed_dataset(const DataOptions& options, WindowedTokens parts) {
  return std::make_unique<WindowedDataset>(options, std::move(parts));
}

}  // namespace concertina
