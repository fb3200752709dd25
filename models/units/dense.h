// A linear map with its weight and bias: y[n,O] = x[n,I] W + b, its gradients and its parameters.
// Parameters: <name>.weight, stored [I,O], and with a bias <name>.bias [O]; or a table [O,I] that
// other units share, under its own name, and logits.bias [O].
#pragma once

#include <memory>
#include <string>

#include "models/units/part.h"

namespace concertina {

/// A linear map without a backend.
struct DenseSpec {
  std::string name;
  std::int64_t in = 0, out = 0;
  float std = 0;  // of the weight's init
  bool bias = true;
  bool shared_table = false;  // the weight is the tensor `name` [out,in] of the whole model
  std::vector<std::int64_t> matrices{};  // of the weight, as in ParameterSpec
  /// The dimension that a tensor-parallel group divides: the columns of W and b, or the rows of W,
  /// whose products the group's devices then sum.
  enum class Split { none, columns, rows } split = Split::none;
  /// Its operations per row, times the rows: F, I and W each do as many.
  double flops(std::int64_t rows) const {
    return 2 * static_cast<double>(rows) * static_cast<double>(in) * static_cast<double>(out);
  }
  std::vector<ParameterSpec> parameters() const;
  /// y[...,O] of x[...,I].
  std::string describe(GraphBuilder& graph, const std::string& x) const;
};

class Dense final : public UnitPart {
 public:
  /// `rows`: of every x. Precision is that of `shape`, but for its products where these are given.
  Dense(const DenseSpec& spec, std::int64_t rows, const UnitShape& shape, Backend& backend);

  std::size_t parameters() const override { return biased_ ? 2 : 1; }
  std::size_t packed_bytes() const override { return linear_->packed_bytes(); }
  void attach(std::span<const View> weights, void* packed) override;
  void pack() override;
  bool packs(std::size_t index) const override { return index == kWeight; }

  /// See Epilogue (core/operators.h).
  void forward(View x, Epilogue epilogue, View y) const;
  void backward_input(View dy, Epilogue epilogue, View dx) const;
  /// `gradients`: of the unit.
  void backward_weight(View x, View dy, std::span<const UnitGradient> gradients) const;

 private:
  enum Parameter { kWeight, kBias };

  Backend& backend_;
  bool biased_;
  std::shared_ptr<Linear> linear_;
  View weight_, bias_;
  void* packed_ = nullptr;
};

}  // namespace concertina
