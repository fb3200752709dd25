// CIFAR's binary version: records of label bytes, followed by an image of 3 x 32 x 32 pixels.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "io/images/images.h"

namespace concertina {

/// One label byte of a record, below `classes`. `names_file` lists class names, one per line.
struct CifarLabel {
  std::string_view word;  // name of the label in errors
  int classes = 0;
  std::string_view names_file;
};

/// Loads images and label number `used` from the files of `options`, plain or gzip. A record
/// consists of one byte per element of `labels`, then 1,024 bytes each of red, green and blue in
/// row-major order. Class names are read from `names_file` if it is in the folder of the first
/// file; otherwise they are numbers. Throws Error{bad_input} naming the byte of an incomplete
/// record or a label out of range, or the line of the names file. Source: Krizhevsky, "Learning
/// Multiple Layers of Features from Tiny Images", 2009, and the web page of the dataset.
std::unique_ptr<Dataset> cifar_dataset(const DataOptions& options,
                                       std::span<const CifarLabel> labels, std::size_t used);

inline constexpr CifarLabel kCifar10Labels[] = {{"label", 10, "batches.meta.txt"}};
inline constexpr CifarLabel kCifar100Labels[] = {{"coarse label", 20, "coarse_label_names.txt"},
                                                 {"fine label", 100, "fine_label_names.txt"}};

}  // namespace concertina
