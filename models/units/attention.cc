#include "models/units/attention.h"

#include <array>
#include <optional>

#include "models/units/dense.h"
#include "models/units/graphs.h"
#include "models/units/slots.h"

namespace concertina {
namespace {

enum Read { kLengths, kStarts = kLengths };  // mutually exclusive

AttentionShape attention_shape(const UnitShape& s, const AttentionSpec& spec) {
  return {.samples = s.samples,
          .tokens = s.tokens,
          .heads = spec.heads,
          .head_dim = spec.head_dim > 0 ? spec.head_dim : s.width / spec.heads,
          .compute = s.compute,
          .kv_heads = spec.kv_heads,
          .causal = spec.causal,
          .padded = spec.padded,
          .drops = s.attention_dropout > 0,
          .packed = s.packed,
          .capacity = s.capacity};
}

RotarySpec rotary_of(const AttentionShape& shape, RotarySpec rotary) {
  if (rotary.columns == 0) rotary.columns = shape.head_dim;
  return rotary;
}

NormSpec head_norm(const AttentionSpec& spec, std::string name) {
  return {.kind = NormSpec::Kind::rms, .eps = *spec.norm_eps, .name = std::move(name)};
}

/// `q` and `k` are the inputs of the head norms, if there are any.
struct Saved {
  View qkv, y, lse;           // [R,(H+2K)D] after norm and rotation, [R,HD], [samples,H,T]
  View q, q_rstd, k, k_rstd;  // [R,HD], [R,H], [R,KD], [R,K]
  static auto slots(const UnitShape& s, const AttentionSpec& spec) {
    const AttentionShape shape = attention_shape(s, spec);
    const std::int64_t normed = spec.norm_eps ? s.rows() : 0;
    return std::array{Slot{&Saved::qkv, s.rows() * shape.qkv_width(), s.compute},
                      Slot{&Saved::y, s.rows() * shape.width(), s.compute},
                      Slot{&Saved::lse, s.rows() * spec.heads, DType::f32},
                      Slot{&Saved::q, normed * shape.width(), s.compute},
                      Slot{&Saved::q_rstd, normed * shape.heads, DType::f32},
                      Slot{&Saved::k, normed * shape.kv_width(), s.compute},
                      Slot{&Saved::k_rstd, normed * shape.kv(), DType::f32}};
  }
};

/// `dq` and `dk` are the gradients of the outputs of the head norms; `adapter` is scratch of W.
struct Grads {
  View dqkv, dq, dk, adapter;  // [R,(H+2K)D], [R,HD], [R,KD], see Adapter
  static auto slots(const UnitShape& s, const AttentionSpec& spec) {
    const AttentionShape shape = attention_shape(s, spec);
    const std::int64_t normed = spec.norm_eps ? s.rows() : 0;
    return std::array{Slot{&Grads::dqkv, s.rows() * shape.qkv_width(), s.compute},
                      Slot{&Grads::dq, normed * shape.width(), s.compute},
                      Slot{&Grads::dk, normed * shape.kv_width(), s.compute},
                      Slot{&Grads::adapter, s.lora.scratch({"qkv", "proj"}, s.rows()), s.compute}};
  }
};

DenseSpec qkv_spec(const UnitShape& s, const AttentionSpec& spec) {
  const AttentionShape heads = attention_shape(s, spec);
  return {.name = "qkv",
          .in = s.width,
          .out = heads.qkv_width(),
          .std = spec.std,
          .bias = spec.qkv_bias,
          .matrices = {heads.width(), heads.kv_width(), heads.kv_width()},
          .split = DenseSpec::Split::columns,
          .adapter = s.lora.of("qkv")};
}
DenseSpec proj_spec(const UnitShape& s, const AttentionSpec& spec) {
  return {.name = "proj",
          .in = attention_shape(s, spec).width(),
          .out = s.width,
          .std = spec.residual_std,
          .bias = spec.proj_bias,
          .matrices = {s.width},
          .split = DenseSpec::Split::rows,
          .adapter = s.lora.of("proj")};
}

/// Rotates q and k in place. The rotation table is stored with the packed weights.
class Rotary final : public UnitPart {
 public:
  Rotary(const AttentionShape& shape, std::int64_t positions, const RotarySpec& spec,
         Backend& backend)
      : shape_(shape), positions_(positions), spec_(rotary_of(shape, spec)), backend_(backend) {}

  std::size_t parameters() const override { return 0; }
  std::size_t packed_bytes() const override {
    return spec_.turns() ? table_elements() * sizeof(float) : 0;
  }
  /// Computes the table once; updates do not change it.
  void attach(std::span<const View> /*weights*/, void* packed) override {
    if (!spec_.turns()) return;
    table_ = {packed, table_elements(), DType::f32};
    backend_.run(RotaryTable{.spec = spec_, .table = table_, .tokens = positions_});
  }

  /// `inverse` is used for gradients.
  void rotate(View qkv, bool inverse, View starts) const {
    if (!spec_.turns()) return;
    backend_.run(Rotate{.x = qkv,
                        .table = table_,
                        .stride = shape_.qkv_width(),
                        .heads = shape_.heads + shape_.kv(),
                        .head_dim = shape_.head_dim,
                        .columns = spec_.columns,
                        .tokens = shape_.tokens,
                        .inverse = inverse,
                        .starts = starts});
  }

 private:
  std::size_t table_elements() const {
    return static_cast<std::size_t>(positions_ * spec_.columns);
  }

  AttentionShape shape_;
  std::int64_t positions_;
  RotarySpec spec_;
  Backend& backend_;
  View table_;
};

/// The norms of the q and k heads (Qwen3). They need contiguous heads, so these columns of qkv are
/// copied out and back.
class HeadNorms {
 public:
  HeadNorms(const AttentionShape& shape, const AttentionSpec& spec, Backend& backend)
      : shape_(shape),
        backend_(backend),
        q_(head_norm(spec, "q_norm"), backend),
        k_(head_norm(spec, "k_norm"), backend) {}

  std::array<UnitPart*, 2> parts() { return {&q_, &k_}; }

  /// Operates in place on s.qkv, with s.y as scratch.
  void forward(const Saved& s) const {
    norm(q_, {.mean = {}, .rstd = s.q_rstd}, 0, s.q, s);
    norm(k_, {.mean = {}, .rstd = s.k_rstd}, shape_.width(), s.k, s);
  }
  /// Operates in place on g.dqkv, with `scratch` [R,HD].
  void backward_input(const Saved& s, const Grads& g, View scratch) const {
    gradient(q_, {.mean = {}, .rstd = s.q_rstd}, 0, s.q, g.dq, g.dqkv, scratch);
    gradient(k_, {.mean = {}, .rstd = s.k_rstd}, shape_.width(), s.k, g.dk, g.dqkv, scratch);
  }
  void backward_weight(const Saved& s, const Grads& g,
                       std::span<const UnitGradient> gradients) const {
    q_.backward_weight(g.dq, s.q, {.mean = {}, .rstd = s.q_rstd}, gradients);
    k_.backward_weight(g.dk, s.k, {.mean = {}, .rstd = s.k_rstd}, gradients);
  }

 private:
  void norm(const Norm& norm, const NormStatistics& kept, std::int64_t column, View x,
            const Saved& s) const {
    const View y = s.y.slice(0, x.count);
    backend_.run(columns_out(s.qkv, column, x));
    norm.forward(x, kept, y);
    backend_.run(columns_in(y, column, s.qkv));
  }
  void gradient(const Norm& norm, const NormStatistics& kept, std::int64_t column, View x, View dy,
                View dqkv, View scratch) const {
    const View dx = scratch.slice(0, x.count);
    backend_.run(columns_out(dqkv, column, dy));
    norm.backward_input(dy, x, kept, {}, dx);
    backend_.run(columns_in(dx, column, dqkv));
  }

  std::int64_t rows() const { return shape_.samples * shape_.tokens; }
  CopyColumns columns_out(View qkv, std::int64_t column, View out) const {
    const std::int64_t columns = static_cast<std::int64_t>(out.count) / rows();
    return {qkv, shape_.qkv_width(), column, out, columns, 0, columns};
  }
  CopyColumns columns_in(View in, std::int64_t column, View qkv) const {
    const std::int64_t columns = static_cast<std::int64_t>(in.count) / rows();
    return {in, columns, 0, qkv, shape_.qkv_width(), column, columns};
  }

  AttentionShape shape_;
  Backend& backend_;
  Norm q_, k_;
};

class AttentionBranch final : public Branch {
 public:
  AttentionBranch(const UnitShape& shape, const AttentionSpec& spec, Backend& backend)
      : shape_(shape),
        spec_(spec),
        backend_(backend),
        qkv_(qkv_spec(shape, spec), shape.rows(), shape, backend),
        proj_(proj_spec(shape, spec), shape.rows(), shape, backend),
        rotary_(attention_shape(shape, spec), shape.positions(), spec.rotary, backend),
        attention_(backend.attention(attention_shape(shape, spec))) {
    if (spec.norm_eps) norms_.emplace(attention_shape(shape, spec), spec, backend);
  }

  std::vector<UnitPart*> parts() override {
    std::vector<UnitPart*> all{&qkv_, &proj_, &rotary_};
    if (norms_)
      for (UnitPart* part : norms_->parts()) all.push_back(part);
    return all;
  }

  void forward(const UnitIo& io, const BranchMemory& memory, View h, Epilogue last,
               View y) override {
    const Saved s = slots_in<Saved>(memory.saved, shape_, spec_);
    qkv_.forward(h, {}, s.qkv);
    if (norms_) norms_->forward(s);
    rotary_.rotate(s.qkv, false, starts(io));
    backend_.run(AttentionForward{.attention = *attention_,
                                  .qkv = s.qkv,
                                  .lengths = lengths(io),
                                  .y = s.y,
                                  .lse = s.lse,
                                  .mask = mask(io),
                                  .starts = starts(io),
                                  .cache = cache(io)});
    if (!y.empty()) proj_.forward(s.y, last, y);
  }

  void backward_input(const UnitIo& io, const BranchMemory& memory, View du, View scratch,
                      Epilogue last, View dh) override {
    const Saved s = slots_in<Saved>(memory.saved, shape_, spec_);
    const Grads g = slots_in<Grads>(memory.grads, shape_, spec_);
    proj_.backward_input(du, {}, scratch);
    backend_.run(AttentionBackward{.attention = *attention_,
                                   .dy = scratch,
                                   .qkv = s.qkv,
                                   .lengths = lengths(io),
                                   .y = s.y,
                                   .lse = s.lse,
                                   .dqkv = g.dqkv,
                                   .mask = mask(io),
                                   .starts = starts(io)});
    rotary_.rotate(g.dqkv, true, starts(io));
    if (norms_) norms_->backward_input(s, g, scratch);
    if (!dh.empty()) qkv_.backward_input(g.dqkv, last, dh);
  }

  void backward_weight(const UnitIo& /*io*/, const BranchMemory& memory, View h, View du,
                       std::span<const UnitGradient> gradients) override {
    const Saved s = slots_in<Saved>(memory.saved, shape_, spec_);
    const Grads g = slots_in<Grads>(memory.grads, shape_, spec_);
    proj_.backward_weight(s.y, du, gradients, g.adapter);
    qkv_.backward_weight(h, g.dqkv, gradients, g.adapter);
    if (norms_) norms_->backward_weight(s, g, gradients);
  }

 private:
  /// Empty in inference mode (models/units/dropout.h).
  DropoutMask mask(const UnitIo& io) const {
    if (!io.training || shape_.attention_dropout == 0) return {};
    return {shape_.attention_dropout, io.random, attention_->shape().mask_elements()};
  }
  View lengths(const UnitIo& io) const { return spec_.padded ? io.fields[kLengths] : View{}; }
  View starts(const UnitIo& io) const { return shape_.has_starts() ? io.fields[kStarts] : View{}; }
  View cache(const UnitIo& io) const {
    const auto elements = static_cast<std::size_t>(attention_->shape().cache_elements());
    return {io.cache, elements, shape_.compute};
  }

  UnitShape shape_;
  AttentionSpec spec_;
  Backend& backend_;
  Dense qkv_, proj_;
  Rotary rotary_;
  std::optional<HeadNorms> norms_;
  std::shared_ptr<Attention> attention_;
};

/// Counts operations for the products and the unmasked query-key pairs, and memory traffic for
/// splitting qkv into heads, merging them, and rotating queries and keys.
UnitCost cost_of(const UnitShape& shape, const AttentionSpec& spec) {
  const double qkv = qkv_spec(shape, spec).flops(shape.rows());
  const double linear = qkv + proj_spec(shape, spec).flops(shape.rows());
  AttentionShape heads = attention_shape(shape, spec);
  const double product = attention_product_flops(heads);
  heads.causal = false;
  const double full = attention_product_flops(heads);
  const std::int64_t turned = heads.width() + heads.kv_width();
  const std::int64_t again = (spec.rotary.turns() ? 1 : 0) + (spec.norm_eps ? 3 : 0);
  const double moved = shape.moved(2 * (heads.qkv_width() + again * turned));
  return {.forward_flops = linear + 2 * product,
          .input_flops = linear + 5 * product,
          .weight_flops = linear,
          .saved_bytes = slot_bytes<Saved>(shape, spec),
          .grad_bytes = slot_bytes<Grads>(shape, spec),
          .recompute_flops = qkv + 2 * product,
          .model_flops = linear + 2 * full,
          .adapter_flops = qkv_spec(shape, spec).adapter_flops(shape.rows()) +
                           proj_spec(shape, spec).adapter_flops(shape.rows()),
          .forward_moved = moved,
          .input_moved = 2 * moved,
          .scores = static_cast<double>(shape.rows()) * static_cast<double>(shape.tokens) *
                    static_cast<double>(spec.heads),
          .score_flops = product,
          .full_score_flops = full,
          .split = {.parts = heads.kv()}};
}

std::string describe_attention(GraphBuilder& graph, const UnitShape& shape,
                               const AttentionSpec& spec, const std::string& x) {
  const AttentionShape heads = attention_shape(shape, spec);
  const std::string qkv = qkv_spec(shape, spec).describe(graph, x);
  std::vector<NormSpec> norms;
  if (spec.norm_eps) norms = {head_norm(spec, "q_norm"), head_norm(spec, "k_norm")};
  return proj_spec(shape, spec)
      .describe(graph, describe_attention_products(graph, heads, rotary_of(heads, spec.rotary),
                                                   norms, qkv));
}

}  // namespace

BranchPlan attention_branch(const UnitShape& shape, const AttentionSpec& spec) {
  BranchPlan plan;
  for (const DenseSpec& dense : {qkv_spec(shape, spec), proj_spec(shape, spec)})
    append(plan.parameters, dense.parameters());
  const AttentionShape heads = attention_shape(shape, spec);
  if (spec.norm_eps)
    for (const char* name : {"q_norm", "k_norm"})
      append(plan.parameters, head_norm(spec, name).parameters(heads.head_dim));
  plan.scratch_columns = heads.width();
  CONCERTINA_CHECK(!shape.has_starts() || (spec.causal && !spec.padded),
                   "packed samples and caches require a causal model");
  if (spec.padded) plan.reads = {lengths_field()};
  if (shape.has_starts()) plan.reads = {starts_field(shape.tokens)};
  plan.cache_bytes = static_cast<std::size_t>(heads.cache_elements()) * size_of(shape.compute);
  plan.cost = cost_of(shape, spec);
  plan.make = [shape, spec](Backend& backend) {
    return std::make_unique<AttentionBranch>(shape, spec, backend);
  };
  plan.describe = [shape, spec](GraphBuilder& graph, const std::string& x) {
    return describe_attention(graph, shape, spec, x);
  };
  return plan;
}

}  // namespace concertina
