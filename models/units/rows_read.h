// A unit on some rows of each sample: where what follows reads no others, as a head that tells a
// class or the masked tokens does, the rest would be computed for nothing. Its output is 0 in the
// rows that nobody reads, and so is the gradient of its input.
#pragma once

#include <functional>

#include "models/units/unit.h"

namespace concertina {

/// Which rows of a sample are read.
struct RowsRead {
  enum class Which {
    all,
    first,
    last,    // of its lengths_field()
    targets  // those that have one in its targets_field()
  };
  Which which = Which::all;
  std::int64_t targets = 0;  // of a sample, at most

  bool some() const { return which != Which::all; }
  bool by_target() const { return which == Which::targets; }
  /// Whether samples differ in which rows are read.
  bool vary() const { return which == Which::last || which == Which::targets; }
  /// The number of rows that are read of a sample of `tokens`.
  std::int64_t count(std::int64_t tokens) const;
  /// The fields that say which rows they are, for samples of `tokens`; none unless they vary().
  std::vector<Field> fields(std::int64_t tokens) const;
};

/// The shape of the rows that are read.
UnitShape shape_of(const RowsRead& rows, UnitShape shape);

/// Places [samples,n] of the rows that are read, where they vary(), and where they are those with
/// targets also these targets; else empty.
struct RowPlaces {
  View places, targets;
};
/// Finds them from `field`, the first of rows.fields().
void find_rows(Backend& backend, const RowsRead& rows, const UnitShape& shape, View field,
               const RowPlaces& to);

/// Restricts the unit that `plan` makes to `rows`; with all rows the unit is unchanged, else it
/// must read no field. Its parameters stay.
UnitPlan on_rows(const RowsRead& rows, const UnitShape& shape,
                 const std::function<UnitPlan(const UnitShape& shape)>& plan);

}  // namespace concertina
