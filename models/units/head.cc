#include "models/units/head.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "models/slots.h"
#include "models/units/embedding.h"
#include "models/units/pre_norm.h"

namespace concertina {
namespace {

enum Parameter { kWte = PreNorm::kParameters, kParameters };
enum Read { kTargets };

struct Saved : PreNorm::Kept {
  View logits, row_loss;  // [R,V], [R]
  static auto slots(const UnitShape& s, std::int64_t vocabulary) {
    return std::array{Slot<Saved>{&Saved::h, s.elements(1), s.compute},
                      Slot<Saved>{&Saved::mean, s.rows(), DType::f32},
                      Slot<Saved>{&Saved::rstd, s.rows(), DType::f32},
                      Slot<Saved>{&Saved::logits, s.rows() * vocabulary, s.compute},
                      Slot<Saved>{&Saved::row_loss, s.rows(), DType::f32}};
  }
};

struct Grads {
  View dh;  // [R,C]: all that W needs
  static auto slots(const UnitShape& s) {
    return std::array{Slot{&Grads::dh, s.elements(1), s.compute}};
  }
};

/// Logits decide the loss, and their table is also the embedding: fp8 leaves both in the storage
/// type (Micikevicius et al. 2022; Peng et al. 2023, FP8-LM).
Products head_products(const UnitShape& shape) {
  return shape.products == Products::fp8 ? Products::as_stored : shape.products;
}

class Head final : public Unit {
 public:
  Head(const UnitShape& shape, std::int64_t vocabulary, Backend& backend)
      : shape_(shape),
        vocabulary_(vocabulary),
        backend_(backend),
        norm_(backend),
        head_(backend.linear(
            {shape.rows(), shape.width, vocabulary, true, shape.compute, head_products(shape)})) {}

  UnitMemory memory() const override {
    return {slot_bytes<Saved>(shape_, vocabulary_), slot_bytes<Grads>(shape_),
            align_up(head_->packed_bytes())};
  }

  void attach(std::span<const View> parameters, void* packed) override {
    CONCERTINA_CHECK(parameters.size() == kParameters, "{} parameters", parameters.size());
    std::copy(parameters.begin(), parameters.end(), weights_.begin());
    norm_.attach(parameters);
    packed_ = packed;
  }

  void pack() override {
    backend_.run(PackWeights{.map = *head_, .weight = weights_[kWte], .packed = packed_});
  }
  bool packs(std::size_t parameter) const override { return parameter == kWte; }

  void forward(const UnitIo& io) override {
    const Saved s = slots_in<Saved>(io.saved, shape_, vocabulary_);
    norm_.forward(io, s);
    backend_.run(LinearForward{.map = *head_, .x = s.h, .packed = packed_, .y = s.logits});
    backend_.run(CrossEntropy{.logits = s.logits,
                              .targets = io.fields[kTargets],
                              .loss_scale = io.loss_scale,
                              .training = io.training,
                              .row_loss = s.row_loss});
  }

  void backward_input(const UnitIo& io) override {
    const Saved s = slots_in<Saved>(io.saved, shape_, vocabulary_);
    const View dh = slots_in<Grads>(io.grads, shape_).dh;
    backend_.run(LinearInput{.map = *head_, .dy = s.logits, .packed = packed_, .dx = dh});
    norm_.backward_input(io, s, dh, {});
  }

  void backward_weight(const UnitIo& io, std::span<const UnitGradient> gradients) override {
    const Saved s = slots_in<Saved>(io.saved, shape_, vocabulary_);
    if (!gradients[kWte].view.empty())
      backend_.run(LinearWeight{.map = *head_,
                                .x = s.h,
                                .dy = s.logits,
                                .dweight = gradients[kWte].view,
                                .accumulate = gradients[kWte].accumulate});
    norm_.backward_weight(io, s, slots_in<Grads>(io.grads, shape_).dh, gradients);
  }

  UnitResult result(void* saved) const override {
    const Saved s = slots_in<Saved>(saved, shape_, vocabulary_);
    return {s.row_loss, s.logits};
  }

 private:
  UnitShape shape_;
  std::int64_t vocabulary_;
  Backend& backend_;
  PreNorm norm_;
  std::unique_ptr<Linear> head_;
  std::array<View, kParameters> weights_;
  void* packed_ = nullptr;
};

}  // namespace

UnitSpec head_spec(std::string name, const UnitShape& shape, std::int64_t vocabulary, float std) {
  const double product = 2 * static_cast<double>(shape.rows()) * static_cast<double>(shape.width) *
                         static_cast<double>(vocabulary);
  UnitSpec spec{
      std::move(name),
      {},
      {product, product, product, slot_bytes<Saved>(shape, vocabulary), slot_bytes<Grads>(shape)}};
  spec.reads = {text_fields(shape.tokens)[1]};
  spec.parameters = PreNorm::parameters(shape.width);
  spec.parameters.insert(spec.parameters.end(), {token_table(vocabulary, shape.width, std)});
  return spec;
}

std::unique_ptr<Unit> make_head(const UnitShape& shape, std::int64_t vocabulary, Backend& backend) {
  return std::make_unique<Head>(shape, vocabulary, backend);
}

}  // namespace concertina
