#include "models/units/graphs.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "core/error.h"

namespace concertina {
namespace {

/// Returns the mask [samples,1,1 or T,T] of visible keys per query; empty: all are visible.
std::string describe_mask(GraphBuilder& graph, const AttentionShape& shape) {
  if (!shape.causal && !shape.padded) return {};
  return graph.once(shape.causal ? "causal mask" : "mask", [&] {
    const std::string given = graph.tokens_input("attention_mask");
    const std::string real = graph.add(
        "Unsqueeze", {graph.add("Greater", {given, graph.index(0)}), graph.indices({1, 2})});
    if (!shape.causal) return real;
    const std::string tokens = graph.add("Gather", {graph.add("Shape", {given}), graph.index(1)});
    const std::string places = graph.add("Range", {graph.index(0), tokens, graph.index(1)});
    const std::string queries = graph.add("Unsqueeze", {places, graph.indices({1})});
    return graph.add("And", {graph.add("LessOrEqual", {places, queries}), real});
  });
}

/// Returns cos or sin [samples,1,T,P/2] of the angles, by position and pair.
std::string describe_rotation(GraphBuilder& graph, std::int64_t positions, const RotarySpec& spec,
                              double (*function)(double), const char* name) {
  return graph.once(fmt::format("{} of positions", name), [&] {
    const std::int64_t pairs = spec.columns / 2;
    std::vector<float> values;
    for (std::int64_t t = 0; t < positions; ++t)
      for (std::int64_t i = 0; i < pairs; ++i)
        values.push_back(static_cast<float>(
            spec.magnitude * function(static_cast<double>(t) * rotary_frequency(spec, i))));
    const std::string table =
        graph.table(fmt::format("rotary.{}", name), {positions, pairs}, std::move(values));
    const std::string rows = graph.add("Gather", {table, graph.tokens_input("position_ids")},
                                       {{"axis", std::int64_t{0}}});
    return graph.add("Unsqueeze", {rows, graph.indices({1})});
  });
}

/// Returns x[samples,heads,T,D] with the first P columns rotated.
std::string describe_rotary(GraphBuilder& graph, const AttentionShape& shape,
                            const RotarySpec& spec, const std::string& x) {
  const std::string cos = describe_rotation(graph, shape.tokens, spec, std::cos, "cos");
  const std::string sin = describe_rotation(graph, shape.tokens, spec, std::sin, "sin");
  const std::int64_t pairs = spec.columns / 2, rest = shape.head_dim - spec.columns;
  std::vector<std::int64_t> widths{pairs, pairs};
  if (rest > 0) widths.push_back(rest);
  const std::vector<std::string> half = graph.add_many(
      "Split", widths.size(), {x, graph.indices(widths)}, {{"axis", std::int64_t{-1}}});
  const auto product = [&](const std::string& a, const std::string& b) {
    return graph.add("Mul", {a, b});
  };
  const std::string first = graph.add("Sub", {product(half[0], cos), product(half[1], sin)});
  const std::string second = graph.add("Add", {product(half[1], cos), product(half[0], sin)});
  std::vector<std::string> all{first, second};
  if (rest > 0) all.push_back(half[2]);
  return graph.add("Concat", all, {{"axis", std::int64_t{-1}}});
}

/// Returns x[samples,K,T,D] with each head repeated G times, [samples,KG,T,D].
std::string describe_shared_heads(GraphBuilder& graph, const AttentionShape& shape,
                                  const std::string& x) {
  const std::int64_t group = shape.heads / shape.kv();
  if (group == 1) return x;
  const std::string apart = graph.add("Unsqueeze", {x, graph.indices({2})});
  const std::string more = graph.add("Expand", {apart, graph.indices({1, 1, group, 1, 1})});
  return graph.add("Reshape", {more, graph.indices({0, shape.heads, -1, shape.head_dim})});
}

}  // namespace

std::string describe_activation(GraphBuilder& graph, Epilogue::Kind kind, const std::string& x) {
  if (kind == Epilogue::Kind::relu) return graph.add("Relu", {x});
  if (kind == Epilogue::Kind::silu) return graph.add("Mul", {x, graph.add("Sigmoid", {x})});
  const std::string half = graph.number(0.5F), one = graph.number(1);
  std::string share;  // 2 s - 1, where the activation is s x
  if (kind == Epilogue::Kind::gelu_erf) {
    share = graph.add("Erf", {graph.add("Div", {x, graph.number(std::numbers::sqrt2_v<float>)})});
  } else {
    CONCERTINA_CHECK(kind == Epilogue::Kind::gelu, "not an activation");
    const auto slope = static_cast<float>(std::sqrt(2 / std::numbers::pi));
    const std::string cube = graph.add("Mul", {graph.add("Mul", {x, x}), x});
    const std::string bent =
        graph.add("Add", {x, graph.add("Mul", {cube, graph.number(0.044715F)})});
    share = graph.add("Tanh", {graph.add("Mul", {bent, graph.number(slope)})});
  }
  return graph.add("Mul", {graph.add("Mul", {x, half}), graph.add("Add", {share, one})});
}

std::string describe_attention_products(GraphBuilder& graph, const AttentionShape& shape,
                                        const RotarySpec& rotary, std::span<const NormSpec> norms,
                                        const std::string& qkv) {
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
  if (!norms.empty()) {
    q = norms[0].describe(graph, q);
    k = norms[1].describe(graph, k);
  }
  if (rotary.turns()) {
    q = describe_rotary(graph, shape, rotary, q);
    k = describe_rotary(graph, shape, rotary, k);
  }
  k = permuted(describe_shared_heads(graph, shape, k), {0, 1, 3, 2});
  const std::string v = describe_shared_heads(graph, shape, heads_of(parts[2], shape.kv()));
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(shape.head_dim)));
  std::string scores = graph.add("Mul", {graph.add("MatMul", {q, k}), graph.number(scale)});
  // The mask value is the lowest finite number, because a query without visible keys (in left
  // padding) would otherwise give NaN.
  if (const std::string mask = describe_mask(graph, shape); !mask.empty())
    scores = graph.add("Where", {mask, scores, graph.number(std::numeric_limits<float>::lowest())});
  const std::string shares = graph.add("Softmax", {scores}, {{"axis", std::int64_t{-1}}});
  const std::string y = permuted(graph.add("MatMul", {shares, v}), {0, 2, 1, 3});
  return graph.add("Reshape", {y, graph.indices({0, 0, width})});
}

}  // namespace concertina
