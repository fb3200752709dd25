// Measures how long a condition has been observed without interruption. Invariant: pure. The
// observer may have been stopped together with what it observes, so both the clock and the number
// of observations count.
#pragma once

namespace concertina {

/// A condition lasts too long if it lasts more than `seconds` and `looks` checks in a row see it.
struct Limit {
  double seconds = 0;
  int looks = 1;
};
/// A process counts as stopped by a signal after this time: debuggers and tools that migrate
/// processes stop them for less time.
inline constexpr Limit kStopLimit{1.2, 4};

struct PersistentState {
  double free_at = 0;        // when the condition was last absent
  double seen_at = 0;        // time of the last check
  int looks = 0;             // consecutive checks that saw it
  bool is_reported = false;  // by exceeds_first(), since the condition was last absent

  void look(bool seen, double at) {
    seen_at = at;
    if (seen)
      ++looks;
    else
      *this = {.free_at = at, .seen_at = at};
  }
  bool exceeds(const Limit& limit) const {
    return looks >= limit.looks && seen_at > free_at + limit.seconds;
  }
  /// Like exceeds(), but returns true only once until the condition is absent again.
  bool exceeds_first(const Limit& limit) {
    if (is_reported || !exceeds(limit)) return false;
    return is_reported = true;
  }
};

}  // namespace concertina
