#include "models/units/attention.h"

#include <array>

#include "models/units/dense.h"
#include "models/units/graphs.h"
#include "models/units/slots.h"

namespace concertina {
namespace {

enum Read { kLengths };

AttentionShape attention_shape(const UnitShape& s, const AttentionSpec& spec) {
  return {.samples = s.samples,
          .tokens = s.tokens,
          .heads = spec.heads,
          .head_dim = s.width / spec.heads,
          .compute = s.compute,
          .kv_heads = spec.kv_heads,
          .causal = spec.causal,
          .padded = spec.padded};
}

struct Saved {
  View qkv, y, lse;  // [R,(H+2K)D] rotated, [R,C], [samples,H,T]
  static auto slots(const UnitShape& s, const AttentionSpec& spec) {
    const std::int64_t columns = attention_shape(s, spec).qkv_width();
    return std::array{Slot{&Saved::qkv, s.rows() * columns, s.compute},
                      Slot{&Saved::y, s.elements(1), s.compute},
                      Slot{&Saved::lse, s.rows() * spec.heads, DType::f32}};
  }
};

struct Grads {
  View dqkv;  // [R,(H+2K)D]
  static auto slots(const UnitShape& s, const AttentionSpec& spec) {
    const std::int64_t columns = attention_shape(s, spec).qkv_width();
    return std::array{Slot{&Grads::dqkv, s.rows() * columns, s.compute}};
  }
};

DenseSpec qkv_spec(const UnitShape& s, const AttentionSpec& spec) {
  const AttentionShape heads = attention_shape(s, spec);
  return {.name = "qkv",
          .in = s.width,
          .out = heads.qkv_width(),
          .std = spec.std,
          .bias = spec.bias,
          .matrices = {heads.width(), heads.kv_width(), heads.kv_width()},
          .split = DenseSpec::Split::columns};
}
DenseSpec proj_spec(const UnitShape& s, const AttentionSpec& spec) {
  return {.name = "proj",
          .in = s.width,
          .out = s.width,
          .std = spec.residual_std,
          .bias = spec.bias,
          .matrices = {s.width},
          .split = DenseSpec::Split::rows};
}

/// Rotates q and k in place; its table lies among the packed weights.
class Rotary final : public UnitPart {
 public:
  Rotary(const AttentionShape& shape, double theta, Backend& backend)
      : shape_(shape), theta_(theta), backend_(backend) {}

  std::size_t parameters() const override { return 0; }
  std::size_t packed_bytes() const override {
    return rotates() ? table_elements() * sizeof(float) : 0;
  }
  /// Makes the table, once: no update changes it.
  void attach(std::span<const View> /*weights*/, void* packed) override {
    if (!rotates()) return;
    table_ = {packed, table_elements(), DType::f32};
    backend_.run(RotaryTable{
        .theta = theta_, .table = table_, .tokens = shape_.tokens, .head_dim = shape_.head_dim});
  }

  /// `inverse`: of gradients.
  void rotate(View qkv, bool inverse) const {
    if (!rotates()) return;
    backend_.run(Rotate{.x = qkv,
                        .table = table_,
                        .stride = shape_.qkv_width(),
                        .heads = shape_.heads + shape_.kv(),
                        .head_dim = shape_.head_dim,
                        .tokens = shape_.tokens,
                        .inverse = inverse});
  }

 private:
  bool rotates() const { return theta_ > 0; }
  std::size_t table_elements() const {
    return static_cast<std::size_t>(shape_.tokens * shape_.head_dim);
  }

  AttentionShape shape_;
  double theta_;
  Backend& backend_;
  View table_;
};

class AttentionBranch final : public Branch {
 public:
  AttentionBranch(const UnitShape& shape, const AttentionSpec& spec, Backend& backend)
      : shape_(shape),
        spec_(spec),
        backend_(backend),
        qkv_(qkv_spec(shape, spec), shape.rows(), shape, backend),
        proj_(proj_spec(shape, spec), shape.rows(), shape, backend),
        rotary_(attention_shape(shape, spec), spec.rotary_theta, backend),
        attention_(backend.attention(attention_shape(shape, spec))) {}

  std::vector<UnitPart*> parts() override { return {&qkv_, &proj_, &rotary_}; }

  void forward(const UnitIo& io, const BranchMemory& memory, View h, Epilogue last,
               View y) override {
    const Saved s = slots_in<Saved>(memory.saved, shape_, spec_);
    qkv_.forward(h, {}, s.qkv);
    rotary_.rotate(s.qkv, false);
    backend_.run(AttentionForward{
        .attention = *attention_, .qkv = s.qkv, .lengths = lengths(io), .y = s.y, .lse = s.lse});
    if (!y.empty()) proj_.forward(s.y, last, y);
  }

  void backward_input(const UnitIo& io, const BranchMemory& memory, View du, View scratch,
                      Epilogue last, View dh) override {
    const Saved s = slots_in<Saved>(memory.saved, shape_, spec_);
    const Grads g = slots_in<Grads>(memory.grads, shape_, spec_);
    proj_.backward_input(du, {}, scratch);
    backend_.run(AttentionBackward{.attention = *attention_,
                                   .dy = scratch,
                                   .qkv = s.qkv,
                                   .lengths = lengths(io),
                                   .y = s.y,
                                   .lse = s.lse,
                                   .dqkv = g.dqkv});
    rotary_.rotate(g.dqkv, true);
    if (!dh.empty()) qkv_.backward_input(g.dqkv, last, dh);
  }

  void backward_weight(const UnitIo& /*io*/, const BranchMemory& memory, View h, View du,
                       std::span<const UnitGradient> gradients) override {
    const Saved s = slots_in<Saved>(memory.saved, shape_, spec_);
    proj_.backward_weight(s.y, du, gradients);
    qkv_.backward_weight(h, slots_in<Grads>(memory.grads, shape_, spec_).dqkv, gradients);
  }

 private:
  View lengths(const UnitIo& io) const { return spec_.padded ? io.fields[kLengths] : View{}; }

  UnitShape shape_;
  AttentionSpec spec_;
  Backend& backend_;
  Dense qkv_, proj_;
  Rotary rotary_;
  std::unique_ptr<Attention> attention_;
};

/// The operations of the products, and of the pairs of queries and keys that the mask leaves; moved
/// are qkv into heads and back, and queries and keys that are rotated.
UnitCost cost_of(const UnitShape& shape, const AttentionSpec& spec) {
  const double qkv = qkv_spec(shape, spec).flops(shape.rows());
  const double linear = qkv + proj_spec(shape, spec).flops(shape.rows());
  AttentionShape heads = attention_shape(shape, spec);
  const double product = attention_product_flops(heads);
  heads.causal = false;
  const double full = attention_product_flops(heads);
  const std::int64_t rotated = spec.rotary_theta > 0 ? heads.width() + heads.kv_width() : 0;
  const double moved = shape.moved(2 * (heads.qkv_width() + rotated));
  return {.forward_flops = linear + 2 * product,
          .input_flops = linear + 5 * product,
          .weight_flops = linear,
          .saved_bytes = slot_bytes<Saved>(shape, spec),
          .grad_bytes = slot_bytes<Grads>(shape, spec),
          .again_flops = qkv + 2 * product,
          .model_flops = linear + 2 * full,
          .forward_moved = moved,
          .input_moved = 2 * moved,
          .scores = static_cast<double>(shape.rows()) * static_cast<double>(shape.tokens) *
                    static_cast<double>(spec.heads),
          .score_flops = product,
          .full_score_flops = full,
          .split = {.parts = heads.kv()}};
}

std::string describe_attention(GraphBuilder& graph, const UnitShape& shape,
                               const AttentionSpec& spec, const std::string& x) {
  const std::string qkv = qkv_spec(shape, spec).describe(graph, x);
  return proj_spec(shape, spec)
      .describe(graph, describe_attention_products(graph, attention_shape(shape, spec),
                                                   spec.rotary_theta, qkv));
}

}  // namespace

BranchPlan attention_branch(const UnitShape& shape, const AttentionSpec& spec) {
  BranchPlan plan;
  for (const DenseSpec& dense : {qkv_spec(shape, spec), proj_spec(shape, spec)})
    for (ParameterSpec& parameter : dense.parameters()) plan.parameters.push_back(parameter);
  if (spec.padded) plan.reads = {lengths_field()};
  plan.cost = cost_of(shape, spec);
  plan.make = [shape, spec](Backend& backend) {
    return std::make_unique<AttentionBranch>(shape, spec, backend);
  };
  plan.describe = [shape, spec](GraphBuilder& graph, const std::string& x) {
    return describe_attention(graph, shape, spec, x);
  };
  return plan;
}

}  // namespace concertina
