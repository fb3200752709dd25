// A low-rank adapter of a linear map (LoRA, Hu et al. 2022): y = x (W + s A B) + b, where A[I,r]
// and B[r,O] train and W does not. Parameters: <name>.lora_a and <name>.lora_b. Invariant: the sum
// W + s A B is computed once per step, in fp32, and packed in place of W. So F and I are those of a
// map without an adapter, and W needs only products with r columns.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/units/unit.h"

namespace concertina {

std::vector<ParameterSpec> adapter_parameters(const AdapterSpec& spec, const std::string& name,
                                              std::int64_t in, std::int64_t out);

class Adapter {
 public:
  /// `map` is the shape of the adapted map, which is not transposed.
  Adapter(const AdapterSpec& spec, const LinearShape& map, Backend& backend);

  /// Memory for the packed s A and s B, and scratch for merge().
  std::size_t packed_bytes() const;
  std::size_t scratch_bytes() const;

  void attach(View a, View b, void* packed);
  /// Returns W + s A B, in `scratch`, and packs s A and s B.
  View merge(View weight, void* scratch);
  /// `scratch` has LoraSpec::scratch() elements.
  void backward_weight(View x, View dy, View scratch, const UnitGradient& da,
                       const UnitGradient& db) const;

 private:
  View scaled(View x, View out) const;

  AdapterSpec spec_;
  Backend& backend_;
  std::shared_ptr<Linear> a_, b_;    // of the R rows of x
  std::shared_ptr<Linear> product_;  // A B, of the I rows of A, in fp32
  View a_view_, b_view_;
  std::byte *packed_a_ = nullptr, *packed_b_ = nullptr;
};

}  // namespace concertina
