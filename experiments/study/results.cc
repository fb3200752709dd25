#include "experiments/study/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "core/error.h"
#include "core/text/number_text.h"

namespace concertina {
namespace {

constexpr std::array kStates = {"open", "done", "failed", "timeout", "stopped"};

Cell cell_of_text(const std::string& text) {
  if (const auto value = parse_number<double>(text)) return *value;
  return text;
}

}  // namespace

const char* name_of(TrialState state) {
  return kStates.at(static_cast<std::size_t>(state));
}

TrialState trial_state(const std::string& word, const std::string& where) {
  const auto found = std::ranges::find(kStates, word);
  if (found == kStates.end())
    throw_input(fmt::format("'{}' is not a valid trial state", word), where,
                fmt::format("one of: {}", fmt::join(kStates, ", ")));
  return static_cast<TrialState>(found - kStates.begin());
}

Cell cell_of(const TrialRecord& trial, const std::string& column) {
  for (const auto& [key, text] : trial.settings)
    if (key == column) return cell_of_text(text);
  if (const auto found = trial.metrics.find(column); found != trial.metrics.end())
    return found->second;
  if (const auto found = trial.facts.find(column); found != trial.facts.end()) return found->second;
  if (column == "trial") return static_cast<double>(trial.number);
  if (column == "state") return name_of(trial.state);
  if (column == "error" && !trial.error.empty()) return trial.error;
  return {};
}

std::vector<std::string> columns_of(const StudyResults& results) {
  std::vector<std::string> columns = {"trial", "state"};
  columns.insert(columns.end(), results.axes.begin(), results.axes.end());
  std::set<std::string> metrics, facts;
  for (const TrialRecord& trial : results.trials) {
    for (const auto& [name, value] : trial.metrics) metrics.insert(name);
    for (const auto& [name, text] : trial.facts) facts.insert(name);
  }
  for (const auto& names : {metrics, facts})
    for (const std::string& name : names)
      if (std::ranges::find(columns, name) == columns.end()) columns.push_back(name);
  columns.emplace_back("error");
  return columns;
}

std::string cell_text(const Cell& cell) {
  if (const auto* number = std::get_if<double>(&cell)) return fmt::format("{}", *number);
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  return {};
}

std::string settings_text(const Settings& settings) {
  std::string text;
  for (const auto& [key, value] : settings)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", key, value);
  return text;
}

}  // namespace concertina
