// Restricts a unit to some rows of each sample, if later units read only those, as the head of a
// classification or masked-token task does. In the other rows, the output and the input gradient
// are 0.
#pragma once

#include <functional>

#include "models/units/unit.h"

namespace concertina {

/// Which rows of a sample are read.
struct RowsRead {
  enum class Which {
    all,
    first,
    last,    // the last row according to lengths_field()
    targets  // the rows with a target in targets_field()
  };
  Which which = Which::all;
  std::int64_t targets = 0;  // maximum per sample

  bool some() const { return which != Which::all; }
  bool by_target() const { return which == Which::targets; }
  /// Whether the rows differ between samples.
  bool vary() const { return which == Which::last || which == Which::targets; }
  /// Returns the number of rows read per sample of `tokens` tokens.
  std::int64_t count(std::int64_t tokens) const;
  /// Returns the fields that determine the rows, for samples of `tokens`; empty unless they vary().
  std::vector<Field> fields(std::int64_t tokens) const;
};

/// Returns the shape of the rows read.
UnitShape shape_of(const RowsRead& rows, UnitShape shape);

/// Positions [samples,n] of the rows read if they vary(), and their targets if the rows are chosen
/// by target; otherwise empty.
struct RowPlaces {
  View places, targets;
};
/// Finds the positions and targets in `field`, the first of rows.fields().
void find_rows(Backend& backend, const RowsRead& rows, const UnitShape& shape, View field,
               const RowPlaces& to);

/// Restricts the unit that `plan` makes to `rows`. Unless `rows` selects all rows, the unit must
/// not read fields. Its parameters do not change.
UnitPlan on_rows(const RowsRead& rows, const UnitShape& shape,
                 const std::function<UnitPlan(const UnitShape& shape)>& plan);

}  // namespace concertina
