#include "io/datasets/class_labels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/text/number_text.h"

namespace concertina {
namespace {

using Places = std::function<std::string(std::size_t row)>;

constexpr const char* kRule = "use labels 0, 1, ... without gaps, or names";

/// Returns the value of a non-negative integer label; nothing for any other text.
std::optional<std::int64_t> whole_number_of(std::string_view label) {
  if (const std::size_t dot = label.find('.');
      dot != std::string_view::npos && dot + 1 < label.size() &&
      label.find_first_not_of('0', dot + 1) == std::string_view::npos)
    label = label.substr(0, dot);
  const auto number = parse_number<std::int64_t>(label);
  return number && *number >= 0 ? number : std::nullopt;
}

/// Returns true if all labels are numbers, and false if none is; throws if they are mixed.
bool are_numbers(std::span<const std::string_view> labels, const Places& place_of) {
  bool numbers = false, scores = true;
  std::optional<std::size_t> other;  // first label of a different kind
  for (std::size_t row = 0; row < labels.size(); ++row) {
    if (labels[row].empty())
      throw_input("the label is empty", place_of(row), "add a label to each row");
    const bool whole = whole_number_of(labels[row]).has_value();
    scores = scores && parse_number<double>(labels[row]);
    if (row > 0 && whole != numbers && !other) other = row;
    if (row == 0) numbers = whole;
  }
  if (!other) {
    if (scores && !numbers)
      throw_input(fmt::format("the label '{}' is a score, not a class", labels[0].substr(0, 60)),
                  place_of(0), fmt::format("{}; data.label_column selects the column", kRule));
    return numbers;
  }
  if (scores)
    throw_input(fmt::format("the label '{}' is a score, not a class",
                            labels[numbers ? *other : 0].substr(0, 60)),
                place_of(numbers ? *other : 0),
                fmt::format("{}; data.label_column selects the column", kRule));
  throw_input(fmt::format("the label '{}' is {} number, but the previous ones are {}",
                          labels[*other].substr(0, 60), numbers ? "not a" : "a",
                          numbers ? "numbers" : "names"),
              place_of(*other), kRule);
}

/// Returns the numbers, which must have no gaps.
std::vector<std::int32_t> checked_numbers(std::span<const std::string_view> labels,
                                          const Places& place_of) {
  std::vector<std::int64_t> numbers;
  for (const std::string_view label : labels) numbers.push_back(*whole_number_of(label));
  const auto largest = std::ranges::max_element(numbers);
  std::vector<bool> there(numbers.size());
  for (const std::int64_t number : numbers)
    if (std::cmp_less(number, there.size())) there[static_cast<std::size_t>(number)] = true;
  for (std::int64_t label = 0; label <= *largest; ++label)
    if (std::cmp_greater_equal(label, there.size()) || !there[static_cast<std::size_t>(label)])
      throw_input(fmt::format("label {} is out of range: no row has label {}", *largest, label),
                  place_of(static_cast<std::size_t>(largest - numbers.begin())), kRule);
  return {numbers.begin(), numbers.end()};
}

ClassLabels classes_in(std::span<const std::string> order, std::span<const std::string_view> labels,
                       const Places& place_of) {
  ClassLabels classes{.names = {order.begin(), order.end()}};
  for (std::size_t row = 0; row < labels.size(); ++row) {
    const auto name = std::ranges::find(order, labels[row]);
    const auto number = name == order.end() ? whole_number_of(labels[row]) : name - order.begin();
    if (!number || std::cmp_greater_equal(*number, order.size()))
      throw_input(
          fmt::format("the label '{}' is not a class of the model or of data.classes",
                      labels[row].substr(0, 60)),
          place_of(row),
          fmt::format("use one of: {}; or model.head = \"new\"",
                      fmt::join(order.first(std::min<std::size_t>(20, order.size())), ", ")));
    classes.numbers.push_back(static_cast<std::int32_t>(*number));
  }
  return classes;
}

}  // namespace

ClassLabels number_classes(std::span<const std::string_view> labels, const Places& place_of,
                           std::span<const std::string> order) {
  if (!order.empty()) return classes_in(order, labels, place_of);
  ClassLabels classes;
  if (labels.empty()) return classes;
  if (are_numbers(labels, place_of)) {
    classes.numbers = checked_numbers(labels, place_of);
    for (std::int32_t label = 0; label <= *std::ranges::max_element(classes.numbers); ++label)
      classes.names.push_back(std::to_string(label));
    return classes;
  }
  std::map<std::string_view, std::int32_t> names;
  for (const std::string_view label : labels) names.emplace(label, 0);
  for (auto& [name, number] : names) {
    number = static_cast<std::int32_t>(classes.names.size());
    classes.names.emplace_back(name);
  }
  for (const std::string_view label : labels) classes.numbers.push_back(names.at(label));
  return classes;
}

}  // namespace concertina
