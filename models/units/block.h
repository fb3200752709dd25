// Blocks: branches, their norms and the skip around them.
//   a half-block, norm before the branch (GPT-2):  output = x + dropout(branch(norm(x)))
//   a half-block, norm after the skip (BERT):      output = norm(x + dropout(branch(x)))
//   a parallel block, a whole layer:               output = x + dropout(attention(norm(x)) +
//                                                                       mlp(norm'(x)))
// where norm' is a norm of its own (GPT-NeoX, Black et al. 2022) or the same (GPT-J, Wang &
// Komatsuzaki 2021; Phi).
// Parameters: those of the norm, of norm' ("mlp_ln") where there is one, then of each branch.
#pragma once

#include <functional>
#include <memory>

#include "models/units/norm.h"

namespace concertina {

/// Memory of a branch: its share of its block's.
struct BranchMemory {
  void* saved = nullptr;  // F -> I and W
  void* grads = nullptr;  // I -> W
};

/// u[R,C] = branch(h[R,C]), as a block calls it.
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

/// `shared_norm`: both branches read the same rows.
UnitPlan parallel_block(const UnitShape& shape, const NormSpec& norm, bool shared_norm,
                        BranchPlan attention, BranchPlan mlp);

}  // namespace concertina
