#include "io/datasets/split_files.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "core/error.h"
#include "core/text/number_text.h"
#include "io/datasets/windows.h"
#include "io/sha256.h"

namespace concertina {
namespace {

constexpr std::size_t kSplitCount = 3;

constexpr std::string_view kStratified = "stratified";

/// A held-out split: its name, its keys, and whether it is taken from data.files.
struct HeldOutPart {
  std::string_view name;
  double share = 0;
  bool has_files = false;

  bool is_drawn() const { return !has_files && share > 0; }
  bool is_wanted() const { return has_files || share > 0; }
  std::string key() const {
    return has_files ? fmt::format("data.{}_files", name) : fmt::format("data.{}", name);
  }
};

std::array<HeldOutPart, kSplitCount> parts_of(const DataOptions& options) {
  if (options.test > 0 && !options.test_files.empty())
    throw_input("data.test and data.test_files are mutually exclusive", "data.test",
                "use data.test = 0, or remove data.test_files");
  return {HeldOutPart{},
          {kSplitNames[1], options.validation, !options.validation_files.empty()},
          {kSplitNames[2], options.test, !options.test_files.empty()}};
}

bool is_stratified(const DataOptions& options) {
  return options.own<std::string>("split") == kStratified;
}

std::string_view part_name(std::size_t split) {
  return split == 0 ? "training" : kSplitNames[split];
}

/// Returns the split of each item of data.files.
std::vector<Split> split_of_training_files(const DataOptions& options,
                                           const std::array<HeldOutPart, kSplitCount>& parts,
                                           std::uint64_t count, std::span<const ItemKey> keys) {
  const double validation = parts[1].is_drawn() ? parts[1].share : 0;
  const double test = parts[2].is_drawn() ? parts[2].share : 0;
  if (is_stratified(options) && !keys.empty() && validation + test > 0)
    return draw_split(keys.first(count), {validation, test},
                      static_cast<std::uint64_t>(options.own<std::int64_t>("split_seed")));
  const std::uint64_t tested = held_out(count, test);
  const std::uint64_t validated = held_out(count, validation);
  std::vector<Split> split(count, Split::train);
  std::fill(split.end() - static_cast<std::ptrdiff_t>(tested), split.end(), Split::test);
  std::fill_n(split.end() - static_cast<std::ptrdiff_t>(tested + validated), validated,
              Split::validation);
  return split;
}

/// Returns the item numbers, sorted by split and then by number.
std::vector<std::uint64_t> sorted_items(const std::vector<Split>& split,
                                        const std::array<std::uint64_t, kSplitCount>& sizes) {
  std::array<std::uint64_t, kSplitCount> next{0, sizes[0], sizes[0] + sizes[1]};
  std::vector<std::uint64_t> items(split.size());
  for (std::size_t i = 0; i < split.size(); ++i)
    items[next[static_cast<std::size_t>(split[i])]++] = i;
  return items;
}

void check_sizes(const DataOptions& options, const Splits& splits,
                 const std::array<HeldOutPart, kSplitCount>& parts, std::uint64_t count) {
  if (splits.sizes[0] == 0)
    throw_input("no training samples left", std::string(find_format(options.format).files_key),
                "use files that contain samples, or a smaller data.validation");
  for (std::size_t s = 1; s < kSplitCount; ++s)
    if (parts[s].is_wanted() && splits.sizes[s] == 0)
      throw_input(fmt::format("none of {} samples can be held out", count), parts[s].key(),
                  parts[s].has_files
                      ? "use files that contain samples"
                      : fmt::format("use more samples of each class (one is kept for training), "
                                    "a larger share, or 0 to disable {}",
                                    parts[s].name));
}

void count_classes(Splits& splits, const ItemFacts& facts) {
  if (facts.classes.empty()) return;
  for (std::size_t s = 0; s < kSplitCount; ++s) {
    std::vector<std::uint64_t>& counts = splits.of_class[s];
    counts.resize(facts.classes.size());
    for (std::uint64_t i = 0; i < splits.sizes[s]; ++i)
      if (const auto label = facts.keys[splits.item(static_cast<Split>(s), i)].label; label >= 0)
        ++counts[static_cast<std::size_t>(label)];
  }
}

void digest_content(Splits& splits, const ItemFacts& facts) {
  for (std::size_t s = 1; s < kSplitCount; ++s) {
    Sha256 hash;
    for (std::uint64_t i = 0; i < splits.sizes[s]; ++i) {
      const ItemKey& key = facts.keys[splits.item(static_cast<Split>(s), i)];
      hash.update(fmt::format("{:x} ", key.exact));
      if (!facts.classes.empty() && key.label >= 0)
        hash.update(facts.classes[static_cast<std::size_t>(key.label)] + "\n");
      splits.content[s].bytes += key.bytes;
    }
    if (splits.sizes[s] > 0) splits.content[s].sha256 = hash.hex();
  }
}

/// Counts held-out items whose content is also in the training data.
void count_trained(Splits& splits, const ItemFacts& facts) {
  std::unordered_map<std::uint64_t, bool> trained;  // by content of held-out items
  const auto content = [&](std::size_t s, std::uint64_t i) {
    return facts.keys[splits.item(static_cast<Split>(s), i)].content;
  };
  for (std::size_t s = 1; s < kSplitCount; ++s)
    for (std::uint64_t i = 0; i < splits.sizes[s]; ++i) trained.emplace(content(s, i), false);
  if (trained.empty()) return;
  for (std::uint64_t i = 0; i < splits.sizes[0]; ++i)
    if (const auto found = trained.find(content(0, i)); found != trained.end())
      found->second = true;
  for (std::size_t s = 1; s < kSplitCount; ++s)
    for (std::uint64_t i = 0; i < splits.sizes[s]; ++i)
      splits.trained[s] += trained.at(content(s, i)) ? 1 : 0;
}

void check_overlap(const DataOptions& options, const Splits& splits, const HeldOutPart& part,
                   Split split) {
  const double share = splits.overlap(split);
  if (share <= options.most_overlap) return;
  const double allowed = std::ceil(share * 100) / 100;
  throw_input(fmt::format("{} of {} {}s in {} ({:.1f}%) are {}: metrics on them are unreliable",
                          splits.trained[static_cast<std::size_t>(split)], splits.size(split),
                          splits.words.item, part.name, share * 100, splits.words.overlaps),
              part.has_files ? part.key() : "data.split",
              fmt::format("{}, or data.most_overlap = {} to allow it",
                          part.has_files ? "use files that do not overlap data.files"
                                         : "use data.split = \"stratified\"",
                          allowed));
}

/// Returns advice on how to add the missing class to `part`.
std::string class_fix(const DataOptions& options, const HeldOutPart& part, std::string_view item) {
  const bool at_end = part.is_drawn() && !is_stratified(options);
  return fmt::format("{}, or data.missing_classes = true to allow it",
                     at_end ? "use data.split = \"stratified\""
                            : fmt::format("use {}s of each class in each split", item));
}

/// Requires each class of a split to be in all splits.
void check_classes(const DataOptions& options, const Splits& splits, const ItemFacts& facts,
                   const std::array<HeldOutPart, kSplitCount>& parts) {
  if (options.own<bool>("missing_classes")) return;
  for (std::size_t c = 0; c < facts.classes.size(); ++c) {
    const auto has = [&](std::size_t s) { return splits.of_class[s][c] > 0; };
    const std::size_t first = has(0) ? 0 : has(1) ? 1 : 2;
    for (std::size_t s = 0; s < kSplitCount && has(first); ++s) {
      if (splits.sizes[s] == 0 || has(s)) continue;
      throw_input(fmt::format("none of the {} {}s in {} has the class '{}', but {} has {}",
                              splits.sizes[s], splits.words.item, part_name(s), facts.classes[c],
                              part_name(first), splits.of_class[first][c]),
                  s == 0               ? std::string(find_format(options.format).files_key)
                  : parts[s].has_files ? parts[s].key()
                                       : "data.split",
                  class_fix(options, parts[s], splits.words.item));
    }
  }
}

/// Requires each held-out class to be trained on. Items `trained` and above are in held-out files.
void check_learned(const DataOptions& options, const Splits& splits, const ItemFacts& facts,
                   std::uint64_t trained) {
  const bool may_miss = options.own<bool>("missing_classes") || !facts.classes.empty();
  std::vector<bool> learned(facts.names.size());
  for (const Split split : kAllSplits)
    for (std::uint64_t i = 0; i < splits.size(split); ++i) {
      const std::uint64_t item = splits.item(split, i);
      const bool drawn = item < trained;
      for (const std::int32_t label : facts.classes_of(item)) {
        if (label < 0) continue;
        const auto c = static_cast<std::size_t>(label);
        learned[c] = learned[c] || split == Split::train;
        if (!learned[c] && !(drawn && may_miss))
          throw_input(fmt::format("no {1} {2} has the label '{0}'", facts.names[c].substr(0, 60),
                                  splits.words.item, drawn ? "in training" : "of data.files"),
                      facts.place_of(item),
                      drawn ? "use data.missing_classes = true to allow it"
                            : "use labels that the model is trained on");
      }
    }
}

/// Returns " (bad: 450, good: 450)", or for many classes " (100 classes, 45 to 50 of each)".
std::string classes_text(const std::vector<std::uint64_t>& counts,
                         std::span<const std::string> classes) {
  constexpr std::size_t kNamed = 10;
  if (counts.empty() || classes.empty()) return "";
  if (counts.size() > kNamed) {
    const auto [least, most] = std::ranges::minmax(counts);
    return fmt::format(" ({} classes, {} to {} of each)", counts.size(), least, most);
  }
  std::vector<std::string> texts;
  for (std::size_t c = 0; c < counts.size(); ++c)
    texts.push_back(
        fmt::format("{}: {}", classes[c], grouped(static_cast<std::int64_t>(counts[c]))));
  return fmt::format(" ({})", fmt::join(texts, ", "));
}

std::string overlap_text(const Splits& splits, Split split) {
  if (split == Split::train || !splits.compared) return "";
  const std::uint64_t trained = splits.trained[static_cast<std::size_t>(split)];
  return trained == 0 ? fmt::format("; none are {}", splits.words.overlaps)
                      : fmt::format("; {} of them ({:.1f}%) are {}", trained,
                                    100 * splits.overlap(split), splits.words.overlaps);
}

}  // namespace

std::vector<Option> split_options() {
  return {choice("split", kStratified,
                 "which items of data.files are held out: a random share of each class, keeping "
                 "items with equal content together (stratified), or the last ones (end)",
                 {kStratified, "end"}),
          {"split_seed", std::int64_t{0},
           "seed of the stratified split, independent of run.seed and data.seed, so that all "
           "runs, including fine-tuning after pretraining, hold out the same items",
           0},
          {.name = "missing_classes",
           .default_value = false,
           .help = "whether training, validation or test may lack a class that another split has",
           .only_checks = true}};
}

SplitFiles split_files(const DataOptions& options) {
  SplitFiles files;
  const std::string key(find_format(options.format).files_key);
  files.of[0] = Corpus(options.files, key).files();
  if (!options.validation_files.empty())
    files.of[1] = Corpus(options.validation_files, "data.validation_files").files();
  if (!options.test_files.empty())
    files.of[2] = Corpus(options.test_files, "data.test_files").files();
  std::vector<std::string> all;
  for (const auto& some : files.of) all.insert(all.end(), some.begin(), some.end());
  files.corpus = std::make_shared<const Corpus>(all, key, /*joined=*/true);
  if (!find_format(options.format).binary) files.corpus->require_utf8(/*mark=*/true);
  return files;
}

std::uint64_t Splits::item(Split split, std::uint64_t sample) const {
  CONCERTINA_CHECK(sample < size(split), "sample {} is not in [0, {})", sample, size(split));
  for (std::size_t s = 0; s < static_cast<std::size_t>(split); ++s) sample += sizes[s];
  return items.empty() ? sample : items[sample];
}

double Splits::overlap(Split split) const {
  if (size(split) == 0) return 0;
  return static_cast<double>(trained[static_cast<std::size_t>(split)]) /
         static_cast<double>(size(split));
}

Splits split_items(const DataOptions& options, const std::array<std::uint64_t, 3>& counts,
                   const ItemFacts& facts) {
  const std::array<HeldOutPart, kSplitCount> parts = parts_of(options);
  const std::uint64_t all = counts[0] + counts[1] + counts[2];
  CONCERTINA_CHECK(facts.keys.empty() || facts.keys.size() == all, "{} keys for {} items",
                   facts.keys.size(), all);
  std::vector<Split> split = split_of_training_files(options, parts, counts[0], facts.keys);
  split.resize(counts[0] + counts[1], Split::validation);
  split.resize(all, Split::test);
  Splits splits{.words = facts.words};
  for (const Split one : split) ++splits.sizes[static_cast<std::size_t>(one)];
  check_sizes(options, splits, parts, counts[0]);
  if (!std::ranges::is_sorted(split)) splits.items = sorted_items(split, splits.sizes);
  if (facts.classes_of) check_learned(options, splits, facts, counts[0]);
  splits.compared = !facts.keys.empty();
  if (!splits.compared) return splits;
  count_classes(splits, facts);
  digest_content(splits, facts);
  count_trained(splits, facts);
  for (const Split held : {Split::validation, Split::test})
    check_overlap(options, splits, parts[static_cast<std::size_t>(held)], held);
  check_classes(options, splits, facts, parts);
  return splits;
}

std::string split_summary(const Corpus& corpus, const Splits& splits, std::string_view what,
                          std::span<const std::string> classes) {
  std::string lines;
  constexpr std::size_t kNamed = 20;
  const std::span<const std::string> files(corpus.files());
  for (const std::string& file : files.first(std::min(files.size(), kNamed)))
    lines += fmt::format("file        {}\n", file);
  if (files.size() > kNamed)
    lines += fmt::format("            and {} more\n", files.size() - kNamed);
  for (std::size_t s = 0; s < kSplitCount; ++s) {
    if (s == 2 && splits.sizes[s] == 0) continue;
    lines += fmt::format("{:<12}{} {}{}{}\n", part_name(s), splits.sizes[s], what,
                         classes_text(splits.of_class[s], classes),
                         splits.sizes[s] == 0 ? "" : overlap_text(splits, static_cast<Split>(s)));
  }
  return lines;
}

std::vector<std::string> split_lines(const Splits& splits, std::span<const std::string> classes) {
  std::vector<std::string> lines;
  for (std::size_t s = 0; s < kSplitCount; ++s)
    if (splits.sizes[s] > 0)
      lines.push_back(fmt::format(
          "{}: {}{}{}", part_name(s),
          counted(static_cast<std::int64_t>(splits.sizes[s]), splits.words.item),
          classes_text(splits.of_class[s], classes), overlap_text(splits, static_cast<Split>(s))));
  return lines;
}

}  // namespace concertina
