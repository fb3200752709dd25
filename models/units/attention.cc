#include "models/units/attention.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "models/slots.h"
#include "models/units/dropout.h"
#include "models/units/pre_norm.h"

namespace concertina {
namespace {

enum Parameter { kQkvWeight = PreNorm::kParameters, kQkvBias, kProjWeight, kProjBias, kParameters };

struct Saved : PreNorm::Kept {
  View qkv, y, lse;  // [R,3C], [R,C], [samples,H,T]
  static auto slots(const UnitShape& s, std::int64_t heads) {
    return std::array{Slot<Saved>{&Saved::h, s.elements(1), s.compute},
                      Slot<Saved>{&Saved::mean, s.rows(), DType::f32},
                      Slot<Saved>{&Saved::rstd, s.rows(), DType::f32},
                      Slot<Saved>{&Saved::qkv, s.elements(3), s.compute},
                      Slot<Saved>{&Saved::y, s.elements(1), s.compute},
                      Slot<Saved>{&Saved::lse, s.rows() * heads, DType::f32}};
  }
};

struct Grads {
  View dqkv, dh, dropped;  // [R,3C], [R,C], see Dropout::elements()
  static auto slots(const UnitShape& s) {
    return std::array{Slot{&Grads::dqkv, s.elements(3), s.compute},
                      Slot{&Grads::dh, s.elements(1), s.compute},
                      Slot{&Grads::dropped, Dropout::elements(s), s.compute}};
  }
};

class AttentionBlock final : public Unit {
 public:
  AttentionBlock(const UnitShape& shape, std::int64_t heads, Backend& backend)
      : shape_(shape),
        heads_(heads),
        backend_(backend),
        norm_(backend),
        dropout_(shape, backend),
        qkv_(backend.linear(shape.linear(shape.width, 3 * shape.width))),
        proj_(backend.linear(shape.linear(shape.width, shape.width))),
        attention_(backend.attention(
            {shape.samples, shape.tokens, heads, shape.width / heads, shape.compute})) {}

  UnitMemory memory() const override {
    return {slot_bytes<Saved>(shape_, heads_), slot_bytes<Grads>(shape_),
            align_up(qkv_->packed_bytes()) + align_up(proj_->packed_bytes())};
  }

  void attach(std::span<const View> parameters, void* packed) override {
    CONCERTINA_CHECK(parameters.size() == kParameters, "{} parameters", parameters.size());
    std::copy(parameters.begin(), parameters.end(), weights_.begin());
    norm_.attach(parameters);
    packed_qkv_ = packed;
    packed_proj_ = static_cast<std::byte*>(packed) + align_up(qkv_->packed_bytes());
  }

  void pack() override {
    backend_.run(PackWeights{.map = *qkv_, .weight = weights_[kQkvWeight], .packed = packed_qkv_});
    backend_.run(
        PackWeights{.map = *proj_, .weight = weights_[kProjWeight], .packed = packed_proj_});
  }
  bool packs(std::size_t parameter) const override {
    return parameter == kQkvWeight || parameter == kProjWeight;
  }

  void forward(const UnitIo& io) override {
    const Saved s = slots_in<Saved>(io.saved, shape_, heads_);
    norm_.forward(io, s);
    backend_.run(LinearForward{
        .map = *qkv_, .x = s.h, .packed = packed_qkv_, .bias = weights_[kQkvBias], .y = s.qkv});
    backend_.run(AttentionForward{.attention = *attention_, .qkv = s.qkv, .y = s.y, .lse = s.lse});
    dropout_.forward(io, *proj_, s.y, packed_proj_, weights_[kProjBias]);
  }

  void backward_input(const UnitIo& io) override {
    const Saved s = slots_in<Saved>(io.saved, shape_, heads_);
    const Grads g = slots_in<Grads>(io.grads, shape_);
    const View dy = g.dh;  // scratch until its own value is known
    backend_.run(LinearInput{
        .map = *proj_, .dy = dropout_.backward(io, g.dropped), .packed = packed_proj_, .dx = dy});
    backend_.run(AttentionBackward{
        .attention = *attention_, .dy = dy, .qkv = s.qkv, .y = s.y, .lse = s.lse, .dqkv = g.dqkv});
    backend_.run(LinearInput{.map = *qkv_, .dy = g.dqkv, .packed = packed_qkv_, .dx = g.dh});
    norm_.backward_input(io, s, g.dh, io.output_grad);
  }

  void backward_weight(const UnitIo& io, std::span<const UnitGradient> gradients) override {
    const Saved s = slots_in<Saved>(io.saved, shape_, heads_);
    const Grads g = slots_in<Grads>(io.grads, shape_);
    const bool accumulate = gradients.front().accumulate;
    backend_.run(LinearWeight{.map = *proj_,
                              .x = s.y,
                              .dy = dropout_.gradient(io, g.dropped),
                              .dweight = gradients[kProjWeight].view,
                              .dbias = gradients[kProjBias].view,
                              .accumulate = accumulate});
    backend_.run(LinearWeight{.map = *qkv_,
                              .x = s.h,
                              .dy = g.dqkv,
                              .dweight = gradients[kQkvWeight].view,
                              .dbias = gradients[kQkvBias].view,
                              .accumulate = accumulate});
    norm_.backward_weight(io, s, g.dh, gradients);
  }

  UnitResult result(void*) const override { return {}; }

 private:
  UnitShape shape_;
  std::int64_t heads_;
  Backend& backend_;
  PreNorm norm_;
  Dropout dropout_;
  std::unique_ptr<Linear> qkv_, proj_;
  std::unique_ptr<Attention> attention_;
  std::array<View, kParameters> weights_;
  void* packed_qkv_ = nullptr;
  void* packed_proj_ = nullptr;
};

/// Matrix products over [R,C] x [C,4C] in all, and the pairs (query, key <= query) of the causal
/// mask: two products a pair forward (q k^T, p v), five backward (q k^T again, dp, dv, dq, dk).
UnitCost attention_cost(const UnitShape& shape, std::int64_t heads) {
  const auto rows = static_cast<double>(shape.rows()), width = static_cast<double>(shape.width);
  const double linear = 2 * rows * 4 * width * width;
  const double pairs = rows * (static_cast<double>(shape.tokens) + 1) / 2;
  const double product = 2 * pairs * width;
  return {linear + 2 * product, linear + 5 * product, linear, slot_bytes<Saved>(shape, heads),
          slot_bytes<Grads>(shape)};
}

}  // namespace

UnitSpec attention_spec(std::string name, const UnitShape& shape, std::int64_t heads, float std,
                        float residual_std) {
  const std::int64_t width = shape.width;
  UnitSpec spec{std::move(name), {}, attention_cost(shape, heads)};
  spec.parameters = PreNorm::parameters(width);
  spec.parameters.insert(
      spec.parameters.end(),
      {
          {"qkv.weight", {width, 3 * width}, true, {Init::Kind::normal, std}, ""},
          {"qkv.bias", {3 * width}, false, {Init::Kind::zeros}, ""},
          {"proj.weight", {width, width}, true, {Init::Kind::normal, residual_std}, ""},
          {"proj.bias", {width}, false, {Init::Kind::zeros}, ""},
      });
  return spec;
}

std::unique_ptr<Unit> make_attention(const UnitShape& shape, std::int64_t heads, Backend& backend) {
  return std::make_unique<AttentionBlock>(shape, heads, backend);
}

}  // namespace concertina
