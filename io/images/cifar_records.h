// Files of CIFAR's binary version: records of some label bytes and an image of 3 x 32 x 32.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "io/images/images.h"

namespace concertina {

/// One label byte of a record: below `classes`, whose names are the lines of `names_file`.
struct CifarLabel {
  std::string_view word;  // what the label is called in errors
  int classes = 0;
  std::string_view names_file;
};

/// Images and label number `used` of the files of `options`, plain or gzip. A record has a byte per
/// element of `labels`, then 1,024 bytes each of red, green and blue, row by row. The classes have
/// their names if `names_file` is in the folder of the first file, else they are numbers.
/// Input errors name the file and the byte: no whole number of records, a label out of range; or
/// the line of the file of names.
/// Source: Krizhevsky, "Learning Multiple Layers of Features from Tiny Images", 2009, and the
/// page of its data.
std::unique_ptr<Dataset> cifar_dataset(const DataOptions& options,
                                       std::span<const CifarLabel> labels, std::size_t used);

inline constexpr CifarLabel kCifar10Labels[] = {{"label", 10, "batches.meta.txt"}};
inline constexpr CifarLabel kCifar100Labels[] = {{"coarse label", 20, "coarse_label_names.txt"},
                                                 {"fine label", 100, "fine_label_names.txt"}};

}  // namespace concertina
