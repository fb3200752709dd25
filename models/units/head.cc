#include "models/units/head.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.h"
#include "models/units/dropout.h"
#include "models/units/graphs.h"
#include "models/units/slots.h"

namespace concertina {
namespace {

enum Read { kTargets, kScores = kTargets, kStarts = kTargets, kEnds };

bool scores(HeadSpec::Loss loss) {
  return loss == HeadSpec::Loss::squares || loss == HeadSpec::Loss::binary;
}

/// Returns the shape of the rows that have a loss.
UnitShape loss_shape(UnitShape shape, const HeadSpec& spec) {
  shape = shape_of(spec.rows, shape);
  if (!spec.drops) shape.dropout = 0;
  return shape;
}

/// Excludes the logits from fp8: they determine the loss, and may share their table with the
/// embedding (Micikevicius et al. 2022; Peng et al. 2023, FP8-LM).
UnitShape without_fp8(UnitShape shape) {
  if (shape.products == Products::fp8) shape.products = Products::as_stored;
  return shape;
}

bool distills(const UnitShape& shape) {
  return shape.distillation.share > 0;
}

/// Returns the fields that the head reads; the teacher's logits are last.
std::vector<Field> reads_of(const HeadSpec& spec, const UnitShape& shape) {
  std::vector<Field> reads = spec.reads;
  for (const Field& field : spec.rows.fields(shape.tokens))
    if (std::ranges::find(reads, field) == reads.end()) reads.push_back(field);
  if (distills(shape))
    reads.push_back(teacher_field(loss_shape(shape, spec).rows() / shape.samples, spec.logits.out));
  return reads;
}

/// Unused views are empty. `places` and `targets` [n], `taken` [n,C]; `h` and `t` [n,C] after the
/// first norm and the activation, `aux` [n,C] for the latter's gradient, `z` [n,C] after the
/// transform's norm, `d` [n,C] after dropout.
struct Saved {
  View places, targets, taken, h, mean, rstd, t, aux, z, z_mean, z_rstd, d;
  View logits, row_loss;  // [n,V]; [n], or [samples] for spans

  static auto slots(const UnitShape& s, const HeadSpec& spec) {
    const UnitShape shape = loss_shape(s, spec);
    const std::int64_t n = shape.rows(), each = shape.elements(1);
    const bool inner = spec.transform && spec.transform->norm;
    const bool activation = spec.transform && spec.transform->activation;
    const auto rows = [&](View Saved::*view, bool there) {
      return Slot<Saved>{view, there ? each : 0, s.compute};
    };
    const auto statistic = [&](View Saved::*view, std::int64_t count) {
      return Slot<Saved>{view, count, DType::f32};
    };
    return std::array{
        Slot<Saved>{&Saved::places, spec.rows.vary() ? n : 0, DType::i32},
        Slot<Saved>{&Saved::targets, spec.rows.by_target() ? n : 0, DType::i32},
        rows(&Saved::taken, spec.rows.some()),
        rows(&Saved::h, spec.norm.has_value()),
        statistic(&Saved::mean, spec.norm ? spec.norm->means(n) : 0),
        statistic(&Saved::rstd, spec.norm ? n : 0),
        rows(&Saved::t, spec.transform.has_value()),
        rows(&Saved::aux, activation),
        rows(&Saved::z, inner),
        statistic(&Saved::z_mean, inner ? spec.transform->norm->means(n) : 0),
        statistic(&Saved::z_rstd, inner ? n : 0),
        rows(&Saved::d, shape.dropout > 0),
        Slot<Saved>{&Saved::logits, n * spec.logits.out, s.compute},
        statistic(&Saved::row_loss, spec.loss == HeadSpec::Loss::spans ? s.samples : n)};
  }
  NormStatistics statistics() const { return {mean, rstd}; }
  NormStatistics inner_statistics() const { return {z_mean, z_rstd}; }
};

/// Gradients [n,C] of the logits' input, the transform map's output and input, and the rows taken.
struct Grads {
  View dd, dt, dh, dtaken;

  static auto slots(const UnitShape& s, const HeadSpec& spec) {
    const std::int64_t each = loss_shape(s, spec).elements(1);
    const auto rows = [&](View Grads::*view, bool there) {
      return Slot{view, there ? each : 0, s.compute};
    };
    const bool transform = spec.transform.has_value(), norm = spec.norm.has_value();
    return std::array{rows(&Grads::dd, transform || norm || spec.rows.some()),
                      rows(&Grads::dt, transform),
                      rows(&Grads::dh, transform && (norm || spec.rows.some())),
                      rows(&Grads::dtaken, norm && spec.rows.some())};
  }
};

class Head final : public PartedUnit {
 public:
  Head(const UnitShape& shape, const HeadSpec& spec, Backend& backend)
      : shape_(shape),
        spec_(spec),
        backend_(backend),
        dropout_(loss_shape(shape, spec), backend),
        logits_(spec.logits, rows(), without_fp8(shape), backend) {
    std::vector<UnitPart*> parts;
    if (spec.norm) parts.push_back(&norm_.emplace(*spec.norm, backend));
    if (spec.transform) {
      parts.push_back(&map_.emplace(spec.transform->map, rows(), shape, backend));
      if (spec.transform->norm)
        parts.push_back(&inner_norm_.emplace(*spec.transform->norm, backend));
    }
    parts.push_back(&logits_);
    add_parts(parts);
  }

  UnitMemory memory() const override {
    return with_parts(slot_bytes<Saved>(shape_, spec_), slot_bytes<Grads>(shape_, spec_));
  }

  void forward(const UnitIo& io) override {
    const Saved s = saved(io.saved);
    if (spec_.rows.some()) take(io, s);
    if (norm_) norm_->forward(rows_of(io, s), s.statistics(), s.h);
    if (map_) transform(io, s);
    if (dropout_.drops(io)) dropout_.forward(io, before_dropout(io, s), {}, s.d);
    logits_.forward(before_logits(io, s), {}, s.logits);
    score(io, s);
  }

  void backward_input(const UnitIo& io) override {
    const Saved s = saved(io.saved);
    const Grads g = slots_in<Grads>(io.grads, shape_, spec_);
    const View dd = g.dd.empty() ? io.input_grad : g.dd;
    if (dd.empty()) return;
    logits_.backward_input(s.logits, {}, dd);
    if (dropout_.drops(io)) dropout_.forward(io, dd, {}, dd);
    View dh = dd;
    if (map_) {
      transform_gradient(s, dd, g.dt);
      dh = g.dh.empty() ? io.input_grad : g.dh;
      if (!dh.empty()) map_->backward_input(g.dt, {}, dh);
    }
    if (io.input_grad.empty()) return;
    const View dtaken = norm_ ? (spec_.rows.some() ? g.dtaken : io.input_grad) : dh;
    if (norm_) norm_->backward_input(dh, rows_of(io, s), s.statistics(), {}, dtaken);
    if (spec_.rows.some())
      backend_.run(ScatterRows{
          .dy = dtaken, .places = s.places, .samples = shape_.samples, .dx = io.input_grad});
  }

  void backward_weight(const UnitIo& io, std::span<const UnitGradient> gradients) override {
    const Saved s = saved(io.saved);
    const Grads g = slots_in<Grads>(io.grads, shape_, spec_);
    logits_.backward_weight(before_logits(io, s), s.logits, gradients);
    if (inner_norm_) inner_norm_->backward_weight(g.dd, s.t, s.inner_statistics(), gradients);
    if (map_) map_->backward_weight(before_transform(io, s), g.dt, gradients);
    if (norm_)
      norm_->backward_weight(map_ ? g.dh : g.dd, rows_of(io, s), s.statistics(), gradients);
  }

  UnitResult result(void* memory) const override {
    const Saved s = saved(memory);
    return {s.row_loss, s.logits};
  }

 private:
  Saved saved(void* memory) const { return slots_in<Saved>(memory, shape_, spec_); }
  std::int64_t rows() const { return loss_shape(shape_, spec_).rows(); }

  void take(const UnitIo& io, const Saved& s) {
    find_rows(backend_, spec_.rows, shape_, field_of_rows(io), {s.places, s.targets});
    backend_.run(
        TakeRows{.x = io.input, .places = s.places, .samples = shape_.samples, .y = s.taken});
  }
  /// The field that says which rows have a loss: the targets, or the first after the loss's fields.
  View field_of_rows(const UnitIo& io) const {
    return spec_.rows.by_target() ? io.fields[kTargets] : io.fields[spec_.reads.size()];
  }

  // The inputs of the head's parts, in order.
  View rows_of(const UnitIo& io, const Saved& s) const {
    return spec_.rows.some() ? s.taken : io.input;
  }
  View before_transform(const UnitIo& io, const Saved& s) const {
    return norm_ ? s.h : rows_of(io, s);
  }
  View before_dropout(const UnitIo& io, const Saved& s) const {
    return inner_norm_ ? s.z : map_ ? s.t : before_transform(io, s);
  }
  View before_logits(const UnitIo& io, const Saved& s) const {
    return dropout_.drops(io) ? s.d : before_dropout(io, s);
  }

  void transform(const UnitIo& io, const Saved& s) {
    const View h = before_transform(io, s);
    if (const auto activation = spec_.transform->activation) {
      map_->forward(h, {*activation, s.aux}, s.t);
    } else {
      map_->forward(h, {}, s.t);
      backend_.run(Tanh{.x = s.t, .y = s.t});
    }
    if (inner_norm_) inner_norm_->forward(s.t, s.inner_statistics(), s.z);
  }

  /// Computes dt, the map output's gradient, from dd, the transform output's gradient.
  void transform_gradient(const Saved& s, View dd, View dt) {
    if (inner_norm_) inner_norm_->backward_input(dd, s.t, s.inner_statistics(), {}, dt);
    const View dy = inner_norm_ ? dt : dd;
    if (const auto activation = spec_.transform->activation)
      backend_.run(ActivationInput{.kind = *activation, .dy = dy, .aux = s.aux, .dx = dt});
    else
      backend_.run(TanhInput{.dy = dy, .y = s.t, .dx = dt});
  }

  void score(const UnitIo& io, const Saved& s) {
    const float smoothing = io.training ? static_cast<float>(shape_.smoothing) : 0;
    if (spec_.loss == HeadSpec::Loss::spans)
      backend_.run(SpanCrossEntropy{.logits = s.logits,
                                    .starts = io.fields[kStarts],
                                    .ends = io.fields[kEnds],
                                    .t = shape_.tokens,
                                    .loss_scale = io.loss_scale,
                                    .training = io.training,
                                    .row_loss = s.row_loss,
                                    .smoothing = smoothing});
    else if (scores(spec_.loss))
      backend_.run(ScoreLoss{.logits = s.logits,
                             .scores = io.fields[kScores],
                             .kind = spec_.loss == HeadSpec::Loss::binary
                                         ? ScoreLoss::Kind::binary
                                         : ScoreLoss::Kind::squares,
                             .loss_scale = io.loss_scale,
                             .training = io.training,
                             .row_loss = s.row_loss});
    else
      score_rows(io, s, spec_.rows.by_target() ? s.targets : io.fields[kTargets], smoothing);
  }

  void score_rows(const UnitIo& io, const Saved& s, View targets, float smoothing) {
    if (distills(shape_) && io.training)
      backend_.run(
          Distillation{.logits = s.logits,
                       .targets = targets,
                       .teacher = io.fields[teacher_],
                       .loss_scale = io.loss_scale,
                       .row_loss = s.row_loss,
                       .smoothing = smoothing,
                       .share = static_cast<float>(shape_.distillation.share),
                       .temperature = static_cast<float>(shape_.distillation.temperature)});
    else
      backend_.run(CrossEntropy{.logits = s.logits,
                                .targets = targets,
                                .loss_scale = io.loss_scale,
                                .training = io.training,
                                .row_loss = s.row_loss,
                                .smoothing = smoothing});
  }

  UnitShape shape_;
  HeadSpec spec_;
  Backend& backend_;
  const std::size_t teacher_ = reads_of(spec_, shape_).size() - 1;  // field; if it distills
  Dropout dropout_;
  std::optional<Norm> norm_, inner_norm_;
  std::optional<Dense> map_;
  Dense logits_;
};

std::string describe_transform(GraphBuilder& graph, const TransformSpec& spec,
                               const std::string& x) {
  std::string y = spec.map.describe(graph, x);
  y = spec.activation ? describe_activation(graph, *spec.activation, y) : graph.add("Tanh", {y});
  return spec.norm ? spec.norm->describe(graph, y) : y;
}

/// Returns the last row [samples,C] of x [samples,T,C] where the attention mask is 1, for padding
/// on either side: the row of the largest unmasked position.
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

/// Describes the head for x[samples,T,C]. Outputs "logits" [samples,T,V], or [samples,V] if the
/// head reads one row per sample; for spans "start_logits" and "end_logits" [samples,T].
void describe_head(GraphBuilder& graph, const HeadSpec& spec, std::string x) {
  const std::string samples(kBatchAxis), tokens(kSequenceAxis);
  if (spec.rows.which == RowsRead::Which::first)
    x = graph.add("Gather", {x, graph.index(0)}, {{"axis", std::int64_t{1}}});
  if (spec.rows.which == RowsRead::Which::last) x = describe_last_row(graph, x);
  if (spec.norm) x = spec.norm->describe(graph, x);
  if (spec.transform) x = describe_transform(graph, *spec.transform, x);
  x = spec.logits.describe(graph, x);
  if (spec.loss != HeadSpec::Loss::spans) {
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

/// Returns the costs, where `product` is the number of operations in F. A tensor-parallel group
/// divides the logits. In F, the loss reads them twice and writes their gradient.
UnitCost cost_of(const UnitShape& s, const HeadSpec& spec, double product) {
  const UnitShape shape = loss_shape(s, spec);
  const double logits = static_cast<double>(shape.rows()) * static_cast<double>(spec.logits.out);
  const std::int64_t each = (spec.norm ? 2 : 0) + (spec.transform ? 2 : 0) +
                            (spec.transform && spec.transform->norm ? 2 : 0);
  const double rows = shape.moved(each * s.width), loss = shape.moved(3 * spec.logits.out);
  const bool splits = spec.logits.split == DenseSpec::Split::columns;
  UnitCost cost{.forward_flops = product,
                .input_flops = product,
                .weight_flops = product,
                .saved_bytes = slot_bytes<Saved>(s, spec),
                .grad_bytes = slot_bytes<Grads>(s, spec),
                .model_flops = product,
                .forward_moved = rows + loss,
                .input_moved = 2 * rows,
                .logits = logits,
                .dropped = shape.dropout > 0 ? static_cast<double>(shape.elements(1)) : 0};
  if (!splits) return cost;
  cost.split = {.flops = spec.logits.flops(shape.rows()) / product,
                .saved_bytes = static_cast<std::size_t>(logits) * size_of(shape.compute),
                .forward_moved = loss};
  cost.input_sum = shape.moved(s.width);
  return cost;
}

}  // namespace

UnitPlan head(const UnitShape& shape, const HeadSpec& spec) {
  if (shape.smoothing > 0 && scores(spec.loss))
    throw_input(
        fmt::format("label_smoothing = {} requires targets that are classes", shape.smoothing),
        "model.label_smoothing", "0, or a task with a single class per target");
  if (distills(shape) && spec.loss != HeadSpec::Loss::rows)
    throw_input("a teacher's logits require a task with one class per target", "distill.teacher",
                "an empty distill.teacher, or another model.task");
  const std::int64_t rows = loss_shape(shape, spec).rows();
  double product = spec.logits.flops(rows);
  UnitPlan plan;
  const auto add = [&](const auto& list) { append(plan.spec.parameters, list); };
  if (spec.norm) add(spec.norm->parameters(shape.width));
  if (spec.transform) {
    product += spec.transform->map.flops(rows);
    add(spec.transform->map.parameters());
    if (spec.transform->norm) add(spec.transform->norm->parameters(shape.width));
  }
  for (ParameterSpec& parameter : spec.logits.parameters()) {
    parameter.tuned = spec.logits.tuned && shape.lora.adapter.rank > 0;
    plan.spec.parameters.push_back(std::move(parameter));
  }
  plan.spec.reads = reads_of(spec, shape);
  plan.spec.cost = cost_of(shape, spec, product);
  plan.describe = [spec](GraphBuilder& graph, const std::string& x) {
    describe_head(graph, spec, x);
    return std::string();
  };
  plan.make = [shape, spec](Backend& backend) {
    return std::make_unique<Head>(shape, spec, backend);
  };
  return plan;
}

}  // namespace concertina
