// Plans to judge: random ones, and random edits of valid ones.
#pragma once

#include <array>
#include <random>

#include "parallel/plan/schedule.h"

namespace concertina {

/// All work once and each row in an order that makes sense by itself; what ranks expect of each
/// other may be anything. REDUCE may stand inside a row.
Plan random_plan(const Layout& layout, std::mt19937& random);

enum class Edit { swap, drop, duplicate, shift, misplace };
inline constexpr std::array kEdits{Edit::swap, Edit::drop, Edit::duplicate, Edit::shift,
                                   Edit::misplace};

/// One edit at a random place: two actions of a row change places, or one is dropped, repeated,
/// moved within its row, or moved to another rank, stage or microbatch.
Plan edit(Plan plan, Edit edit, std::mt19937& random);

}  // namespace concertina
