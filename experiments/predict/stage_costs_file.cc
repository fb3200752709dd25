#include "experiments/predict/stage_costs_file.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <string_view>

#include "core/error.h"
#include "io/input_file.h"
#include "parallel/predict/machine.h"

namespace concertina {
namespace {

constexpr std::uint64_t kMostStageCostsBytes = 16 << 20;
constexpr const char* kStageCostsHint =
    "a text file with the header F,I,W and one row of seconds per stage, such as 1,1,1";

/// Without spaces, and a CR, around it.
std::string_view trimmed(std::string_view text) {
  constexpr const char* kSpace = " \t\r";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

double seconds_of(std::string_view cell, const std::string& place) {
  double value = 0;
  const char* end = cell.data() + cell.size();
  const auto [parsed, error] = std::from_chars(cell.data(), end, value);
  if (error != std::errc{} || parsed != end || !is_figure(value))
    throw_input(fmt::format("'{}' is no cost", cell.substr(0, 40)), place,
                fmt::format("seconds: {}", kFigures));
  return value;
}

StageCosts row_of(std::string_view line, const std::string& place) {
  std::array<double, 3> seconds{};
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    const std::size_t comma = line.find(',');
    if ((comma == std::string_view::npos) != (i + 1 == seconds.size()))
      throw_input("a row has not three costs", place, kStageCostsHint);
    seconds[i] = seconds_of(trimmed(line.substr(0, comma)), place);
    if (comma != std::string_view::npos) line.remove_prefix(comma + 1);
  }
  return {.forward = seconds[0], .input = seconds[1], .weight = seconds[2]};
}

}  // namespace

bool is_stage_costs_file(const std::string& path) {
  return std::filesystem::path(path).extension() == ".csv";
}

std::vector<StageCosts> read_stage_costs(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    throw_input("there is no such file of costs", path, kStageCostsHint);
  const std::string text = read_input_file(path, kMostStageCostsBytes, kStageCostsHint);
  std::vector<StageCosts> rows;
  std::string_view left = text;
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // spreadsheets write it
  if (left.starts_with(kByteOrderMark)) left.remove_prefix(kByteOrderMark.size());
  left = left.substr(0, left.find_last_not_of(" \t\r\n") + 1);  // without blank lines at the end
  for (int line = 1; !left.empty(); ++line) {
    const std::size_t end = left.find('\n');
    const std::string_view row = trimmed(left.substr(0, end));
    left.remove_prefix(end == std::string_view::npos ? left.size() : end + 1);
    const std::string place = fmt::format("{}:{}", path, line);
    if (line == 1 && row != "F,I,W")
      throw_input(fmt::format("the first line is '{}', not F,I,W", row.substr(0, 40)), place,
                  kStageCostsHint);
    if (line > 1) rows.push_back(row_of(row, place));
  }
  if (rows.empty()) throw_input("the file has no costs", path, kStageCostsHint);
  return rows;
}

}  // namespace concertina
