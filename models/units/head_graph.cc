#include "models/units/head_graph.h"

#include "models/units/activation.h"

namespace concertina {
namespace {

std::string describe_transform(GraphBuilder& graph, const TransformSpec& spec,
                               const std::string& x) {
  std::string y = spec.map.describe(graph, x);
  y = spec.activation == TransformSpec::Activation::tanh
          ? graph.add("Tanh", {y})
          : describe_gelu(graph, Epilogue::Kind::gelu_erf, y);
  return spec.norm ? spec.norm->describe(graph, y) : y;
}

/// The last row [samples,C] of x [samples,T,C] where the attention mask is 1, whichever side is
/// padded: the largest of the positions that are not.
std::string describe_last_row(GraphBuilder& graph, const std::string& x) {
  const std::string mask = graph.tokens_input("attention_mask");
  const std::string shape = graph.add("Shape", {mask});
  const std::string tokens = graph.add("Gather", {shape, graph.index(1)});
  const std::string places = graph.add("Range", {graph.index(0), tokens, graph.index(1)});
  const std::string seen = graph.add("Mul", {mask, places});
  const std::string last =
      graph.add("ReduceMax", {seen}, {{"axes", std::vector<std::int64_t>{1}}});  // [samples,1]
  return graph.add("GatherND", {x, last}, {{"batch_dims", std::int64_t{1}}});
}

}  // namespace

void describe_head(GraphBuilder& graph, const HeadSpec& spec, std::string x) {
  const std::string samples(kBatchAxis), tokens(kSequenceAxis);
  if (spec.rows.which == RowsRead::Which::first)
    x = graph.add("Gather", {x, graph.index(0)}, {{"axis", std::int64_t{1}}});
  if (spec.rows.which == RowsRead::Which::last) x = describe_last_row(graph, x);
  if (spec.norm) x = spec.norm->describe(graph, x);
  if (spec.transform) x = describe_transform(graph, *spec.transform, x);
  x = spec.logits.describe(graph, x);
  if (spec.loss == HeadSpec::Loss::rows) {
    const GraphExtent columns = spec.logits.out;
    graph.output("logits", x,
                 spec.rows.some() && !spec.rows.by_target()
                     ? std::vector{GraphExtent(samples), columns}
                     : std::vector{GraphExtent(samples), GraphExtent(tokens), columns});
    return;
  }
  const std::vector<std::string> halves =
      graph.add_many("Split", 2, {x, graph.indices({1, 1})}, {{"axis", std::int64_t{-1}}});
  const auto output = [&](std::string_view name, const std::string& half) {
    graph.output(name, graph.add("Squeeze", {half, graph.indices({-1})}), {samples, tokens});
  };
  output("start_logits", halves[0]);
  output("end_logits", halves[1]);
}

}  // namespace concertina
