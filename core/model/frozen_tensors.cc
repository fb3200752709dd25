// Selects the tensors that train, by name patterns.
#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "core/model/model_spec.h"
#include "core/text/number_text.h"

namespace concertina {
namespace {

std::string full_name(const UnitSpec& unit, const ParameterSpec& parameter) {
  return parameter.shared.empty() ? unit.name + "/" + parameter.name : parameter.shared;
}

}  // namespace

void freeze_tensors(ModelSpec& model, const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns) {
    const bool trains = pattern.starts_with('!');
    bool fits = false;
    for (UnitSpec& unit : model.units)
      for (ParameterSpec& parameter : unit.parameters) {
        const std::string name = full_name(unit, parameter);
        if (fnmatch(pattern.c_str() + (trains ? 1 : 0), name.c_str(), 0) != 0) continue;
        parameter.trains = trains;
        fits = true;
      }
    if (!fits)
      throw_input(fmt::format("no tensor of this model matches {}", pattern), "freeze.tensors",
                  fmt::format("patterns that match names such as {}, {}",
                              full_name(model.units.front(), model.units.front().parameters[0]),
                              full_name(model.units.back(), model.units.back().parameters[0])));
  }
  if (!patterns.empty() && trained_and_all(model).first == 0)
    throw_input("no tensors left to train", "freeze.tensors",
                "end the list with a pattern that starts with !, such as \"!*.head/*\"");
}

void freeze_base(ModelSpec& model) {
  for (UnitSpec& unit : model.units)
    for (ParameterSpec& parameter : unit.parameters) parameter.trains = parameter.tuned;
}

int untrained_units(const ModelSpec& model) {
  int units = 0;
  for (const UnitSpec& unit : model.units) {
    if (std::ranges::any_of(unit.parameters, &ParameterSpec::trains)) return units;
    ++units;
  }
  return units;
}

std::pair<std::int64_t, std::int64_t> trained_and_all(const ModelSpec& model) {
  std::int64_t trained = 0, all = 0;
  std::set<std::string> shared;
  for (const UnitSpec& unit : model.units)
    for (const ParameterSpec& parameter : unit.parameters) {
      if (!parameter.shared.empty() && !shared.insert(parameter.shared).second) continue;
      all += parameter.count();
      trained += parameter.trains ? parameter.count() : 0;
    }
  return {trained, all};
}

std::string trained_text(const ModelSpec& model, int frozen_units) {
  const auto [trained, all] = trained_and_all(model);
  if (trained == all) return "";
  std::string text = fmt::format("{} of {} parameters train", grouped(trained), grouped(all));
  if (const int units = untrained_units(model); units > frozen_units)
    text += fmt::format(
        "; none in the first {}: freeze.units = {} would skip their backward pass and dropout",
        counted(units, "unit"), units);
  return text;
}

}  // namespace concertina
