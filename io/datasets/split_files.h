// The files of a dataset of countable items, and which items are held out. Invariant: items are
// numbered across the files of the splits: training, then validation, then test. Each item is in
// one split, whose items are ordered by number.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/datasets/dataset.h"
#include "io/datasets/drawn_split.h"

namespace concertina {

/// The files of each split, in order, and all of them as one corpus.
struct SplitFiles {
  std::array<std::vector<std::string>, 3> of{};
  std::shared_ptr<const Corpus> corpus{};

  /// Calls read(path) for each file, and returns by how much size() grew for each split.
  template <class Read, class Size>
  std::array<std::uint64_t, 3> read(const Read& read, const Size& size) const {
    std::array<std::uint64_t, 3> counts{};
    for (std::size_t split = 0; split < counts.size(); ++split) {
      const std::uint64_t before = size();
      for (const std::string& path : of[split]) read(path);
      counts[split] = size() - before;
    }
    return counts;
  }
};

/// Throws like Corpus, with the key that names the files.
SplitFiles split_files(const DataOptions& options);

/// Returns the options of formats that use split_items(); these formats also read data.test.
std::vector<Option> split_options();

/// The name of an item, and what to say about a held-out item with the same content as a training
/// item.
struct SplitWords {
  std::string item = "item", overlaps = "also in the training data";
};

struct Splits {
  std::array<std::uint64_t, 3> sizes{};  // numbers of items
  std::vector<std::uint64_t> items{};    // item numbers, split by split; empty: 0, 1, ...
  std::array<std::vector<std::uint64_t>, 3> of_class{};  // items per class; empty: no classes
  std::array<std::uint64_t, 3> trained{};  // held-out items that are also in the training data
  bool compared = false;                   // whether `trained` is valid
  std::array<SplitContent, 3> content{};   // of held-out splits; empty if there are no keys
  SplitWords words{};

  std::uint64_t size(Split split) const { return sizes[static_cast<std::size_t>(split)]; }
  std::uint64_t all() const { return sizes[0] + sizes[1] + sizes[2]; }
  /// Returns the item of sample `sample` of a split.
  std::uint64_t item(Split split, std::uint64_t sample) const;
  /// Returns the share of a held-out split that is also in the training data.
  double overlap(Split split) const;
};

/// What a split may be based on: a key per item, and `classes`, the names of the labels, if any. If
/// an item may have several classes or a known position, `names` are all classes, `classes_of`
/// returns the classes of an item (below 0: none), and `place_of` returns its position.
struct ItemFacts {
  std::span<const ItemKey> keys{};
  std::span<const std::string> classes{};
  SplitWords words{};
  std::span<const std::string> names{};
  std::function<std::vector<std::int32_t>(std::uint64_t item)> classes_of{};
  std::function<std::string(std::uint64_t item)> place_of{};
};

/// `counts`: number of items in the files of each split. A held-out split without separate files
/// receives its share of the training files: by draw_split(), or from the end if data.split or
/// missing keys require it. Throws Error{bad_input} if training or a requested split is empty; more
/// than data.most_overlap of a held-out split is also in the training data; held-out files have a
/// class of `names` that the training data lacks; or, unless data.missing_classes, a split lacks a
/// class that another split has (with several classes per item, only training is checked).
Splits split_items(const DataOptions& options, const std::array<std::uint64_t, 3>& counts,
                   const ItemFacts& facts = {});

/// Returns "file  ..." for each of the first 20 files, then "training    n", ... where n counts
/// items called `what`, with the number of items per class.
std::string split_summary(const Corpus& corpus, const Splits& splits, std::string_view what,
                          std::span<const std::string> classes = {});

/// Returns one log line per split: "training: 900 rows (bad: 450, good: 450)", with the overlap for
/// held-out splits. Class counts are omitted if `classes` is empty, as for tasks that do not use
/// classes.
std::vector<std::string> split_lines(const Splits& splits, std::span<const std::string> classes);

}  // namespace concertina
