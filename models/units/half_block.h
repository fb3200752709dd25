// A half-block: a branch, a norm and the skip around them.
//   before the branch (pre-norm, GPT-2):  output = x + dropout(branch(norm(x)))
//   after the skip (post-norm, BERT):     output = norm(x + dropout(branch(x)))
// Parameters: those of the norm, then those of the branch.
#pragma once

#include <functional>
#include <memory>

#include "models/units/norm.h"

namespace concertina {

/// Memory of a branch: its share of its half-block's.
struct BranchMemory {
  void* saved = nullptr;  // F -> I and W
  void* grads = nullptr;  // I -> W
};

/// u[R,C] = branch(h[R,C]), as a half-block calls it.
class Branch {
 public:
  virtual ~Branch() = default;
  /// Its parts in the order of BranchPlan::parameters.
  virtual std::vector<UnitPart*> parts() = 0;

  /// `last`: the epilogue of its last product, which writes y. An empty y is not wanted.
  virtual void forward(const UnitIo& io, const BranchMemory& memory, View h, Epilogue last,
                       View y) = 0;
  /// dh from du; `last`: of its last product, which writes dh. An empty dh is not wanted. `scratch`
  /// [R,BranchPlan::scratch_columns] may be dh.
  virtual void backward_input(const UnitIo& io, const BranchMemory& memory, View du, View scratch,
                              Epilogue last, View dh) = 0;
  /// `gradients`: of the unit.
  virtual void backward_weight(const UnitIo& io, const BranchMemory& memory, View h, View du,
                               std::span<const UnitGradient> gradients) = 0;
};

/// A branch without a backend, and how to make it on one.
struct BranchPlan {
  std::vector<ParameterSpec> parameters;
  std::vector<Field> reads{};
  UnitCost cost;  // of the branch alone; its bytes are what BranchMemory is to have, again_flops
                  // those of forward() without y, and of `split` it has the number of parts alone
  std::int64_t scratch_columns = 0;  // that backward_input() wants
  std::function<std::unique_ptr<Branch>(Backend&)> make;
  UnitGraph describe{};  // of the branch alone
};

enum class NormPlace { before_branch, after_skip };

UnitPlan half_block(const UnitShape& shape, NormPlace place, const NormSpec& norm,
                    BranchPlan branch);

}  // namespace concertina
