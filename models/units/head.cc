#include "models/units/head.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "models/units/embedding.h"

namespace concertina {
namespace {

enum Parameter { kLnWeight, kLnBias, kWte, kParameters };
enum Read { kTargets };

struct Saved {
  View h, mean, rstd, logits, row_loss;  // [R,C], [R], [R], [R,V], [R]
  std::size_t bytes;
};

Saved carve_saved(const UnitShape& shape, std::int64_t vocabulary, void* memory) {
  Carver carver(memory);
  const std::int64_t rows = shape.rows();
  Saved saved{.h = carver.take(rows * shape.width, shape.compute),
              .mean = carver.take(rows, DType::f32),
              .rstd = carver.take(rows, DType::f32),
              .logits = carver.take(rows * vocabulary, shape.compute),
              .row_loss = carver.take(rows, DType::f32),
              .bytes = 0};
  saved.bytes = carver.bytes();
  return saved;
}

/// dh[R,C] is all that W needs.
std::size_t grad_bytes(const UnitShape& shape) {
  return align_up(shape.activation_bytes());
}

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
        head_(backend.linear(
            {shape.rows(), shape.width, vocabulary, true, shape.compute, head_products(shape)})) {}

  UnitMemory memory() const override {
    return {carve_saved(shape_, vocabulary_, nullptr).bytes, grad_bytes(shape_),
            align_up(head_->packed_bytes())};
  }

  void attach(std::span<const View> parameters, void* packed) override {
    CONCERTINA_CHECK(parameters.size() == kParameters, "{} parameters", parameters.size());
    std::copy(parameters.begin(), parameters.end(), weights_.begin());
    packed_ = packed;
  }

  void pack() override {
    backend_.run(PackWeights{.map = *head_, .weight = weights_[kWte], .packed = packed_});
  }
  bool packs(std::size_t parameter) const override { return parameter == kWte; }

  void forward(const UnitIo& io) override {
    const Saved s = carve_saved(shape_, vocabulary_, io.saved);
    backend_.run(LayerNorm{.x = io.input,
                           .gamma = weights_[kLnWeight],
                           .beta = weights_[kLnBias],
                           .y = s.h,
                           .mean = s.mean,
                           .rstd = s.rstd});
    backend_.run(LinearForward{.map = *head_, .x = s.h, .packed = packed_, .y = s.logits});
    backend_.run(CrossEntropy{.logits = s.logits,
                              .targets = io.fields[kTargets],
                              .loss_scale = io.loss_scale,
                              .training = io.training,
                              .row_loss = s.row_loss});
  }

  void backward_input(const UnitIo& io) override {
    const Saved s = carve_saved(shape_, vocabulary_, io.saved);
    const View dh = grad_view(io.grads);
    backend_.run(LinearInput{.map = *head_, .dy = s.logits, .packed = packed_, .dx = dh});
    if (!io.input_grad.empty())
      backend_.run(LayerNormInput{.dy = dh,
                                  .x = io.input,
                                  .gamma = weights_[kLnWeight],
                                  .mean = s.mean,
                                  .rstd = s.rstd,
                                  .dx = io.input_grad});
  }

  void backward_weight(const UnitIo& io, std::span<const UnitGradient> gradients) override {
    const Saved s = carve_saved(shape_, vocabulary_, io.saved);
    if (!gradients[kWte].view.empty())
      backend_.run(LinearWeight{.map = *head_,
                                .x = s.h,
                                .dy = s.logits,
                                .dweight = gradients[kWte].view,
                                .accumulate = gradients[kWte].accumulate});
    backend_.run(LayerNormWeight{.dy = grad_view(io.grads),
                                 .x = io.input,
                                 .mean = s.mean,
                                 .rstd = s.rstd,
                                 .dgamma = gradients[kLnWeight].view,
                                 .dbeta = gradients[kLnBias].view,
                                 .accumulate = gradients[kLnWeight].accumulate});
  }

  UnitResult result(void* saved) const override {
    const Saved s = carve_saved(shape_, vocabulary_, saved);
    return {s.row_loss, s.logits};
  }

 private:
  View grad_view(void* grads) const { return {grads, shape_.activation(), shape_.compute}; }

  UnitShape shape_;
  std::int64_t vocabulary_;
  Backend& backend_;
  std::unique_ptr<Linear> head_;
  std::array<View, kParameters> weights_;
  void* packed_ = nullptr;
};

}  // namespace

UnitSpec head_spec(std::string name, const UnitShape& shape, std::int64_t vocabulary, float std) {
  const double product = 2 * static_cast<double>(shape.rows()) * static_cast<double>(shape.width) *
                         static_cast<double>(vocabulary);
  UnitSpec spec{std::move(name),
                {},
                {product, product, product, carve_saved(shape, vocabulary, nullptr).bytes,
                 grad_bytes(shape)}};
  spec.reads = {text_fields(shape.tokens)[1]};
  spec.parameters = {{"ln.weight", {shape.width}, false, {Init::Kind::ones}, ""},
                     {"ln.bias", {shape.width}, false, {Init::Kind::zeros}, ""},
                     token_table(vocabulary, shape.width, std)};
  return spec;
}

std::unique_ptr<Unit> make_head(const UnitShape& shape, std::int64_t vocabulary, Backend& backend) {
  return std::make_unique<Head>(shape, vocabulary, backend);
}

}  // namespace concertina
