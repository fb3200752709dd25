#include "experiments/study/provenance.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/error.h"
#include "experiments/run/machine.h"

namespace concertina {
namespace {

struct Fact {
  const char* name;
  const char* key;  // of the config that sets it; empty: none does
  bool strict;
};

constexpr Fact kProvenance[] = {
    {"version", "", true},
    {"commit", "", true},
    {"processor", "", true},
    {"program", "", false},
    {"isa", "numerics.isa", false},
    {"libraries", "", false},
    {"onednn", "", false},
    {"device", "run.device", false},
    {"compute", "numerics.compute", false},
};

constexpr std::size_t kMostText = 80;  // of a fact

std::string fact_text(const std::string& text) {
  if (text.empty()) return "not recorded";
  return text.size() <= kMostText ? text : text.substr(0, kMostText) + "...";
}

/// "A (trials 1-3), B (trial 4)"; empty if all trials have the same.
std::string kinds_of(const Trials& trials, const std::string& fact) {
  std::vector<std::string> parts;
  for (const TrialGroup& group : groups_of(trials, {fact}))
    parts.push_back(fmt::format("{} (trial{} {})", fact_text(group.values[0]),
                                group.done.size() == 1 ? "" : "s",
                                to_ranges(numbers_of(group.done))));
  return parts.size() < 2 ? "" : fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

std::vector<std::string> provenance_notes(const Trials& trials, const StudyResults& results,
                                          bool mixed) {
  std::vector<std::string> notes;
  for (const Fact& fact : kProvenance) {
    if (std::ranges::find(results.axes, fact.key) != results.axes.end()) continue;
    const std::string kinds = kinds_of(trials, fact.name);
    if (kinds.empty()) continue;
    if (fact.strict && !mixed)
      throw_input(fmt::format("these trials differ in {}: {}", fact.name, kinds),
                  results.directory.empty() ? results.name : results.directory,
                  fmt::format("--where {}=... for some of them, or --mixed for all in one table",
                              fact.name));
    notes.push_back(fmt::format("{}: these trials differ in {}: {}",
                                fact.strict ? "mixed" : "warning", fact.name, kinds));
  }
  return notes;
}

}  // namespace concertina
