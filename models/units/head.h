// The last unit of a model: optionally a norm, a transform (a linear map, an activation, a norm)
// and dropout; then a linear map to the logits, and the loss. In training, forward overwrites the
// logits with the gradient of the loss. Parameters: those of the norm, of the transform's map and
// norm, and of the map to the logits.
//
// Dimensions: n rows that have a loss, either all R or some of each sample.
#pragma once

#include <optional>

#include "models/units/dense.h"
#include "models/units/norm.h"
#include "models/units/rows_read.h"

namespace concertina {

struct TransformSpec {
  DenseSpec map;                               // [C,C]
  std::optional<Epilogue::Kind> activation{};  // none: tanh
  std::optional<NormSpec> norm{};
};

struct HeadSpec {
  enum class Loss {
    rows,     // softmax cross-entropy with the first field: one target for each of the n rows
    squares,  // squared error with the first field: scores [n,V]
    binary,   // binary cross-entropy per logit, with the same scores but in [0, 1]
    spans     // logits [R,2] of the start and the end of a span among the T rows of a sample, which
              // are the first and second fields; the mean of both cross-entropies
  };
  RowsRead rows{};  // rows that have a loss
  std::optional<NormSpec> norm{};
  std::optional<TransformSpec> transform{};
  bool drops = false;  // dropout before the map to the logits
  DenseSpec logits;
  Loss loss = Loss::rows;
  std::vector<Field> reads;  // fields of the loss, without rows.fields()
};

UnitPlan head(const UnitShape& shape, const HeadSpec& spec);

}  // namespace concertina
