// Which files a dataset of countable items reads, and which of its items are held out.
// Invariant: items are numbered through the splits: those of training first, then validation, test.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io/datasets/dataset.h"

namespace concertina {

/// The files of each split, in their order, and all of them as one corpus.
struct SplitFiles {
  std::array<std::vector<std::string>, 3> of{};
  std::shared_ptr<const Corpus> corpus{};
};

/// Input errors as of Corpus, with the key that names the files.
SplitFiles split_files(const DataOptions& options);

struct Splits {
  std::array<std::uint64_t, 3> sizes{};  // items

  std::uint64_t size(Split split) const { return sizes[static_cast<std::size_t>(split)]; }
  std::uint64_t all() const { return sizes[0] + sizes[1] + sizes[2]; }
  /// The item that sample `sample` of a split is.
  std::uint64_t item(Split split, std::uint64_t sample) const;
};

/// `counts`: items in the files of each split. Without validation_files, the share data.validation
/// of the first, its end, is held out. Input errors: nothing left to train on, nothing held out.
Splits split_items(const DataOptions& options, const std::array<std::uint64_t, 3>& counts);

/// "file  ..." for each file, then "training    n", ... of things called `what`.
std::string split_summary(const Corpus& corpus, const Splits& splits, std::string_view what);

/// The whole of a file, decompressed where it begins as gzip does. Input errors: more than 4 GiB,
/// damaged or cut short.
std::string read_maybe_gzip(const std::string& path);

}  // namespace concertina
