// Plans to check: random ones, and random edits of valid ones.
#pragma once

#include <array>
#include <random>

#include "parallel/plan/schedule.h"

namespace concertina {

/// Returns a plan with all work once and each row in a valid order by itself; what ranks expect of
/// each other is random. REDUCE may be inside a row.
Plan random_plan(const Layout& layout, std::mt19937& random);

enum class Edit { swap, drop, duplicate, shift, misplace };
inline constexpr std::array kEdits{Edit::swap, Edit::drop, Edit::duplicate, Edit::shift,
                                   Edit::misplace};

/// Makes one edit at a random place: swaps two actions of a row, or drops one, repeats it, or moves
/// it within its row or to another rank, stage or microbatch.
Plan edit(Plan plan, Edit edit, std::mt19937& random);

}  // namespace concertina
