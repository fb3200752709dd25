// Named places where a fault can be made to happen, so that a test sees what the program makes of
// it. All are compiled in. Invariant: none does anything unless the environment asks for it; then a
// place costs one relaxed load and a branch.
#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace concertina {

/// What a place knows: "rank", 3.
struct FailpointFact {
  std::string_view key;
  std::int64_t value;
};

namespace detail {
extern std::atomic<bool> failpoints_armed;
bool failpoint_hit(std::string_view name, std::initializer_list<FailpointFact> facts);
}  // namespace detail

/// The environment variable that main() arms them by.
inline constexpr const char* kFailpointsVariable = "CONCERTINA_FAILPOINTS";

/// Arms "name@STEP:key=value,...;name...": a fault happens where all that the text says of it is
/// so, `times` times on each rank (1 unless it is said). In place of what was armed before. Throws
/// bad input for a name that is none, or text of another form.
void arm_failpoints(std::string_view text);

/// Whether the fault `name` happens here. May be called by any thread.
inline bool failpoint(std::string_view name, std::initializer_list<FailpointFact> facts) {
  if (!detail::failpoints_armed.load(std::memory_order_relaxed)) [[likely]]
    return false;
  return detail::failpoint_hit(name, facts);
}

}  // namespace concertina
