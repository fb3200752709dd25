#include "experiments/results/study_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include <set>

#include "core/error.h"
#include "experiments/machine/machine.h"
#include "io/strict_json.h"

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

/// The text of a trial's `fact`; of libraries, which are a JSON object, one of them where it is
/// named.
std::string fact_of(const TrialRecord& trial, const std::string& fact, const std::string& library) {
  const std::string text = cell_text(cell_of(trial, fact));
  if (library.empty()) return text;
  const nlohmann::json libraries = parse_json(text);
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
    if (const auto json = parse_json(cell_text(cell_of(*trial, fact))); json.is_object())
      for (const auto& [name, version] : json.items()) names.insert(name);
  return names;
}

constexpr std::array kBitColumns = {"loss", "validation_loss", "grad_norm", "state_sha256"};
constexpr std::size_t kMostBits = 12;  // characters of a hash that tell it from others

struct BitAxes {
  std::vector<std::string> layout, others;
};

std::string bits_of(const TrialRecord& trial, const std::string& column) {
  const std::string text = cell_text(cell_of(trial, column));
  return text.empty() ? "nothing" : text;
}

std::string short_bits(const std::string& text) {
  return text.size() > 32 ? text.substr(0, kMostBits) : text;
}

/// "a, b and c".
std::string listed(const std::vector<std::string>& words) {
  if (words.size() < 2) return words.empty() ? "" : words[0];
  return fmt::format("{} and {}", fmt::join(words.begin(), words.end() - 1, ", "), words.back());
}

/// Names the trials of the group that have other bits than most; empty if there are none.
std::string odd_ones(const TrialGroup& group, const BitAxes& axes, const std::string& column) {
  std::map<std::string, Trials> by_bits;
  for (const TrialRecord* trial : group.done) by_bits[bits_of(*trial, column)].push_back(trial);
  if (by_bits.size() < 2) return {};
  // Most trials; of equally many, the value of the first trial.
  const auto most = std::ranges::max_element(by_bits, [](const auto& a, const auto& b) {
    const auto rank = [](const Trials& t) { return std::pair(t.size(), -t.front()->number); };
    return rank(a.second) < rank(b.second);
  });
  std::vector<std::string> odd;
  for (const auto& [bits, trials] : by_bits)
    if (bits != most->first)
      for (const TrialGroup& layout : groups_of(trials, axes.layout))
        odd.push_back(fmt::format("{} (trial {}) has {}", settings_text(axes.layout, layout.values),
                                  to_ranges(numbers_of(layout.done)), short_bits(bits)));
  constexpr std::size_t kMostOdd = 8;
  const std::size_t more = odd.size() > kMostOdd ? odd.size() - kMostOdd : 0;
  odd.resize(odd.size() - more);
  return fmt::format("{}{}; {} of {} trials have {}", fmt::join(odd, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "", most->second.size(),
                     group.done.size(), short_bits(most->first));
}

std::string same_line(const std::vector<std::string>& columns, const BitAxes& axes,
                      const std::vector<TrialGroup>& groups, const Trials& trials) {
  const std::size_t layouts = groups_of(trials, axes.layout).size();
  std::size_t least = layouts;
  for (const TrialGroup& group : groups)
    least = std::min(least, groups_of(group.done, axes.layout).size());
  const std::string count = least == layouts ? fmt::format("all {}", layouts)
                                             : fmt::format("{} to {} of", least, layouts);
  std::string line = fmt::format("{}: the same bits in {} groups of {}", listed(columns),
                                 least == layouts ? count : fmt::format("{} {}", count, layouts),
                                 listed(axes.layout));
  if (axes.others == std::vector<std::string>{"run.seed"})
    return line + (groups.size() == 1 ? " for the one seed"
                                      : fmt::format(" for each of {} seeds", groups.size()));
  if (!axes.others.empty())
    line += fmt::format(" for each of {} values of {}", groups.size(), listed(axes.others));
  return line;
}

}  // namespace

std::vector<std::string> provenance_notes(const Trials& trials, const StudyResults& results,
                                          bool mixed) {
  std::vector<std::string> notes;
  for (const Fact& fact : kProvenance) {
    // The study asks for it, of all trials or of an arm.
    const auto sets = [&](const TrialRecord& trial) {
      return std::ranges::find(trial.settings, fact.key, &Settings::value_type::first) !=
             trial.settings.end();
    };
    if (std::ranges::find(results.axes, fact.key) != results.axes.end() ||
        std::ranges::any_of(results.trials, sets))
      continue;
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

std::vector<std::string> same_bits(const Trials& trials, const std::vector<std::string>& axes) {
  BitAxes split;
  for (const std::string& axis : axes)
    (is_layout_key(axis) ? split.layout : split.others).push_back(axis);
  std::vector<TrialGroup> groups = groups_of(trials, split.others);
  std::erase_if(groups, [&](const TrialGroup& group) {
    return groups_of(group.done, split.layout).size() < 2;
  });
  if (split.layout.empty() || groups.empty()) return {};
  std::vector<std::string> same, lines;
  for (const std::string column : kBitColumns) {
    if (std::ranges::all_of(
            trials, [&](const TrialRecord* t) { return cell_text(cell_of(*t, column)).empty(); }))
      continue;
    const std::size_t before = lines.size();
    for (const TrialGroup& group : groups)
      if (const std::string odd = odd_ones(group, split, column); !odd.empty())
        lines.push_back(fmt::format("{} differs{}{}: {}", column,
                                    split.others.empty() ? "" : " at ",
                                    settings_text(split.others, group.values), odd));
    if (lines.size() == before) same.push_back(column);
  }
  if (!same.empty()) lines.insert(lines.begin(), same_line(same, split, groups, trials));
  return lines;
}

}  // namespace concertina
