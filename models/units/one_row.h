// A unit on one row of each sample: where what follows reads no other row, as a head that tells a
// class does, the rest would be computed for nothing. Its output is 0 in the rows that nobody
// reads, and so is the gradient of its input.
#pragma once

#include <functional>

#include "models/unit.h"

namespace concertina {

/// Which rows of a sample are read: all, its first, or the last of its lengths (lengths_field()).
enum class RowsRead { all, first, last };

/// The shape of the rows that are read: one token a sample, or all.
UnitShape shape_of(RowsRead rows, UnitShape shape);

/// The unit that `plan` makes of a shape, on the rows that are read of `shape`; of all rows it is
/// that unit itself, else it must read no field. Parameters: that unit's.
UnitPlan on_rows(RowsRead rows, const UnitShape& shape,
                 const std::function<UnitPlan(const UnitShape& shape)>& plan);

}  // namespace concertina
