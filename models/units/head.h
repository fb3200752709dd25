// The last unit of a model: optionally a norm, a transform (a linear map, an activation, a norm)
// and dropout; then a linear map to the logits, and the loss. A training forward leaves the
// gradient of the loss where the logits were. Parameters: of the norm, of the transform's map and
// norm, of the map to the logits.
//
// Dimensions: n rows that have a loss: all R, or some of each sample.
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
    rows,     // softmax cross-entropy at the field read first: one target for each of the n rows
    squares,  // squared errors at the field read first: scores [n,V]
    binary,   // cross-entropy of each logit by itself at such scores, of 0 to 1
    spans  // logits [R,2]: of where a span starts and ends among the T rows of a sample, the fields
           // read first and second; the mean of both cross-entropies
  };
  RowsRead rows{};  // that have a loss
  std::optional<NormSpec> norm{};
  std::optional<TransformSpec> transform{};
  bool drops = false;  // dropout before the map to the logits
  DenseSpec logits;
  Loss loss = Loss::rows;
  std::vector<Field> reads;  // of the loss; `rows.fields()` that are not among them follow
};

UnitPlan head(const UnitShape& shape, const HeadSpec& spec);

}  // namespace concertina
