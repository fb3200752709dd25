#include "experiments/results/provenance.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "experiments/machine/machine.h"

namespace concertina {
namespace {

struct Fact {
  const char* name;
  const char* key;  // of the config that sets it; empty: none does
  bool strict;
};

constexpr Fact kProvenance[] = {
    {"version", "", true},           {"commit", "", true},
    {"processor", "", true},         {"text", "data.text", true},
    {"program", "", false},          {"isa", "numerics.isa", false},
    {"libraries", "", false},        {"onednn", "", false},
    {"device", "run.device", false}, {"compute", "numerics.compute", false},
};

constexpr std::size_t kMostText = 80;  // of a fact

std::string fact_text(const std::string& text) {
  if (text.empty()) return "not recorded";
  return text.size() <= kMostText ? text : text.substr(0, kMostText) + "...";
}

/// What a trial's `fact` says; of libraries, which are a JSON object, one of them where it is
/// named.
std::string fact_of(const TrialRecord& trial, const std::string& fact, const std::string& library) {
  const std::string text = cell_text(cell_of(trial, fact));
  if (library.empty()) return text;
  const nlohmann::json libraries = nlohmann::json::parse(text, nullptr, false);
  if (!libraries.is_object() || !libraries.contains(library)) return {};
  const nlohmann::json& version = libraries[library];
  return version.is_string() ? version.get<std::string>() : version.dump();
}

/// "A (trials 1-3), B (trial 4)"; empty if all trials have the same.
std::string kinds_of(const Trials& trials, const std::string& fact, const std::string& library) {
  std::vector<std::pair<std::string, Trials>> kinds;
  for (const TrialRecord* trial : trials) {
    const std::string text = fact_of(*trial, fact, library);
    const auto found = std::ranges::find(kinds, text, &std::pair<std::string, Trials>::first);
    (found != kinds.end() ? *found : kinds.emplace_back(text, Trials())).second.push_back(trial);
  }
  if (kinds.size() < 2) return {};
  std::vector<std::string> parts;
  for (const auto& [text, those] : kinds)
    parts.push_back(fmt::format("{} (trial{} {})", fact_text(text), those.size() == 1 ? "" : "s",
                                to_ranges(numbers_of(those))));
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// The libraries that some trial names; one without a name for any other fact.
std::set<std::string> libraries_in(const Trials& trials, const std::string& fact) {
  if (fact != "libraries") return {""};
  std::set<std::string> names;
  for (const TrialRecord* trial : trials)
    if (const auto json = nlohmann::json::parse(cell_text(cell_of(*trial, fact)), nullptr, false);
        json.is_object())
      for (const auto& [name, version] : json.items()) names.insert(name);
  return names;
}

}  // namespace

std::vector<std::string> provenance_notes(const Trials& trials, const StudyResults& results,
                                          bool mixed) {
  std::vector<std::string> notes;
  for (const Fact& fact : kProvenance) {
    if (std::ranges::find(results.axes, fact.key) != results.axes.end()) continue;
    for (const std::string& library : libraries_in(trials, fact.name)) {
      const std::string kinds = kinds_of(trials, fact.name, library);
      if (kinds.empty()) continue;
      if (fact.strict && !mixed)
        throw_input(fmt::format("these trials differ in {}: {}", fact.name, kinds),
                    results.directory.empty() ? results.name : results.directory,
                    fmt::format("--where {}=... for some of them, or --mixed for all in one table",
                                fact.name));
      notes.push_back(fmt::format("{}: these trials differ in {}: {}",
                                  fact.strict ? "mixed" : "warning",
                                  library.empty() ? fact.name : library, kinds));
    }
  }
  return notes;
}

}  // namespace concertina
