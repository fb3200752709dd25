#include "experiments/study/study_overrides.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>

#include "core/error.h"
#include "core/text/number_text.h"
#include "experiments/config/config_keys.h"
#include "experiments/config/config_toml.h"
#include "experiments/study/study_spec.h"

namespace concertina {
namespace {

/// Hydra's functions, of which the first two are supported.
constexpr std::array<std::string_view, 8> kFunctions{"choice",  "range", "interval", "glob",
                                                     "shuffle", "sort",  "tag",      "extend_list"};
constexpr const char* kSweepForms = "KEY=A,B, choice(A,B) or range(START,STOP,STEP)";

/// Splits at commas outside quotes and brackets.
std::vector<std::string> split_values(const std::string& text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0)
      quote = c == quote ? 0 : quote;
    else if (c == '"' || c == '\'')
      quote = c;
    else if (c == '(' || c == '[' || c == '{')
      ++depth;
    else if (c == ')' || c == ']' || c == '}')
      --depth;
    if (c == ',' && depth == 0 && quote == 0)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

/// Returns the numbers START, START + STEP, ... before STOP, as text.
std::vector<std::string> range_values(const std::string& key, const std::string& arguments) {
  const auto refuse = [&](const std::string& what) {
    throw_input(fmt::format("range({}) {}", arguments, what), key, "range(START,STOP,STEP)");
  };
  std::vector<double> ends;
  for (std::string one : split_values(arguments)) {
    std::erase(one, ' ');
    ends.push_back(parse_number<double>(one).value_or(std::nan("")));
    if (!std::isfinite(ends.back())) refuse("has limits that are not numbers");
  }
  if (ends.size() == 1) ends.insert(ends.begin(), 0);
  if (ends.size() == 2) ends.push_back(1);
  if (ends.size() != 3 || ends[2] == 0) refuse("is not a range");
  const double count = std::ceil((ends[1] - ends[0]) / ends[2] - 1e-9);
  if (!(count >= 1) || count > kMostTrials) refuse(fmt::format("has {:.0f} values", count));
  std::vector<std::string> values;
  for (int i = 0; i < static_cast<int>(count); ++i)
    values.push_back(fmt::format("{:.12g}", ends[0] + i * ends[2]));
  return values;
}

/// The value as in a study's file.
std::string toml_value(const std::string& key, const std::string& value) {
  if (key == kRanksKey) return value;
  RunConfig scratch;
  set_config(key + "=" + value, scratch);
  return value_text(*find_key(key), scratch);
}

}  // namespace

std::vector<std::string> sweep_values(const std::string& key, const std::string& text) {
  std::vector<std::string> values = split_values(text);
  const std::size_t open = text.find('(');
  const std::string name = text.substr(0, open);
  const bool known = std::ranges::find(kFunctions, name) != kFunctions.end();
  if (values.size() > 1 || open == std::string::npos || !text.ends_with(')') || !known)
    return values;
  const std::string arguments = text.substr(open + 1, text.size() - open - 2);
  if (name == "choice") return split_values(arguments);
  if (name == "range") return range_values(key, arguments);
  throw_input(fmt::format("{}() is not supported in {}={}", name, key, text), "command line",
              fmt::format("{}; [random] in the study's file draws from an interval", kSweepForms));
}

std::string overrides_text(const std::vector<std::string>& sets) {
  std::map<std::string, std::string> lines;
  std::string sweeps;
  for (const std::string& set : sets) {
    const std::size_t equals = set.find('=');
    const std::string key = set.substr(0, equals);
    if (key.starts_with('+') || key.starts_with('~'))
      throw_input(fmt::format("'{}' does not set a key", set), "command line", kSweepForms);
    if (RunConfig scratch; equals == std::string::npos) set_config(set, scratch);  // throws
    std::vector<std::string> values = sweep_values(key, set.substr(equals + 1));
    for (std::string& value : values) value = toml_value(key, value);
    if (values.size() == 1)
      lines[key] = values[0];
    else
      sweeps += fmt::format("{} = [{}]\n", key, fmt::join(values, ", "));
  }
  std::string text = lines.empty() && sweeps.empty() ? "" : "\n# from the command line\n";
  if (!lines.empty()) text += "[override]\n";
  for (const auto& [key, value] : lines) text += fmt::format("{} = {}\n", key, value);
  return text + (sweeps.empty() ? "" : "[sweep]\n" + sweeps);
}

}  // namespace concertina
