#include "models/units/half_block.h"

#include <array>

#include "models/units/dropout.h"
#include "models/units/slots.h"

namespace concertina {
namespace {

/// rows[R,C]: what the norm makes (pre-norm) or what it is of (post-norm).
struct Saved : NormStatistics {
  View rows;
  static auto slots(const UnitShape& s, const NormSpec& norm) {
    return std::array{Slot<Saved>{&Saved::rows, s.elements(1), s.compute},
                      Slot<Saved>{&Saved::mean, norm.means(s.rows()), DType::f32},
                      Slot<Saved>{&Saved::rstd, s.rows(), DType::f32}};
  }
};

/// Gradients [R,C]: of the branch's input, or scratch (post-norm); of the skip's sum (post-norm);
/// see Dropout::elements(); and scratch for a branch that wants more of it than dh has.
struct Grads {
  View dh, dsum, dropped, wide;
  static auto slots(const UnitShape& s, NormPlace place, std::int64_t scratch_columns) {
    const std::int64_t sum = place == NormPlace::after_skip ? s.elements(1) : 0;
    const std::int64_t wide = scratch_columns > s.width ? s.rows() * scratch_columns : 0;
    return std::array{Slot{&Grads::dh, s.elements(1), s.compute},
                      Slot{&Grads::dsum, sum, s.compute},
                      Slot{&Grads::dropped, Dropout::elements(s), s.compute},
                      Slot{&Grads::wide, wide, s.compute}};
  }
  View scratch(std::int64_t elements) const {
    return wide.empty() ? dh.slice(0, static_cast<std::size_t>(elements)) : wide;
  }
};

class HalfBlock final : public PartedUnit {
 public:
  HalfBlock(const UnitShape& shape, NormPlace place, const NormSpec& norm, const BranchPlan& plan,
            Backend& backend)
      : shape_(shape),
        place_(place),
        norm_spec_(norm),
        scratch_columns_(plan.scratch_columns),
        branch_bytes_{.saved_bytes = plan.cost.saved_bytes, .grad_bytes = plan.cost.grad_bytes},
        norm_(norm, backend),
        dropout_(shape, backend),
        branch_(plan.make(backend)) {
    add_parts(std::array<UnitPart*, 1>{&norm_});
    add_parts(branch_->parts());
  }

  UnitMemory memory() const override {
    return {slot_bytes<Saved>(shape_, norm_spec_) + branch_bytes_.saved_bytes,
            slot_bytes<Grads>(shape_, place_, scratch_columns_) + branch_bytes_.grad_bytes,
            packed_bytes()};
  }

  void forward(const UnitIo& io) override {
    const Saved s = slots_in<Saved>(io.saved, shape_, norm_spec_);
    if (place_ == NormPlace::before_branch) {
      norm_.forward(io.input, s, s.rows);
      add_branch(io, s.rows, io.output);
    } else {
      add_branch(io, io.input, s.rows);
      norm_.forward(s.rows, s, io.output);
    }
  }

  void recompute(const UnitIo& io) override {
    const Saved s = slots_in<Saved>(io.saved, shape_, norm_spec_);
    if (place_ == NormPlace::before_branch) {
      norm_.forward(io.input, s, s.rows);
      branch_->forward(io, memory_of(io), s.rows, {}, {});
    } else {
      add_branch(io, io.input, s.rows);
      norm_.forward(s.rows, s, grads(io).dh);
    }
  }

  void backward_input(const UnitIo& io) override {
    const Saved s = slots_in<Saved>(io.saved, shape_, norm_spec_);
    const Grads g = grads(io);
    if (place_ == NormPlace::before_branch) {
      const View du = dropout_.backward(io, io.output_grad, g.dropped);
      branch_->backward_input(io, memory_of(io), du, scratch(g), {}, g.dh);
      if (!io.input_grad.empty())
        norm_.backward_input(g.dh, io.input, s, io.output_grad, io.input_grad);
    } else {
      norm_.backward_input(io.output_grad, s.rows, s, {}, g.dsum);
      const View du = dropout_.backward(io, g.dsum, g.dropped);
      branch_->backward_input(io, memory_of(io), du, scratch(g), {Epilogue::Kind::residual, g.dsum},
                              io.input_grad);
    }
  }

  void backward_weight(const UnitIo& io, std::span<const UnitGradient> gradients) override {
    const Saved s = slots_in<Saved>(io.saved, shape_, norm_spec_);
    const Grads g = grads(io);
    const bool before = place_ == NormPlace::before_branch;
    const View du = Dropout::gradient(before ? io.output_grad : g.dsum, g.dropped);
    branch_->backward_weight(io, memory_of(io), before ? s.rows : io.input, du, gradients);
    if (before)
      norm_.backward_weight(g.dh, io.input, s, gradients);
    else
      norm_.backward_weight(io.output_grad, s.rows, s, gradients);
  }

  UnitResult result(void*) const override { return {}; }

 private:
  Grads grads(const UnitIo& io) const {
    return slots_in<Grads>(io.grads, shape_, place_, scratch_columns_);
  }
  View scratch(const Grads& g) const { return g.scratch(shape_.rows() * scratch_columns_); }

  BranchMemory memory_of(const UnitIo& io) const {
    return {
        static_cast<std::byte*>(io.saved) + slot_bytes<Saved>(shape_, norm_spec_),
        static_cast<std::byte*>(io.grads) + slot_bytes<Grads>(shape_, place_, scratch_columns_)};
  }

  /// y = input + dropout(branch(h)).
  void add_branch(const UnitIo& io, View h, View y) {
    if (dropout_.drops(io)) {
      branch_->forward(io, memory_of(io), h, {}, y);
      dropout_.forward(io, y, io.input, y);
    } else {
      branch_->forward(io, memory_of(io), h, {Epilogue::Kind::residual, io.input}, y);
    }
  }

  UnitShape shape_;
  NormPlace place_;
  NormSpec norm_spec_;
  std::int64_t scratch_columns_;
  UnitMemory branch_bytes_;
  Norm norm_;
  Dropout dropout_;
  std::unique_ptr<Branch> branch_;
};

}  // namespace

UnitPlan half_block(const UnitShape& shape, NormPlace place, const NormSpec& norm,
                    BranchPlan branch) {
  UnitPlan plan;
  plan.spec.parameters = norm.parameters(shape.width);
  plan.spec.parameters.insert(plan.spec.parameters.end(), branch.parameters.begin(),
                              branch.parameters.end());
  plan.spec.reads = branch.reads;
  UnitCost& cost = plan.spec.cost = branch.cost;
  // A group divides the branch; the sum over its devices is u in F and dh in I.
  cost.split = {.flops = 1,
                .saved_bytes = cost.saved_bytes,
                .grad_bytes = cost.grad_bytes,
                .forward_moved = cost.forward_moved,
                .input_moved = cost.input_moved,
                .parts = cost.split.parts};
  cost.forward_sum = cost.input_sum = shape.moved(shape.width);
  // The norm's x and y; u, the skip and their sum.
  cost.forward_moved += shape.moved(5 * shape.width);
  cost.input_moved += shape.moved(10 * shape.width);
  if (shape.dropout > 0) cost.dropped = static_cast<double>(shape.elements(1));
  // Post-norm keeps the sum of the skip, and so needs all of the branch again.
  if (place == NormPlace::after_skip) cost.again_flops = branch.cost.forward_flops;
  cost.saved_bytes += slot_bytes<Saved>(shape, norm);
  cost.grad_bytes += slot_bytes<Grads>(shape, place, branch.scratch_columns);
  if (branch.describe)
    plan.describe = [place, norm, inner = branch.describe](GraphBuilder& graph,
                                                           const std::string& x) {
      if (place == NormPlace::before_branch)
        return graph.add("Add", {x, inner(graph, norm.describe(graph, x))});
      return norm.describe(graph, graph.add("Add", {x, inner(graph, x)}));
    };
  plan.make = [shape, place, norm, branch = std::move(branch)](Backend& backend) {
    return std::make_unique<HalfBlock>(shape, place, norm, branch, backend);
  };
  return plan;
}

}  // namespace concertina
