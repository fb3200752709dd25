#include "models/units/block.h"

#include <algorithm>
#include <array>

#include "models/units/dropout.h"
#include "models/units/slots.h"

namespace concertina {
namespace {

constexpr std::size_t kMostBranches = 2;

/// A block without a backend. The norms belong to the branches, in order. If there is only one
/// norm, the second branch shares it with the first.
struct BlockSpec {
  NormPlace place = NormPlace::before_branch;
  std::vector<NormSpec> norms;
  std::vector<BranchPlan> branches;

  bool before() const { return place == NormPlace::before_branch; }
  /// Returns the number of scratch columns that the first branch needs besides its input gradient.
  std::int64_t wide(const UnitShape& s) const {
    const std::int64_t columns = branches[0].scratch_columns;
    return branches.size() > 1 || columns > s.width ? columns : 0;
  }
};

/// The inputs [R,C] of the branches, or of the norm if it follows the skip; the sum [R,C] of the
/// first branch and the skip; the statistics of the norms.
struct Saved {
  View rows, rows2, sum, mean, rstd, mean2, rstd2;
  static auto slots(const UnitShape& s, const BlockSpec& spec) {
    const std::int64_t n = s.rows(), means = spec.norms[0].means(n);
    const std::int64_t own = spec.norms.size() > 1 ? 1 : 0, two = spec.branches.size() > 1 ? 1 : 0;
    return std::array{Slot{&Saved::rows, s.elements(1), s.compute},
                      Slot{&Saved::rows2, own * s.elements(1), s.compute},
                      Slot{&Saved::sum, two * s.elements(1), s.compute},
                      Slot{&Saved::mean, means, DType::f32},
                      Slot{&Saved::rstd, n, DType::f32},
                      Slot{&Saved::mean2, own * means, DType::f32},
                      Slot{&Saved::rstd2, own * n, DType::f32}};
  }
  NormStatistics statistics(std::size_t norm) const {
    return norm == 0 ? NormStatistics{mean, rstd} : NormStatistics{mean2, rstd2};
  }
  View rows_of(std::size_t norm) const { return norm == 0 ? rows : rows2; }
};

/// Gradients [R,C] of the branches' inputs (summed for a shared input); with the norm after the
/// skip, `dh` is scratch and `dsum` is the gradient of the sum. For `dropped`, see
/// Dropout::elements(); `wide` is scratch for the first branch.
struct Grads {
  View dh, dh2, dsum, dropped, wide;
  static auto slots(const UnitShape& s, const BlockSpec& spec) {
    const std::int64_t two = spec.branches.size() > 1 ? 1 : 0, sum = spec.before() ? 0 : 1;
    return std::array{Slot{&Grads::dh, s.elements(1), s.compute},
                      Slot{&Grads::dh2, two * s.elements(1), s.compute},
                      Slot{&Grads::dsum, sum * s.elements(1), s.compute},
                      Slot{&Grads::dropped, Dropout::elements(s), s.compute},
                      Slot{&Grads::wide, s.rows() * spec.wide(s), s.compute}};
  }
  View of_branch(std::size_t branch) const { return branch == 0 ? dh : dh2; }
};

class Block final : public PartedUnit {
 public:
  Block(const UnitShape& shape, const BlockSpec& spec, Backend& backend)
      : shape_(shape), spec_(spec), dropout_(shape, backend) {
    norms_.reserve(kMostBranches);  // parts must not move
    for (const NormSpec& norm : spec.norms)
      add_parts(std::array<UnitPart*, 1>{&norms_.emplace_back(norm, backend)});
    for (const BranchPlan& branch : spec.branches)
      add_parts(branches_.emplace_back(branch.make(backend))->parts());
  }

  UnitMemory memory() const override {
    UnitMemory all = with_parts(slot_bytes<Saved>(shape_, spec_), slot_bytes<Grads>(shape_, spec_));
    for (const BranchPlan& branch : spec_.branches) {
      all.saved_bytes += branch.cost.saved_bytes;
      all.grad_bytes += branch.cost.grad_bytes;
      all.cache_bytes += branch.cache_bytes;
    }
    return all;
  }

  void forward(const UnitIo& io) override {
    const Saved s = saved(io);
    if (spec_.before()) {
      run_norms(io, s);
      add_branches(io, s, io.output);
    } else {
      add_branches(io, s, s.rows);
      norms_[0].forward(s.rows, s.statistics(0), io.output);
    }
  }

  void recompute(const UnitIo& io) override {
    const Saved s = saved(io);
    if (spec_.before()) {
      run_norms(io, s);
      for (std::size_t b = 0; b < branches_.size(); ++b)
        branches_[b]->forward(io, memory_of(io, b), read_by(b, io, s), {}, {});
    } else {
      add_branches(io, s, s.rows);
      norms_[0].forward(s.rows, s.statistics(0), grads(io).dh);
    }
  }

  void backward_input(const UnitIo& io) override {
    const Saved s = saved(io);
    const Grads g = grads(io);
    if (!spec_.before()) {
      norms_[0].backward_input(io.output_grad, s.rows, s.statistics(0), {}, g.dsum);
      const View du = dropout_.backward(io, g.dsum, g.dropped);
      branches_[0]->backward_input(io, memory_of(io, 0), du, scratch(g),
                                   {Epilogue::Kind::residual, g.dsum}, io.input_grad);
      return;
    }
    const View du = dropout_.backward(io, io.output_grad, g.dropped);
    for (std::size_t b = 0; b < branches_.size(); ++b)
      branches_[b]->backward_input(
          io, memory_of(io, b), du, scratch(g),
          b < norms_.size() ? Epilogue{} : Epilogue{Epilogue::Kind::residual, g.dh},
          g.of_branch(b));
    if (io.input_grad.empty()) return;
    for (std::size_t n = 0; n < norms_.size(); ++n)
      norms_[n].backward_input(of_rows(n, g), io.input, s.statistics(n),
                               n == 0 ? io.output_grad : io.input_grad, io.input_grad);
  }

  void backward_weight(const UnitIo& io, std::span<const UnitGradient> gradients) override {
    const Saved s = saved(io);
    const Grads g = grads(io);
    const bool before = spec_.before();
    const View du = Dropout::gradient(before ? io.output_grad : g.dsum, g.dropped);
    for (std::size_t b = 0; b < branches_.size(); ++b)
      branches_[b]->backward_weight(io, memory_of(io, b), read_by(b, io, s), du, gradients);
    for (std::size_t n = 0; n < norms_.size(); ++n)
      norms_[n].backward_weight(before ? of_rows(n, g) : io.output_grad, before ? io.input : s.rows,
                                s.statistics(n), gradients);
  }

 private:
  Saved saved(const UnitIo& io) const { return slots_in<Saved>(io.saved, shape_, spec_); }
  Grads grads(const UnitIo& io) const { return slots_in<Grads>(io.grads, shape_, spec_); }
  View scratch(const Grads& g) const {
    const auto count = static_cast<std::size_t>(shape_.rows() * spec_.branches[0].scratch_columns);
    return g.wide.empty() ? g.dh.slice(0, count) : g.wide;
  }
  /// Returns the gradient of norm `n`'s output, from the last branch that reads it.
  View of_rows(std::size_t n, const Grads& g) const {
    return g.of_branch(n + 1 == norms_.size() ? branches_.size() - 1 : n);
  }
  View read_by(std::size_t branch, const UnitIo& io, const Saved& s) const {
    return spec_.before() ? s.rows_of(std::min(branch, norms_.size() - 1)) : io.input;
  }

  /// The branches' memory follows the block's own.
  BranchMemory memory_of(const UnitIo& io, std::size_t branch) const {
    auto* saved = static_cast<std::byte*>(io.saved) + slot_bytes<Saved>(shape_, spec_);
    auto* grads = static_cast<std::byte*>(io.grads) + slot_bytes<Grads>(shape_, spec_);
    for (std::size_t b = 0; b < branch; ++b) {
      saved += spec_.branches[b].cost.saved_bytes;
      grads += spec_.branches[b].cost.grad_bytes;
    }
    return {saved, grads};
  }

  void run_norms(const UnitIo& io, const Saved& s) const {
    for (std::size_t n = 0; n < norms_.size(); ++n)
      norms_[n].forward(io.input, s.statistics(n), s.rows_of(n));
  }

  /// Computes y = input + dropout(sum of the branches).
  void add_branches(const UnitIo& io, const Saved& s, View y) {
    const bool drops = dropout_.drops(io);
    Epilogue last = drops ? Epilogue{} : Epilogue{Epilogue::Kind::residual, io.input};
    for (std::size_t b = 0; b < branches_.size(); ++b) {
      branches_[b]->forward(io, memory_of(io, b), read_by(b, io, s), last,
                            b + 1 < branches_.size() ? s.sum : y);
      last = {Epilogue::Kind::residual, s.sum};
    }
    if (drops) dropout_.forward(io, y, io.input, y);
  }

  UnitShape shape_;
  BlockSpec spec_;
  std::vector<Norm> norms_;
  Dropout dropout_;
  std::vector<std::unique_ptr<Branch>> branches_;
};

/// The branches, the norms and the skip. A tensor-parallel group divides the branches, and sums u
/// in F and dh in I over its devices.
UnitCost cost_of(const UnitShape& shape, const BlockSpec& spec) {
  UnitCost cost = spec.branches[0].cost;
  for (std::size_t b = 1; b < spec.branches.size(); ++b) {
    const UnitCost& more = spec.branches[b].cost;
    cost.forward_flops += more.forward_flops;
    cost.input_flops += more.input_flops;
    cost.weight_flops += more.weight_flops;
    cost.saved_bytes += more.saved_bytes;
    cost.grad_bytes += more.grad_bytes;
    cost.recompute_flops += more.recompute_flops;
    cost.model_flops += more.model_flops;
    cost.adapter_flops += more.adapter_flops;
    cost.forward_moved += more.forward_moved;
    cost.input_moved += more.input_moved;
    cost.split.parts = std::min(cost.split.parts, more.split.parts);
  }
  cost.split = {.flops = 1,
                .saved_bytes = cost.saved_bytes,
                .grad_bytes = cost.grad_bytes,
                .forward_moved = cost.forward_moved,
                .input_moved = cost.input_moved,
                .parts = cost.split.parts};
  cost.forward_sum = cost.input_sum = shape.moved(shape.width);
  // Traffic: x and y of each norm; u of each branch; the skip and the sums.
  const std::int64_t norms = std::ssize(spec.norms), branches = std::ssize(spec.branches);
  cost.forward_moved += shape.moved((2 * norms + 2 * branches + 1) * shape.width);
  cost.input_moved += shape.moved((4 * norms + 2 * branches + 4) * shape.width);
  if (shape.dropout > 0) cost.dropped = static_cast<double>(shape.elements(1));
  // If the norm follows the skip, the sum is saved, and recomputing it requires the whole branch.
  if (!spec.before()) cost.recompute_flops = cost.forward_flops;
  cost.saved_bytes += slot_bytes<Saved>(shape, spec);
  cost.grad_bytes += slot_bytes<Grads>(shape, spec);
  return cost;
}

std::string describe(GraphBuilder& graph, const BlockSpec& spec, const std::string& x) {
  std::string y = x, rows = x;
  for (std::size_t b = 0; b < spec.branches.size(); ++b) {
    if (spec.before() && b < spec.norms.size()) rows = spec.norms[b].describe(graph, x);
    y = graph.add("Add", {y, spec.branches[b].describe(graph, rows)});
  }
  return spec.before() ? y : spec.norms[0].describe(graph, y);
}

UnitPlan block(const UnitShape& shape, BlockSpec spec) {
  UnitPlan plan;
  for (const NormSpec& norm : spec.norms)
    append(plan.spec.parameters, norm.parameters(shape.width));
  for (const BranchPlan& branch : spec.branches) append(plan.spec.parameters, branch.parameters);
  plan.spec.reads = spec.branches[0].reads;
  plan.spec.cost = cost_of(shape, spec);
  if (std::ranges::all_of(spec.branches,
                          [](const BranchPlan& branch) { return branch.describe != nullptr; }))
    plan.describe = [spec](GraphBuilder& graph, const std::string& x) {
      return describe(graph, spec, x);
    };
  plan.make = [shape, spec = std::move(spec)](Backend& backend) {
    return std::make_unique<Block>(shape, spec, backend);
  };
  return plan;
}

}  // namespace

UnitPlan half_block(const UnitShape& shape, NormPlace place, const NormSpec& norm,
                    BranchPlan branch) {
  return block(shape, {place, {norm}, {std::move(branch)}});
}

UnitPlan parallel_block(const UnitShape& shape, const NormSpec& norm, bool shared_norm,
                        BranchPlan attention, BranchPlan mlp) {
  BlockSpec spec{.norms = {norm}, .branches = {std::move(attention), std::move(mlp)}};
  if (!shared_norm) spec.norms.emplace_back(norm).name = "mlp_ln";
  return block(shape, std::move(spec));
}

}  // namespace concertina
