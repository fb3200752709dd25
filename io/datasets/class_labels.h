// Labels as they are written, as numbers of classes. Other kinds of labels (scores, several classes
// of a row, a tag for each word) would be files beside this one.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace concertina {

struct ClassLabels {
  std::vector<std::int32_t> numbers{};  // of the rows
  std::vector<std::string> names{};     // of the classes
};

/// Whole numbers (1 or 1.0) are the classes that they say, and must be 0, 1, ... without a gap: one
/// that is alone is most likely an error. Anything else is a name; names are numbered in the order
/// of their bytes. `place_of`: where a row is, for errors: a label that is empty, or that is a
/// number among names; a number out of range; scores. With an `order` classes are those, whether
/// labels are their names or their numbers, and any other label is an error.
ClassLabels number_classes(std::span<const std::string_view> labels,
                           const std::function<std::string(std::size_t row)>& place_of,
                           std::span<const std::string> order = {});

}  // namespace concertina
