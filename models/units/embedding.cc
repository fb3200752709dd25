#include "models/units/embedding.h"

#include <array>

#include "core/error.h"
#include "models/slots.h"
#include "models/units/dropout.h"

namespace concertina {
namespace {

enum Parameter { kWte, kWpe, kParameters };
enum Read { kTokens };

struct Grads {
  View dropped;  // see Dropout::elements()
  static auto slots(const UnitShape& s) {
    return std::array{Slot{&Grads::dropped, Dropout::elements(s), s.compute}};
  }
};

class Embedding final : public Unit {
 public:
  Embedding(const UnitShape& shape, Backend& backend)
      : shape_(shape), backend_(backend), dropout_(shape, backend) {}

  UnitMemory memory() const override {
    return {.saved_bytes = 0, .grad_bytes = slot_bytes<Grads>(shape_), .packed_bytes = 0};
  }

  void attach(std::span<const View> parameters, void*) override {
    CONCERTINA_CHECK(parameters.size() == kParameters, "{} parameters", parameters.size());
    wte_ = parameters[kWte];
    wpe_ = parameters[kWpe];
  }

  void pack() override {}
  bool packs(std::size_t /*parameter*/) const override { return false; }

  void forward(const UnitIo& io) override {
    backend_.run(Embed{.tokens = io.fields[kTokens],
                       .wte = wte_,
                       .wpe = wpe_,
                       .t = shape_.tokens,
                       .x = io.output});
    dropout_.forward(io);
  }

  void backward_input(const UnitIo& io) override { dropout_.backward(io, dropped(io)); }

  void backward_weight(const UnitIo& io, std::span<const UnitGradient> gradients) override {
    CONCERTINA_CHECK(gradients[kWte].accumulate == gradients[kWpe].accumulate,
                     "both tables start a leaf of the gradient sum at the same microbatch");
    backend_.run(EmbedWeight{.tokens = io.fields[kTokens],
                             .dx = dropout_.gradient(io, dropped(io)),
                             .t = shape_.tokens,
                             .dwte = gradients[kWte].view,
                             .dwpe = gradients[kWpe].view,
                             .accumulate = gradients[kWte].accumulate});
  }

  UnitResult result(void*) const override { return {}; }

 private:
  View dropped(const UnitIo& io) const { return slots_in<Grads>(io.grads, shape_).dropped; }

  UnitShape shape_;
  Backend& backend_;
  Dropout dropout_;
  View wte_, wpe_;
};

}  // namespace

ParameterSpec token_table(std::int64_t vocabulary, std::int64_t width, float std) {
  return {"wte", {vocabulary, width}, true, {Init::Kind::normal, std}, "wte"};
}

UnitSpec embedding_spec(std::string name, const UnitShape& shape, std::int64_t vocabulary,
                        float std) {
  UnitSpec spec{std::move(name), {}, {}};
  spec.parameters = {token_table(vocabulary, shape.width, std),
                     {"wpe", {shape.tokens, shape.width}, true, {Init::Kind::normal, std}, ""}};
  spec.reads = {text_fields(shape.tokens)[0]};
  const auto additions = static_cast<double>(shape.rows()) * static_cast<double>(shape.width);
  spec.cost = {.forward_flops = additions,
               .input_flops = 0,
               .weight_flops = 2 * additions,
               .saved_bytes = 0,
               .grad_bytes = slot_bytes<Grads>(shape)};
  return spec;
}

std::unique_ptr<Unit> make_embedding(const UnitShape& shape, Backend& backend) {
  return std::make_unique<Embedding>(shape, backend);
}

}  // namespace concertina
