// How long something has been seen without a break.
// Invariant: pure; who looks may have been stopped together with what it looks at, so that looks
// count beside the clock.
#pragma once

namespace concertina {

/// What lasts longer than the seconds, and is seen in as many looks in a row, lasts too long.
struct Limit {
  double seconds = 0;
  int looks = 1;
};
/// A process counts as stopped by a signal once it has been stopped for longer: debuggers and tools
/// that move processes stop them for less.
inline constexpr Limit kStopLimit{1.2, 4};

struct Lasting {
  double free_at = 0;    // when it was not seen last
  double seen_at = 0;    // when it was looked for last
  int looks = 0;         // in a row that have seen it
  bool is_told = false;  // by exceeds_first(), since it was not seen last

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
  /// The same, once until it is not seen any more.
  bool exceeds_first(const Limit& limit) {
    if (is_told || !exceeds(limit)) return false;
    return is_told = true;
  }
};

}  // namespace concertina
