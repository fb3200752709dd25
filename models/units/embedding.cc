#include "models/units/embedding.h"

#include <array>

#include "core/error.h"
#include "models/units/dropout.h"
#include "models/units/slots.h"

namespace concertina {
namespace {

enum Read { kTokens, kTypes };

/// Whether positions are counted from the start of each document.
bool reads_starts(const UnitShape& shape, const EmbeddingSpec& spec) {
  return shape.has_starts() && spec.positions;
}

/// With a norm: its input x[R,C] and its statistics.
struct Saved : NormStatistics {
  View x;
  static auto slots(const UnitShape& s, const EmbeddingSpec& spec) {
    return std::array{
        Slot<Saved>{&Saved::x, spec.norm ? s.elements(1) : 0, s.compute},
        Slot<Saved>{&Saved::mean, spec.norm ? spec.norm->means(s.rows()) : 0, DType::f32},
        Slot<Saved>{&Saved::rstd, spec.norm ? s.rows() : 0, DType::f32}};
  }
};

struct Grads {
  View dropped, dx;  // see Dropout::elements(); [R,C] with a norm
  static auto slots(const UnitShape& s, const EmbeddingSpec& spec) {
    return std::array{Slot{&Grads::dropped, Dropout::elements(s), s.compute},
                      Slot{&Grads::dx, spec.norm ? s.elements(1) : 0, s.compute}};
  }
};

enum Table { kWte, kWpe, kWtt };

class Embedding final : public PartedUnit {
 public:
  Embedding(const UnitShape& shape, const EmbeddingSpec& spec, Backend& backend)
      : shape_(shape),
        spec_(spec),
        backend_(backend),
        tables_({true, spec.positions, spec.types > 0}),
        norm_(spec.norm.value_or(NormSpec()), backend),
        dropout_(shape, backend) {
    std::vector<UnitPart*> parts{&tables_};
    if (spec.norm) parts.push_back(&norm_);
    add_parts(parts);
  }

  UnitMemory memory() const override {
    return with_parts(slot_bytes<Saved>(shape_, spec_), slot_bytes<Grads>(shape_, spec_));
  }

  void forward(const UnitIo& io) override {
    const Saved s = slots_in<Saved>(io.saved, shape_, spec_);
    const View x = spec_.norm ? s.x : io.output;
    backend_.run(Embed{.tokens = io.fields[kTokens],
                       .wte = tables_[kWte],
                       .wpe = tables_[kWpe],
                       .t = shape_.tokens,
                       .x = x,
                       .types = types(io),
                       .wtt = tables_[kWtt],
                       .starts = starts(io)});
    if (spec_.norm) norm_.forward(x, s, io.output);
    if (dropout_.drops(io)) dropout_.forward(io, io.output, {}, io.output);
  }

  void backward_input(const UnitIo& io) override {
    const Grads g = slots_in<Grads>(io.grads, shape_, spec_);
    const View dy = dropout_.backward(io, io.output_grad, g.dropped);
    if (!spec_.norm) return;
    const Saved s = slots_in<Saved>(io.saved, shape_, spec_);
    norm_.backward_input(dy, s.x, s, {}, g.dx);
  }

  void backward_weight(const UnitIo& io, std::span<const UnitGradient> gradients) override {
    const Grads g = slots_in<Grads>(io.grads, shape_, spec_);
    const View dy = Dropout::gradient(io.output_grad, g.dropped);
    const UnitGradient wte = tables_.gradient(gradients, kWte),
                       wpe = tables_.gradient(gradients, kWpe),
                       wtt = tables_.gradient(gradients, kWtt);
    for (const UnitGradient& other : {wpe, wtt})
      CONCERTINA_CHECK(other.view.empty() || other.accumulate == wte.accumulate,
                       "all tables must start a gradient-sum leaf at the same microbatch");
    backend_.run(EmbedWeight{.tokens = io.fields[kTokens],
                             .dx = spec_.norm ? g.dx : dy,
                             .t = shape_.tokens,
                             .dwte = wte.view,
                             .dwpe = wpe.view,
                             .accumulate = wte.accumulate,
                             .types = types(io),
                             .dwtt = wtt.view,
                             .starts = starts(io)});
    if (!spec_.norm) return;
    const Saved s = slots_in<Saved>(io.saved, shape_, spec_);
    norm_.backward_weight(dy, s.x, s, gradients);
  }

 private:
  /// Returns the last field, or an empty view if positions do not restart.
  View starts(const UnitIo& io) const {
    return reads_starts(shape_, spec_) ? io.fields[spec_.types > 1 ? kTypes + 1 : kTypes] : View{};
  }
  View types(const UnitIo& io) const { return spec_.types > 1 ? io.fields[kTypes] : View{}; }

  UnitShape shape_;
  EmbeddingSpec spec_;
  Backend& backend_;
  Tables tables_;
  Norm norm_;
  Dropout dropout_;
};

/// Returns positions [samples,T], or [T] if they are counted.
std::string describe_positions(GraphBuilder& graph, const EmbeddingSpec& spec) {
  if (!spec.counts_positions) return graph.tokens_input("position_ids");
  const std::string shape = graph.add("Shape", {graph.tokens_input("input_ids")});
  const std::string tokens = graph.add("Gather", {shape, graph.index(1)});
  return graph.add("Range", {graph.index(0), tokens, graph.index(1)});
}

std::string describe_embedding(GraphBuilder& graph, const EmbeddingSpec& spec) {
  const auto rows = [&](std::string_view table, const std::string& indices) {
    return graph.add("Gather", {graph.parameter(table), indices}, {{"axis", std::int64_t{0}}});
  };
  std::string x = rows(kTokenTable, graph.tokens_input("input_ids"));
  // With one type there is no such input, because programs that feed this kind of model do not
  // supply it.
  if (spec.types == 1)
    x = graph.add("Add", {x, rows("wtt", graph.index(0))});
  else if (spec.types > 1)
    x = graph.add("Add", {x, rows("wtt", graph.tokens_input("token_type_ids"))});
  if (spec.positions) x = graph.add("Add", {x, rows("wpe", describe_positions(graph, spec))});
  return spec.norm ? spec.norm->describe(graph, x) : x;
}

}  // namespace

UnitPlan embedding(const UnitShape& shape, const EmbeddingSpec& spec) {
  const Init init{Init::Kind::normal, spec.std};
  const std::string table(kTokenTable);
  UnitPlan plan;
  plan.spec.parameters = {
      {table, {spec.vocabulary, shape.width}, true, init, spec.tied ? table : "", {}, true}};
  if (spec.positions)
    plan.spec.parameters.push_back({"wpe", {shape.positions(), shape.width}, true, init, ""});
  if (spec.types > 0)
    plan.spec.parameters.push_back({"wtt", {spec.types, shape.width}, true, init, ""});
  const auto tables = static_cast<double>(plan.spec.parameters.size());
  if (spec.norm) append(plan.spec.parameters, spec.norm->parameters(shape.width));
  plan.spec.reads = {tokens_field(shape.tokens)};
  if (spec.types > 1) plan.spec.reads.push_back(types_field(shape.tokens));
  if (reads_starts(shape, spec)) plan.spec.reads.push_back(starts_field(shape.tokens));
  const auto elements = static_cast<double>(shape.rows()) * static_cast<double>(shape.width);
  const double moved = (tables + (spec.norm ? 3 : 1)) * shape.moved(shape.width);  // rows, x, norm
  plan.spec.cost = {.forward_flops = (tables - 1) * elements,
                    .input_flops = 0,
                    .weight_flops = tables * elements,
                    .saved_bytes = slot_bytes<Saved>(shape, spec),
                    .grad_bytes = slot_bytes<Grads>(shape, spec),
                    .forward_moved = moved,
                    .input_moved = 2 * moved,
                    .dropped = shape.dropout > 0 ? elements : 0,
                    .forward_sum = shape.moved(shape.width)};
  plan.describe = [spec](GraphBuilder& graph, const std::string& /*x*/) {
    return describe_embedding(graph, spec);
  };
  plan.make = [shape, spec](Backend& backend) {
    return std::make_unique<Embedding>(shape, spec, backend);
  };
  return plan;
}

}  // namespace concertina
