#include "models/units/attention.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

#include "core/rotary.h"
#include "models/slots.h"
#include "models/units/dense.h"

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
          .matrices = {heads.width(), heads.kv_width(), heads.kv_width()}};
}
DenseSpec proj_spec(const UnitShape& s, const AttentionSpec& spec) {
  return {.name = "proj",
          .in = s.width,
          .out = s.width,
          .std = spec.residual_std,
          .bias = spec.bias,
          .matrices = {s.width}};
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

/// Of the products and of the pairs of queries and keys that the mask leaves.
UnitCost cost_of(const UnitShape& shape, const AttentionSpec& spec) {
  const double qkv = qkv_spec(shape, spec).flops(shape.rows());
  const double linear = qkv + proj_spec(shape, spec).flops(shape.rows());
  AttentionShape products = attention_shape(shape, spec);
  const double product = attention_product_flops(products);
  products.causal = false;
  return {.forward_flops = linear + 2 * product,
          .input_flops = linear + 5 * product,
          .weight_flops = linear,
          .saved_bytes = slot_bytes<Saved>(shape, spec),
          .grad_bytes = slot_bytes<Grads>(shape, spec),
          .again_flops = qkv + 2 * product,
          .model_flops = linear + 2 * attention_product_flops(products)};
}

/// Which key [samples,1,1 or T,T] each query sees; empty: all see all.
std::string describe_mask(GraphBuilder& graph, const AttentionSpec& spec) {
  if (!spec.causal && !spec.padded) return {};
  return graph.once(spec.causal ? "causal mask" : "mask", [&] {
    const std::string given = graph.tokens_input("attention_mask");
    const std::string real = graph.add(
        "Unsqueeze", {graph.add("Greater", {given, graph.index(0)}), graph.indices({1, 2})});
    if (!spec.causal) return real;
    const std::string tokens = graph.add("Gather", {graph.add("Shape", {given}), graph.index(1)});
    const std::string places = graph.add("Range", {graph.index(0), tokens, graph.index(1)});
    const std::string queries = graph.add("Unsqueeze", {places, graph.indices({1})});
    return graph.add("And", {graph.add("LessOrEqual", {places, queries}), real});
  });
}

/// cos or sin [samples,1,T,D/2] of the angle of each position and pair.
std::string describe_rotation(GraphBuilder& graph, const AttentionShape& shape, double theta,
                              double (*function)(double), const char* name) {
  return graph.once(fmt::format("{} of positions", name), [&] {
    const std::int64_t pairs = shape.head_dim / 2;
    std::vector<float> values;
    for (std::int64_t t = 0; t < shape.tokens; ++t)
      for (std::int64_t i = 0; i < pairs; ++i)
        values.push_back(static_cast<float>(
            function(static_cast<double>(t) * rotary_frequency(theta, shape.head_dim, i))));
    const std::string table =
        graph.table(fmt::format("rotary.{}", name), {shape.tokens, pairs}, std::move(values));
    const std::string rows = graph.add("Gather", {table, graph.tokens_input("position_ids")},
                                       {{"axis", std::int64_t{0}}});
    return graph.add("Unsqueeze", {rows, graph.indices({1})});
  });
}

/// Rotated x[samples,heads,T,D].
std::string describe_rotary(GraphBuilder& graph, const AttentionShape& shape, double theta,
                            const std::string& x) {
  const std::string cos = describe_rotation(graph, shape, theta, std::cos, "cos");
  const std::string sin = describe_rotation(graph, shape, theta, std::sin, "sin");
  const std::int64_t pairs = shape.head_dim / 2;
  const std::vector<std::string> half =
      graph.add_many("Split", 2, {x, graph.indices({pairs, pairs})}, {{"axis", std::int64_t{-1}}});
  const auto product = [&](const std::string& a, const std::string& b) {
    return graph.add("Mul", {a, b});
  };
  const std::string first = graph.add("Sub", {product(half[0], cos), product(half[1], sin)});
  const std::string second = graph.add("Add", {product(half[1], cos), product(half[0], sin)});
  return graph.add("Concat", {first, second}, {{"axis", std::int64_t{-1}}});
}

/// x[samples,K,T,D] with each head G times, [samples,KG,T,D].
std::string describe_shared_heads(GraphBuilder& graph, const AttentionShape& shape,
                                  const std::string& x) {
  const std::int64_t group = shape.heads / shape.kv();
  if (group == 1) return x;
  const std::string apart = graph.add("Unsqueeze", {x, graph.indices({2})});
  const std::string more = graph.add("Expand", {apart, graph.indices({1, 1, group, 1, 1})});
  return graph.add("Reshape", {more, graph.indices({0, shape.heads, -1, shape.head_dim})});
}

/// y[samples,T,C] = softmax(mask(q k^T / sqrt(D))) v of qkv[samples,T,(H+2K)D].
std::string describe_products(GraphBuilder& graph, const UnitShape& unit, const AttentionSpec& spec,
                              const std::string& qkv) {
  const AttentionShape shape = attention_shape(unit, spec);
  const std::int64_t width = shape.heads * shape.head_dim, kv_width = shape.kv() * shape.head_dim;
  const std::vector<std::string> parts = graph.add_many(
      "Split", 3, {qkv, graph.indices({width, kv_width, kv_width})}, {{"axis", std::int64_t{-1}}});
  const auto permuted = [&](const std::string& x, std::vector<std::int64_t> order) {
    return graph.add("Transpose", {x}, {{"perm", std::move(order)}});
  };
  const auto heads_of = [&](const std::string& x, std::int64_t heads) {
    return permuted(graph.add("Reshape", {x, graph.indices({0, 0, heads, shape.head_dim})}),
                    {0, 2, 1, 3});
  };
  std::string q = heads_of(parts[0], shape.heads), k = heads_of(parts[1], shape.kv());
  if (spec.rotary_theta > 0) {
    q = describe_rotary(graph, shape, spec.rotary_theta, q);
    k = describe_rotary(graph, shape, spec.rotary_theta, k);
  }
  k = permuted(describe_shared_heads(graph, shape, k), {0, 1, 3, 2});
  const std::string v = describe_shared_heads(graph, shape, heads_of(parts[2], shape.kv()));
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(shape.head_dim)));
  std::string scores = graph.add("Mul", {graph.add("MatMul", {q, k}), graph.number(scale)});
  // A query that sees nothing, as before the first token of a sample that is padded on its left, is
  // no NaN: all its scores are the lowest number.
  if (const std::string mask = describe_mask(graph, spec); !mask.empty())
    scores = graph.add("Where", {mask, scores, graph.number(std::numeric_limits<float>::lowest())});
  const std::string shares = graph.add("Softmax", {scores}, {{"axis", std::int64_t{-1}}});
  const std::string y = permuted(graph.add("MatMul", {shares, v}), {0, 2, 1, 3});
  return graph.add("Reshape", {y, graph.indices({0, 0, width})});
}

std::string describe_attention(GraphBuilder& graph, const UnitShape& shape,
                               const AttentionSpec& spec, const std::string& x) {
  const std::string qkv = qkv_spec(shape, spec).describe(graph, x);
  return proj_spec(shape, spec).describe(graph, describe_products(graph, shape, spec, qkv));
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
