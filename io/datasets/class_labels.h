// Converts written class labels to class numbers. Other kinds of labels (scores, several classes
// per row, a tag per word) belong in separate files.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace concertina {

struct ClassLabels {
  std::vector<std::int32_t> numbers{};  // of each row
  std::vector<std::string> names{};     // of each class
};

/// Whole numbers (1 or 1.0) are class numbers and must be 0, 1, ... without gaps, since a lone
/// outlier is most likely a mistake. Other labels are names, numbered in bytewise order. `place_of`
/// locates a row in errors, which are thrown for an empty label, a mix of numbers and names, a
/// number out of range, and scores. With an `order`, labels must be names or numbers of its
/// classes.
ClassLabels number_classes(std::span<const std::string_view> labels,
                           const std::function<std::string(std::size_t row)>& place_of,
                           std::span<const std::string> order = {});

}  // namespace concertina
