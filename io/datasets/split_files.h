// Which files a dataset of countable items reads, and which of its items are held out.
// Invariant: items are numbered through the splits' files: those of training first, then
// validation, test; each item is in one split, and a split has its items in the order of their
// numbers.
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

/// The files of each split, in their order, and all of them as one corpus.
struct SplitFiles {
  std::array<std::vector<std::string>, 3> of{};
  std::shared_ptr<const Corpus> corpus{};

  /// Calls read(path) for each file, and returns by how much size() grew with those of each split.
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

/// Input errors as of Corpus, with the key that names the files.
SplitFiles split_files(const DataOptions& options);

/// The options of formats whose items split_items() splits; they read data.test too.
std::vector<Option> split_options();

/// What an item is called, and what a held-out one does whose content is that of another to train
/// on.
struct SplitWords {
  std::string item = "item", overlaps = "trained on too";
};

struct Splits {
  std::array<std::uint64_t, 3> sizes{};  // items
  std::vector<std::uint64_t> items{};    // of the splits, one after the other; empty: all, in order
  std::array<std::vector<std::uint64_t>, 3> of_class{};  // items of each class; empty: no classes
  std::array<std::uint64_t, 3> trained{};  // held-out items whose content is trained on too
  bool compared = false;                   // `trained` says something
  std::array<SplitContent, 3> content{};   // of held-out splits; empty without keys
  SplitWords words{};

  std::uint64_t size(Split split) const { return sizes[static_cast<std::size_t>(split)]; }
  std::uint64_t all() const { return sizes[0] + sizes[1] + sizes[2]; }
  /// The item that sample `sample` of a split is.
  std::uint64_t item(Split split, std::uint64_t sample) const;
  /// The share of a held-out split that is trained on too.
  double overlap(Split split) const;
};

/// What a split may go by: a key for each item; `classes`, if any, are what their labels number.
/// Where an item may be of several classes, or its place is known, `names` are all classes,
/// `classes_of` returns those of an item (below 0: none), and `place_of` says where it is.
struct ItemFacts {
  std::span<const ItemKey> keys{};
  std::span<const std::string> classes{};
  SplitWords words{};
  std::span<const std::string> names{};
  std::function<std::vector<std::int32_t>(std::uint64_t item)> classes_of{};
  std::function<std::string(std::uint64_t item)> place_of{};
};

/// `counts`: items in the files of each split. Without files of its own, each held-out split gets
/// its share of the first: drawn as draw_split() does it, or where data.split or the lack of keys
/// says so, its end. Input errors: nothing left to train on, nothing held out; a held-out split of
/// which more than data.most_overlap is trained on; a class of `names` that held-out files have and
/// nothing to train on has; unless data.missing_classes, a class that one split has and another has
/// not, where items have one class each, or that training has not, where they have several.
Splits split_items(const DataOptions& options, const std::array<std::uint64_t, 3>& counts,
                   const ItemFacts& facts = {});

/// "file  ..." for each of the first 20 files, then "training    n", ... of things called `what`,
/// and how many are of each class.
std::string split_summary(const Corpus& corpus, const Splits& splits, std::string_view what,
                          std::span<const std::string> classes = {});

/// For a log, one line a split: "training: 900 rows (bad: 450, good: 450)", and of a held-out one
/// how much of it is trained on too. Without `classes`, as where the task sees none, they are left
/// out.
std::vector<std::string> split_lines(const Splits& splits, std::span<const std::string> classes);

}  // namespace concertina
