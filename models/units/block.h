// Blocks: branches with their norms and skip connection.
//   half-block, norm before the branch (GPT-2):  output = x + dropout(branch(norm(x)))
//   half-block, norm after the skip (BERT):      output = norm(x + dropout(branch(x)))
//   parallel block, a whole layer:               output = x + dropout(attention(norm(x)) +
//                                                                      mlp(norm'(x)))
// where norm' is a separate norm (GPT-NeoX, Black et al. 2022) or the same one (GPT-J, Wang &
// Komatsuzaki 2021; Phi).
// Parameters, in order: those of the norm, norm' ("mlp_ln") if it is separate, and each branch.
#pragma once

#include <functional>
#include <memory>

#include "models/units/norm.h"

namespace concertina {

/// The memory of a branch, which is part of its block's memory.
struct BranchMemory {
  void* saved = nullptr;  // F -> I and W
  void* grads = nullptr;  // I -> W
};

/// Computes u[R,C] = branch(h[R,C]) for a block.
class Branch {
 public:
  virtual ~Branch() = default;
  /// Returns the parts in the order of BranchPlan::parameters.
  virtual std::vector<UnitPart*> parts() = 0;

  /// `last` is the epilogue of the last product, which writes y. An empty y is not computed.
  virtual void forward(const UnitIo& io, const BranchMemory& memory, View h, Epilogue last,
                       View y) = 0;
  /// Computes dh from du. `last` is the epilogue of the last product, which writes dh. An empty dh
  /// is not computed. `scratch` [R,BranchPlan::scratch_columns] may alias dh.
  virtual void backward_input(const UnitIo& io, const BranchMemory& memory, View du, View scratch,
                              Epilogue last, View dh) = 0;
  /// `gradients` cover the whole unit.
  virtual void backward_weight(const UnitIo& io, const BranchMemory& memory, View h, View du,
                               std::span<const UnitGradient> gradients) = 0;
};

/// A branch without a backend, and the function that makes it on one.
struct BranchPlan {
  std::vector<ParameterSpec> parameters;
  std::vector<Field> reads{};
  /// Cost of the branch alone. Its bytes are the size of BranchMemory, its recompute_flops are
  /// those of forward() without y, and of `split` only `parts` is set.
  UnitCost cost;
  std::int64_t scratch_columns = 0;  // used by backward_input()
  std::size_t cache_bytes = 0;       // see UnitMemory; of at most one branch of a block
  std::function<std::unique_ptr<Branch>(Backend&)> make;
  UnitGraph describe{};  // describes the branch alone
};

enum class NormPlace { before_branch, after_skip };

UnitPlan half_block(const UnitShape& shape, NormPlace place, const NormSpec& norm,
                    BranchPlan branch);

/// If `shared_norm`, both branches read the same rows.
UnitPlan parallel_block(const UnitShape& shape, const NormSpec& norm, bool shared_norm,
                        BranchPlan attention, BranchPlan mlp);

}  // namespace concertina
