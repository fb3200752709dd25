#include "models/units/mlp.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "models/slots.h"
#include "models/units/dropout.h"
#include "models/units/pre_norm.h"

namespace concertina {
namespace {

enum Parameter { kUpWeight = PreNorm::kParameters, kUpBias, kDownWeight, kDownBias, kParameters };

struct Saved : PreNorm::Kept {
  View g, aux;  // [R,4C], [R,4C] (what gelu's gradient needs)
  static auto slots(const UnitShape& s) {
    return std::array{Slot<Saved>{&Saved::h, s.elements(1), s.compute},
                      Slot<Saved>{&Saved::mean, s.rows(), DType::f32},
                      Slot<Saved>{&Saved::rstd, s.rows(), DType::f32},
                      Slot<Saved>{&Saved::g, s.elements(4), s.compute},
                      Slot<Saved>{&Saved::aux, s.elements(4), s.compute}};
  }
};

struct Grads {
  View du, dh, dropped;  // [R,4C], [R,C], see Dropout::elements()
  static auto slots(const UnitShape& s) {
    return std::array{Slot{&Grads::du, s.elements(4), s.compute},
                      Slot{&Grads::dh, s.elements(1), s.compute},
                      Slot{&Grads::dropped, Dropout::elements(s), s.compute}};
  }
};

class MlpBlock final : public Unit {
 public:
  MlpBlock(const UnitShape& shape, Backend& backend)
      : shape_(shape),
        backend_(backend),
        norm_(backend),
        dropout_(shape, backend),
        up_(backend.linear(shape.linear(shape.width, 4 * shape.width))),
        down_(backend.linear(shape.linear(4 * shape.width, shape.width))) {}

  UnitMemory memory() const override {
    return {slot_bytes<Saved>(shape_), slot_bytes<Grads>(shape_),
            align_up(up_->packed_bytes()) + align_up(down_->packed_bytes())};
  }

  void attach(std::span<const View> parameters, void* packed) override {
    CONCERTINA_CHECK(parameters.size() == kParameters, "{} parameters", parameters.size());
    std::copy(parameters.begin(), parameters.end(), weights_.begin());
    norm_.attach(parameters);
    packed_up_ = packed;
    packed_down_ = static_cast<std::byte*>(packed) + align_up(up_->packed_bytes());
  }

  void pack() override {
    backend_.run(PackWeights{.map = *up_, .weight = weights_[kUpWeight], .packed = packed_up_});
    backend_.run(
        PackWeights{.map = *down_, .weight = weights_[kDownWeight], .packed = packed_down_});
  }
  bool packs(std::size_t parameter) const override {
    return parameter == kUpWeight || parameter == kDownWeight;
  }

  void forward(const UnitIo& io) override {
    const Saved s = slots_in<Saved>(io.saved, shape_);
    norm_.forward(io, s);
    backend_.run(LinearForward{.map = *up_,
                               .x = s.h,
                               .packed = packed_up_,
                               .bias = weights_[kUpBias],
                               .epilogue = {Epilogue::Kind::gelu, s.aux},
                               .y = s.g});
    dropout_.forward(io, *down_, s.g, packed_down_, weights_[kDownBias]);
  }

  void backward_input(const UnitIo& io) override {
    const Saved s = slots_in<Saved>(io.saved, shape_);
    const Grads g = slots_in<Grads>(io.grads, shape_);
    backend_.run(LinearInput{.map = *down_,
                             .dy = dropout_.backward(io, g.dropped),
                             .packed = packed_down_,
                             .epilogue = {Epilogue::Kind::gelu, s.aux},
                             .dx = g.du});
    backend_.run(LinearInput{.map = *up_, .dy = g.du, .packed = packed_up_, .dx = g.dh});
    norm_.backward_input(io, s, g.dh, io.output_grad);
  }

  void backward_weight(const UnitIo& io, std::span<const UnitGradient> gradients) override {
    const Saved s = slots_in<Saved>(io.saved, shape_);
    const Grads g = slots_in<Grads>(io.grads, shape_);
    const bool accumulate = gradients.front().accumulate;
    backend_.run(LinearWeight{.map = *down_,
                              .x = s.g,
                              .dy = dropout_.gradient(io, g.dropped),
                              .dweight = gradients[kDownWeight].view,
                              .dbias = gradients[kDownBias].view,
                              .accumulate = accumulate});
    backend_.run(LinearWeight{.map = *up_,
                              .x = s.h,
                              .dy = g.du,
                              .dweight = gradients[kUpWeight].view,
                              .dbias = gradients[kUpBias].view,
                              .accumulate = accumulate});
    norm_.backward_weight(io, s, g.dh, gradients);
  }

  UnitResult result(void*) const override { return {}; }

 private:
  UnitShape shape_;
  Backend& backend_;
  PreNorm norm_;
  Dropout dropout_;
  std::unique_ptr<Linear> up_, down_;
  std::array<View, kParameters> weights_;
  void* packed_up_ = nullptr;
  void* packed_down_ = nullptr;
};

}  // namespace

UnitSpec mlp_spec(std::string name, const UnitShape& shape, float std, float residual_std) {
  const std::int64_t width = shape.width;
  const double product =
      2 * static_cast<double>(shape.rows()) * 8 * static_cast<double>(width) * double(width);
  UnitSpec spec{std::move(name),
                {},
                {product, product, product, slot_bytes<Saved>(shape), slot_bytes<Grads>(shape)}};
  spec.parameters = PreNorm::parameters(width);
  spec.parameters.insert(
      spec.parameters.end(),
      {
          {"up.weight", {width, 4 * width}, true, {Init::Kind::normal, std}, ""},
          {"up.bias", {4 * width}, false, {Init::Kind::zeros}, ""},
          {"down.weight", {4 * width, width}, true, {Init::Kind::normal, residual_std}, ""},
          {"down.bias", {width}, false, {Init::Kind::zeros}, ""},
      });
  return spec;
}

std::unique_ptr<Unit> make_mlp(const UnitShape& shape, Backend& backend) {
  return std::make_unique<MlpBlock>(shape, backend);
}

}  // namespace concertina
