// Named places where tests can inject faults. All are compiled in.
// Invariant: unless the environment enables it, a failpoint does nothing, and costs only one
// relaxed load and a branch.
#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace concertina {

/// A fact at a failpoint, such as {"rank", 3}.
struct FailpointFact {
  std::string_view key;
  std::int64_t value;
};

namespace detail {
extern std::atomic<bool> failpoints_armed;
bool failpoint_hit(std::string_view name, std::initializer_list<FailpointFact> facts);
}  // namespace detail

/// The environment variable from which main() arms failpoints.
inline constexpr const char* kFailpointsVariable = "CONCERTINA_FAILPOINTS";

/// Arms "name@STEP:key=value,...;name...", replacing any previous ones. A fault happens where all
/// of its conditions hold, `times` times per rank (default: 1). Throws Error{bad_input} for an
/// unknown name or a syntax error.
void arm_failpoints(std::string_view text);

/// Whether the fault `name` happens here. Thread-safe.
inline bool failpoint(std::string_view name, std::initializer_list<FailpointFact> facts) {
  if (!detail::failpoints_armed.load(std::memory_order_relaxed)) [[likely]]
    return false;
  return detail::failpoint_hit(name, facts);
}

}  // namespace concertina
