// A linear map with optional bias: y[n,O] = x[n,I] W + b, with gradients.
// Parameters: <name>.weight, stored [I,O], and <name>.bias [O]; or a shared table [O,I], under its
// own name, and logits.bias [O].
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "models/units/adapter.h"
#include "models/units/part.h"

namespace concertina {

/// A linear map without a backend.
struct DenseSpec {
  std::string name;
  std::int64_t in = 0, out = 0;
  float std = 0;  // standard deviation of the initial weight
  bool bias = true;
  bool shared_table = false;             // the weight is the model-wide tensor `name` [out,in]
  std::vector<std::int64_t> matrices{};  // see ParameterSpec
  /// The dimension that a tensor-parallel group divides: the columns of W and b, or the rows of W,
  /// in which case the group sums the products.
  enum class Split { none, columns, rows } split = Split::none;
  AdapterSpec adapter{};
  bool tuned = false;  // whether it trains even if the model has adapters (the logits of classes)
  /// Returns the number of operations for `rows` rows, which is the same for F, I and W.
  double flops(std::int64_t rows) const {
    return 2 * static_cast<double>(rows) * static_cast<double>(in) * static_cast<double>(out);
  }
  /// Returns the number of operations in W for the adapter: four products.
  double adapter_flops(std::int64_t rows) const {
    return 4 * static_cast<double>(rows * adapter.rank) * static_cast<double>(in + out);
  }
  std::vector<ParameterSpec> parameters() const;
  /// Returns the name of y[...,O] for x[...,I].
  std::string describe(GraphBuilder& graph, const std::string& x) const;
};

class Dense final : public UnitPart {
 public:
  /// `rows` is the row count of x. `shape` determines the precision of the products.
  Dense(const DenseSpec& spec, std::int64_t rows, const UnitShape& shape, Backend& backend);

  std::size_t parameters() const override { return first_adapted() + (adapter_ ? 2 : 0); }
  std::size_t packed_bytes() const override;
  std::size_t pack_scratch() const override { return adapter_ ? adapter_->scratch_bytes() : 0; }
  void attach(std::span<const View> weights, void* packed) override;
  void pack(void* scratch) override;
  bool packs(std::size_t index) const override {
    return index == kWeight || index >= first_adapted();
  }

  /// For the epilogue, see core/operators.h.
  void forward(View x, Epilogue epilogue, View y) const;
  void backward_input(View dy, Epilogue epilogue, View dx) const;
  /// `gradients` cover the whole unit. `scratch` is needed by an adapter.
  void backward_weight(View x, View dy, std::span<const UnitGradient> gradients,
                       View scratch = {}) const;

 private:
  enum Parameter { kWeight, kBias };
  std::size_t first_adapted() const { return biased_ ? 2 : 1; }

  Backend& backend_;
  bool biased_;
  std::shared_ptr<Linear> linear_;
  std::optional<Adapter> adapter_;
  View weight_, bias_;
  void* packed_ = nullptr;
};

}  // namespace concertina
