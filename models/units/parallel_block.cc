#include "models/units/parallel_block.h"

#include <algorithm>
#include <array>
#include <optional>

#include "models/units/dropout.h"
#include "models/units/slots.h"

namespace concertina {
namespace {

NormSpec mlp_norm(const ParallelBlockSpec& spec) {
  NormSpec norm = spec.norm;
  norm.name = "mlp_ln";
  return norm;
}

/// [R,C]: what attention and the MLP read, and the sum before the MLP's branch; statistics of the
/// norms.
struct Saved {
  View rows, mlp_rows, sum, mean, rstd, mlp_mean, mlp_rstd;
  static auto slots(const UnitShape& s, const ParallelBlockSpec& spec) {
    const std::int64_t n = s.rows(), own = spec.shared_norm ? 0 : 1;
    const std::int64_t means = spec.norm.means(n);
    return std::array{Slot{&Saved::rows, s.elements(1), s.compute},
                      Slot{&Saved::mlp_rows, own * s.elements(1), s.compute},
                      Slot{&Saved::sum, s.elements(1), s.compute},
                      Slot{&Saved::mean, means, DType::f32},
                      Slot{&Saved::rstd, n, DType::f32},
                      Slot{&Saved::mlp_mean, own * means, DType::f32},
                      Slot{&Saved::mlp_rstd, own * n, DType::f32}};
  }
  NormStatistics statistics() const { return {mean, rstd}; }
  NormStatistics mlp_statistics() const { return {mlp_mean, mlp_rstd}; }
  View read_by_mlp() const { return mlp_rows.empty() ? rows : mlp_rows; }
};

/// Gradients [R,C] of what attention and the MLP read; with a shared norm, the second is of both.
/// See Dropout::elements(); and attention's scratch.
struct Grads {
  View dh, dmlp, dropped, wide;
  static auto slots(const UnitShape& s, std::int64_t scratch_columns) {
    return std::array{Slot{&Grads::dh, s.elements(1), s.compute},
                      Slot{&Grads::dmlp, s.elements(1), s.compute},
                      Slot{&Grads::dropped, Dropout::elements(s), s.compute},
                      Slot{&Grads::wide, s.rows() * scratch_columns, s.compute}};
  }
};

class ParallelBlock final : public PartedUnit {
 public:
  ParallelBlock(const UnitShape& shape, const ParallelBlockSpec& spec, const BranchPlan& attention,
                const BranchPlan& mlp, Backend& backend)
      : shape_(shape),
        spec_(spec),
        scratch_columns_(attention.scratch_columns),
        attention_bytes_{attention.cost.saved_bytes, attention.cost.grad_bytes},
        mlp_bytes_{mlp.cost.saved_bytes, mlp.cost.grad_bytes},
        norm_(spec.norm, backend),
        dropout_(shape, backend),
        attention_(attention.make(backend)),
        mlp_(mlp.make(backend)) {
    add_parts(std::array<UnitPart*, 1>{&norm_});
    if (!spec.shared_norm)
      add_parts(std::array<UnitPart*, 1>{&mlp_norm_.emplace(mlp_norm(spec), backend)});
    add_parts(attention_->parts());
    add_parts(mlp_->parts());
  }

  UnitMemory memory() const override {
    return {own_saved() + attention_bytes_.saved + mlp_bytes_.saved,
            own_grads() + attention_bytes_.grads + mlp_bytes_.grads, packed_bytes()};
  }

  void forward(const UnitIo& io) override {
    const Saved s = saved(io);
    norms(io, s);
    const bool drops = dropout_.drops(io);
    attention_->forward(io, attention_memory(io), s.rows,
                        drops ? Epilogue{} : Epilogue{Epilogue::Kind::residual, io.input}, s.sum);
    mlp_->forward(io, mlp_memory(io), s.read_by_mlp(), {Epilogue::Kind::residual, s.sum},
                  io.output);
    if (drops) dropout_.forward(io, io.output, io.input, io.output);
  }

  void recompute(const UnitIo& io) override {
    const Saved s = saved(io);
    norms(io, s);
    attention_->forward(io, attention_memory(io), s.rows, {}, {});
    mlp_->forward(io, mlp_memory(io), s.read_by_mlp(), {}, {});
  }

  void backward_input(const UnitIo& io) override {
    const Saved s = saved(io);
    const Grads g = grads(io);
    const View du = dropout_.backward(io, io.output_grad, g.dropped);
    attention_->backward_input(io, attention_memory(io), du, g.wide, {}, g.dh);
    mlp_->backward_input(io, mlp_memory(io), du, {},
                         mlp_norm_ ? Epilogue{} : Epilogue{Epilogue::Kind::residual, g.dh}, g.dmlp);
    if (io.input_grad.empty()) return;
    norm_.backward_input(mlp_norm_ ? g.dh : g.dmlp, io.input, s.statistics(), io.output_grad,
                         io.input_grad);
    if (mlp_norm_)
      mlp_norm_->backward_input(g.dmlp, io.input, s.mlp_statistics(), io.input_grad, io.input_grad);
  }

  void backward_weight(const UnitIo& io, std::span<const UnitGradient> gradients) override {
    const Saved s = saved(io);
    const Grads g = grads(io);
    const View du = Dropout::gradient(io.output_grad, g.dropped);
    attention_->backward_weight(io, attention_memory(io), s.rows, du, gradients);
    mlp_->backward_weight(io, mlp_memory(io), s.read_by_mlp(), du, gradients);
    norm_.backward_weight(mlp_norm_ ? g.dh : g.dmlp, io.input, s.statistics(), gradients);
    if (mlp_norm_) mlp_norm_->backward_weight(g.dmlp, io.input, s.mlp_statistics(), gradients);
  }

  UnitResult result(void*) const override { return {}; }

 private:
  struct Bytes {
    std::size_t saved = 0, grads = 0;
  };

  std::size_t own_saved() const { return slot_bytes<Saved>(shape_, spec_); }
  std::size_t own_grads() const { return slot_bytes<Grads>(shape_, scratch_columns_); }
  Saved saved(const UnitIo& io) const { return slots_in<Saved>(io.saved, shape_, spec_); }
  Grads grads(const UnitIo& io) const {
    return slots_in<Grads>(io.grads, shape_, scratch_columns_);
  }
  BranchMemory attention_memory(const UnitIo& io) const {
    return {static_cast<std::byte*>(io.saved) + own_saved(),
            static_cast<std::byte*>(io.grads) + own_grads()};
  }
  BranchMemory mlp_memory(const UnitIo& io) const {
    return {static_cast<std::byte*>(io.saved) + own_saved() + attention_bytes_.saved,
            static_cast<std::byte*>(io.grads) + own_grads() + attention_bytes_.grads};
  }

  void norms(const UnitIo& io, const Saved& s) const {
    norm_.forward(io.input, s.statistics(), s.rows);
    if (mlp_norm_) mlp_norm_->forward(io.input, s.mlp_statistics(), s.mlp_rows);
  }

  UnitShape shape_;
  ParallelBlockSpec spec_;
  std::int64_t scratch_columns_;
  Bytes attention_bytes_, mlp_bytes_;
  Norm norm_;
  std::optional<Norm> mlp_norm_;
  Dropout dropout_;
  std::unique_ptr<Branch> attention_, mlp_;
};

/// Both branches, the norms, and the sums; a group divides the branches, and sums u in F, dh in I.
UnitCost cost_of(const UnitShape& shape, const ParallelBlockSpec& spec, const BranchPlan& attention,
                 const BranchPlan& mlp) {
  UnitCost cost = attention.cost;
  const UnitCost& more = mlp.cost;
  cost.forward_flops += more.forward_flops;
  cost.input_flops += more.input_flops;
  cost.weight_flops += more.weight_flops;
  cost.saved_bytes += more.saved_bytes;
  cost.grad_bytes += more.grad_bytes;
  cost.again_flops += more.again_flops;
  cost.model_flops += more.model_flops;
  cost.forward_moved += more.forward_moved;
  cost.input_moved += more.input_moved;
  cost.split = {.flops = 1,
                .saved_bytes = cost.saved_bytes,
                .grad_bytes = cost.grad_bytes,
                .forward_moved = cost.forward_moved,
                .input_moved = cost.input_moved,
                .parts = std::min(attention.cost.split.parts, mlp.cost.split.parts)};
  cost.forward_sum = cost.input_sum = shape.moved(shape.width);
  const std::int64_t norms = spec.shared_norm ? 1 : 2;
  cost.forward_moved += shape.moved((2 * norms + 5) * shape.width);
  cost.input_moved += shape.moved((4 * norms + 8) * shape.width);
  if (shape.dropout > 0) cost.dropped = static_cast<double>(shape.elements(1));
  cost.saved_bytes += slot_bytes<Saved>(shape, spec);
  cost.grad_bytes += slot_bytes<Grads>(shape, attention.scratch_columns);
  return cost;
}

}  // namespace

UnitPlan parallel_block(const UnitShape& shape, const ParallelBlockSpec& spec, BranchPlan attention,
                        BranchPlan mlp) {
  UnitPlan plan;
  const auto add = [&](const std::vector<ParameterSpec>& list) {
    plan.spec.parameters.insert(plan.spec.parameters.end(), list.begin(), list.end());
  };
  add(spec.norm.parameters(shape.width));
  if (!spec.shared_norm) add(mlp_norm(spec).parameters(shape.width));
  add(attention.parameters);
  add(mlp.parameters);
  plan.spec.reads = attention.reads;
  plan.spec.cost = cost_of(shape, spec, attention, mlp);
  plan.describe = [spec, of_attention = attention.describe, of_mlp = mlp.describe](
                      GraphBuilder& graph, const std::string& x) {
    const std::string h = spec.norm.describe(graph, x);
    const std::string first = graph.add("Add", {x, of_attention(graph, h)});
    return graph.add(
        "Add", {first, of_mlp(graph, spec.shared_norm ? h : mlp_norm(spec).describe(graph, x))});
  };
  plan.make = [shape, spec, attention = std::move(attention),
               mlp = std::move(mlp)](Backend& backend) {
    return std::make_unique<ParallelBlock>(shape, spec, attention, mlp, backend);
  };
  return plan;
}

}  // namespace concertina
