#include "models/units/activation.h"

#include <cmath>
#include <numbers>

#include "core/error.h"

namespace concertina {

std::string describe_gelu(GraphBuilder& graph, Epilogue::Kind kind, const std::string& x) {
  const std::string half = graph.number(0.5F), one = graph.number(1);
  std::string share;  // twice the share of x that passes, less 1
  if (kind == Epilogue::Kind::gelu_erf) {
    share = graph.add("Erf", {graph.add("Div", {x, graph.number(std::numbers::sqrt2_v<float>)})});
  } else {
    CONCERTINA_CHECK(kind == Epilogue::Kind::gelu, "an activation that is no GELU");
    const auto slope = static_cast<float>(std::sqrt(2 / std::numbers::pi));
    const std::string cube = graph.add("Mul", {graph.add("Mul", {x, x}), x});
    const std::string bent =
        graph.add("Add", {x, graph.add("Mul", {cube, graph.number(0.044715F)})});
    share = graph.add("Tanh", {graph.add("Mul", {bent, graph.number(slope)})});
  }
  return graph.add("Mul", {graph.add("Mul", {x, half}), graph.add("Add", {share, one})});
}

}  // namespace concertina
