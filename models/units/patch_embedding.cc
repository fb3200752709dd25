#include "models/units/embedding.h"

#include <array>

#include "core/error.h"
#include "models/units/dense.h"
#include "models/units/dropout.h"
#include "models/units/slots.h"

namespace concertina {
namespace {

enum Read { kImage };

std::int64_t patch_rows(const UnitShape& s, const PatchEmbeddingSpec& spec) {
  return s.samples * spec.patches();
}

DenseSpec patch_spec(const UnitShape& s, const PatchEmbeddingSpec& spec) {
  return {.name = "patch",
          .in = spec.channels * spec.patch * spec.patch,
          .out = s.width,
          .std = spec.std};
}

struct Saved {
  View patches, x;  // [S N, channels P P], [S N,C]; x is not read after F
  static auto slots(const UnitShape& s, const PatchEmbeddingSpec& spec) {
    const std::int64_t rows = patch_rows(s, spec);
    return std::array{Slot{&Saved::patches, rows * patch_spec(s, spec).in, s.compute},
                      Slot{&Saved::x, rows * s.width, s.compute}};
  }
};

struct Grads {
  View dropped, dx;  // see Dropout::elements(); [S N,C]
  static auto slots(const UnitShape& s, const PatchEmbeddingSpec& spec) {
    return std::array{Slot{&Grads::dropped, Dropout::elements(s), s.compute},
                      Slot{&Grads::dx, patch_rows(s, spec) * s.width, s.compute}};
  }
};

enum Table { kClass, kPositions };

class PatchEmbedding final : public PartedUnit {
 public:
  PatchEmbedding(const UnitShape& shape, const PatchEmbeddingSpec& spec, Backend& backend)
      : shape_(shape),
        spec_(spec),
        backend_(backend),
        patch_(patch_spec(shape, spec), patch_rows(shape, spec), shape, backend),
        dropout_(shape, backend) {
    add_parts(std::array<UnitPart*, 2>{&patch_, &places_});
  }

  UnitMemory memory() const override {
    return with_parts(slot_bytes<Saved>(shape_, spec_), slot_bytes<Grads>(shape_, spec_));
  }

  void forward(const UnitIo& io) override {
    const Saved s = slots_in<Saved>(io.saved, shape_, spec_);
    backend_.run(ImagePatches{.image = io.fields[kImage],
                              .channels = spec_.channels,
                              .height = spec_.size,
                              .width = spec_.size,
                              .patch = spec_.patch,
                              .patches = s.patches});
    patch_.forward(s.patches, {}, s.x);
    backend_.run(
        JoinClass{.x = s.x, .cls = places_[kClass], .wpe = places_[kPositions], .y = io.output});
    if (dropout_.drops(io)) dropout_.forward(io, io.output, {}, io.output);
  }

  void backward_input(const UnitIo& io) override {
    const Grads g = slots_in<Grads>(io.grads, shape_, spec_);
    const View dy = dropout_.backward(io, io.output_grad, g.dropped);
    backend_.run(SplitClass{.dy = dy, .samples = shape_.samples, .dx = g.dx});
  }

  void backward_weight(const UnitIo& io, std::span<const UnitGradient> gradients) override {
    const Saved s = slots_in<Saved>(io.saved, shape_, spec_);
    const Grads g = slots_in<Grads>(io.grads, shape_, spec_);
    patch_.backward_weight(s.patches, g.dx, gradients);
    const UnitGradient cls = places_.gradient(gradients, kClass);
    backend_.run(JoinClassWeight{.dy = Dropout::gradient(io.output_grad, g.dropped),
                                 .dcls = cls.view,
                                 .dwpe = places_.gradient(gradients, kPositions).view,
                                 .accumulate = cls.accumulate});
  }

 private:
  UnitShape shape_;
  PatchEmbeddingSpec spec_;
  Backend& backend_;
  Dense patch_;
  Tables places_{{true, true}};
  Dropout dropout_;
};

std::string describe_patches(GraphBuilder& graph, const UnitShape& shape,
                             const PatchEmbeddingSpec& spec) {
  const std::int64_t side = spec.size / spec.patch, p = spec.patch;
  const DenseSpec map = patch_spec(shape, spec);
  const std::string image =
      graph.image_input("pixel_values", {spec.channels, spec.size, spec.size});
  const std::string cut =
      graph.add("Reshape", {image, graph.indices({-1, spec.channels, side, p, side, p})});
  const std::string sorted =
      graph.add("Transpose", {cut}, {{"perm", std::vector<std::int64_t>{0, 2, 4, 1, 3, 5}}});
  const std::string rows = map.describe(
      graph, graph.add("Reshape", {sorted, graph.indices({-1, spec.patches(), map.in})}));
  // The class token [C], expanded to [samples,1,C].
  const std::string samples =
      graph.add("Slice", {graph.add("Shape", {rows}), graph.indices({0}), graph.indices({1})});
  const std::string each =
      graph.add("Concat", {samples, graph.indices({1, shape.width})}, {{"axis", std::int64_t{0}}});
  const std::string cls = graph.add("Expand", {graph.parameter("cls"), each});
  const std::string x = graph.add("Concat", {cls, rows}, {{"axis", std::int64_t{1}}});
  return graph.add("Add", {x, graph.parameter("wpe")});
}

}  // namespace

UnitPlan patch_embedding(const UnitShape& shape, const PatchEmbeddingSpec& spec) {
  CONCERTINA_CHECK(shape.tokens == spec.patches() + 1, "{} tokens for {} patches", shape.tokens,
                   spec.patches());
  const Init init{Init::Kind::normal, spec.std};
  const double product = patch_spec(shape, spec).flops(patch_rows(shape, spec));
  // Traffic: copies pixels to patches; adds positions to mapped patches.
  const double moved = shape.moved(2 * patch_spec(shape, spec).in + 3 * shape.width);
  UnitPlan plan;
  plan.spec.parameters = patch_spec(shape, spec).parameters();
  plan.spec.parameters.push_back({"cls", {shape.width}, false, init, ""});
  plan.spec.parameters.push_back({"wpe", {shape.tokens, shape.width}, true, init, ""});
  plan.spec.reads = {image_field(spec.channels, spec.size, spec.size)};
  plan.spec.cost = {.forward_flops = product,
                    .input_flops = 0,
                    .weight_flops = product,
                    .saved_bytes = slot_bytes<Saved>(shape, spec),
                    .grad_bytes = slot_bytes<Grads>(shape, spec),
                    .model_flops = product,
                    .forward_moved = moved,
                    .input_moved = 2 * moved,
                    .dropped = shape.dropout > 0 ? static_cast<double>(shape.elements(1)) : 0};
  plan.describe = [shape, spec](GraphBuilder& graph, const std::string& /*x*/) {
    return describe_patches(graph, shape, spec);
  };
  plan.make = [shape, spec](Backend& backend) {
    return std::make_unique<PatchEmbedding>(shape, spec, backend);
  };
  return plan;
}

}  // namespace concertina
