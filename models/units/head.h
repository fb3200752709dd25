// What ends a model: some of a norm, a transform (a linear map, an activation, a norm), dropout and
// a linear map to the logits; then the loss. A training forward leaves the gradient of the loss
// where the logits were. Parameters: of the norm, of the transform's map and norm, of the map to
// the logits.
//
// Dimensions: n rows that have a loss: all R, or one per sample.
#pragma once

#include <optional>

#include "models/units/dense.h"
#include "models/units/norm.h"
#include "models/units/one_row.h"

namespace concertina {

struct TransformSpec {
  enum class Activation { gelu_erf, tanh };  // the first with a norm alone
  DenseSpec map;                             // [C,C]
  Activation activation = Activation::tanh;
  std::optional<NormSpec> norm{};
};

struct HeadSpec {
  enum class Loss {
    rows,  // softmax cross-entropy at the field read first: one target for each of the n rows
    spans  // logits [R,2]: of where a span starts and ends among the T rows of a sample, the fields
           // read first and second; the mean of both cross-entropies
  };
  RowsRead rows = RowsRead::all;  // that have a loss; lengths_field() is the field read second
  std::optional<NormSpec> norm{};
  std::optional<TransformSpec> transform{};
  bool drops = false;  // dropout before the map to the logits
  DenseSpec logits;
  Loss loss = Loss::rows;
  std::vector<Field> reads;

  bool one_row() const { return rows != RowsRead::all; }
};

UnitPlan head(const UnitShape& shape, const HeadSpec& spec);

}  // namespace concertina
