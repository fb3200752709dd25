// A norm over rows, y = norm(x), with gradients. Parameters: "ln.weight" [C] and, for a layer norm,
// "ln.bias" [C].
#pragma once

#include <string>

#include "models/units/part.h"

namespace concertina {

/// A norm without a backend.
struct NormSpec {
  enum class Kind {
    layer,  // Ba et al. 2016
    rms     // no mean and no bias (Zhang & Sennrich 2019)
  };
  Kind kind = Kind::layer;
  float eps = 1e-5F;
  std::string name = "ln";

  std::vector<ParameterSpec> parameters(std::int64_t width) const;
  /// Returns the name of y for x, both [...,C].
  std::string describe(GraphBuilder& graph, const std::string& x) const;
  /// Returns the number of means to keep for `rows` rows.
  std::int64_t means(std::int64_t rows) const { return kind == Kind::layer ? rows : 0; }
};

/// Statistics that F keeps for the gradients, [n] each; an RMS norm has no mean.
struct NormStatistics {
  View mean, rstd;
};

class Norm final : public UnitPart {
 public:
  Norm(NormSpec spec, Backend& backend) : spec_(std::move(spec)), backend_(backend) {}

  std::size_t parameters() const override { return spec_.kind == NormSpec::Kind::layer ? 2 : 1; }
  void attach(std::span<const View> weights, void* packed) override;

  void forward(View x, const NormStatistics& kept, View y) const;
  /// dx = residual_grad (may be empty) + the gradient through the norm; dx may alias either input.
  void backward_input(View dy, View x, const NormStatistics& kept, View residual_grad,
                      View dx) const;
  /// `gradients` cover the whole unit.
  void backward_weight(View dy, View x, const NormStatistics& kept,
                       std::span<const UnitGradient> gradients) const;

 private:
  enum Parameter { kWeight, kBias };
  bool centers() const { return spec_.kind == NormSpec::Kind::layer; }
  /// Calls run.template operator()<centers()>().
  template <class Run>
  void by_kind(const Run& run) const {
    centers() ? run.template operator()<true>() : run.template operator()<false>();
  }

  NormSpec spec_;
  Backend& backend_;
  View gamma_, beta_;
};

}  // namespace concertina
