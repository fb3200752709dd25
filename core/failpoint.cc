#include "core/failpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/text/number_text.h"

namespace concertina {
namespace {

/// The name of each failpoint, the place that checks it, and what it affects.
constexpr std::array<std::string_view, 9> kFailpoints{
    "activation-nan",    // models/model_stage.cc: an element of a unit's output
    "weight-bit",        // parallel/runtime/state_check.cc: a weight, before a step
    "weight-bit-after",  // likewise, after the update and before anything is recorded
    "optimizer-bit",     // likewise, the optimizer state, before a step
    "hang",              // parallel/runtime/executor.cc: after a compute action, spinning
    "block",             // likewise, sleeping
    "unread",            // parallel/runtime/step_engine.cc: a sample of a step
    "unread-held-out",   // likewise, a sample of an evaluation; STEP is a batch, from 1
    "lost-message",      // parallel/runtime/transfers.cc: a message between stages is not sent
};

struct Armed {
  std::string name;
  std::map<std::string, std::int64_t, std::less<>> facts;
  std::int64_t times = 1;
  std::map<std::int64_t, std::int64_t> happened;  // by rank, because ranks may be threads
};

std::mutex mutex;
std::vector<Armed> armed;

[[noreturn]] void refuse(std::string_view text) {
  throw_input(
      fmt::format("'{}' is not a failpoint", text),
      fmt::format("environment variable {}", kFailpointsVariable),
      fmt::format("name@STEP:rank=R, where name is one of: {}", fmt::join(kFailpoints, ", ")));
}

/// Removes and returns the front of `text` up to `end`, which is also removed.
std::string_view next_part(std::string_view& text, char end) {
  const std::string_view part = text.substr(0, text.find(end));
  text.remove_prefix(std::min(text.size(), part.size() + 1));
  return part;
}

Armed parse_failpoint(std::string_view text) {
  const std::string_view all = text;
  const auto number = [&](std::string_view digits) {
    const auto value = parse_number<std::int64_t>(digits);
    if (!value) refuse(all);
    return *value;
  };
  std::string_view place = next_part(text, ':');
  Armed one;
  one.name = next_part(place, '@');
  if (std::ranges::find(kFailpoints, one.name) == kFailpoints.end()) refuse(all);
  if (!place.empty()) one.facts["step"] = number(place);
  while (!text.empty()) {
    std::string_view value = next_part(text, ',');
    const std::string_view key = next_part(value, '=');
    (key == "times" ? one.times : one.facts[std::string(key)]) = number(value);
  }
  return one;
}

}  // namespace

std::atomic<bool> detail::failpoints_armed = false;

void arm_failpoints(std::string_view text) {
  std::vector<Armed> parsed;
  while (!text.empty()) parsed.push_back(parse_failpoint(next_part(text, ';')));
  const std::scoped_lock lock(mutex);
  armed = std::move(parsed);
  detail::failpoints_armed = !armed.empty();
}

bool detail::failpoint_hit(std::string_view name, std::initializer_list<FailpointFact> facts) {
  const auto fact = [&](std::string_view key) {
    return std::ranges::find(facts, key, &FailpointFact::key);
  };
  const std::scoped_lock lock(mutex);
  for (Armed& one : armed) {
    const bool here = one.name == name && std::ranges::all_of(one.facts, [&](const auto& wanted) {
                        const auto* const known = fact(wanted.first);
                        return known != facts.end() && known->value == wanted.second;
                      });
    const auto* const rank = fact("rank");
    if (here && one.happened[rank == facts.end() ? 0 : rank->value]++ < one.times) return true;
  }
  return false;
}

}  // namespace concertina
