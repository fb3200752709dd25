#include "models/model_stage.h"

#include <bit>
#include <functional>

#include "core/error.h"
#include "core/failpoint.h"

namespace concertina {
namespace {

std::uint64_t word_of(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}

void append(std::vector<std::uint64_t>& words, const View& view) {
  words.insert(words.end(),
               {word_of(view.data), view.count, static_cast<std::uint64_t>(view.dtype)});
}

void* offset_by(void* memory, std::size_t bytes) {
  return static_cast<std::byte*>(memory) + bytes;
}

}  // namespace

void write_pass_key(const Unit& unit, Pass pass, const UnitIo& io,
                    std::span<const UnitGradient> gradients, std::vector<std::uint64_t>& words) {
  // Destructured so that adding a member to UnitIo causes a compile error here.
  const auto& [fields, input, output, input_grad, output_grad, saved, grads, cache, loss_scale,
               training, random] = io;
  words.assign({word_of(&unit), static_cast<std::uint64_t>(pass), word_of(saved), word_of(grads),
                word_of(cache), std::bit_cast<std::uint32_t>(loss_scale), training, random.seed,
                random.unit});
  for (const View& field : fields) append(words, field);
  for (const View* view : {&input, &output, &input_grad, &output_grad}) append(words, *view);
  for (const UnitGradient& gradient : gradients) {
    append(words, gradient.view);
    words.push_back(gradient.accumulate);
  }
}

ModelStage::ModelStage(Backend& backend, const Model& model, std::span<const Bucket> buckets,
                       int first, int last, int frozen_units)
    : backend_(backend), first_(first), samples_(model.spec().samples) {
  const ModelSpec& spec = model.spec();
  CONCERTINA_CHECK(0 <= first && first < last && last <= std::ssize(spec.units),
                   "stage [{}, {}) of {} units", first, last, spec.units.size());
  frozen_ = static_cast<std::size_t>(std::clamp(frozen_units - first, 0, last - first));
  memory_.boundary_bytes = spec.boundary_bytes;
  memory_.activation = spec.activation;
  const std::vector<Field> fields = fields_of(spec);
  for (int unit = first; unit < last; ++unit)
    slots_.push_back(make_slot(backend, model, buckets, fields, unit));

  std::size_t most_parameters = 0;
  for (const Slot& slot : slots_) {
    most_parameters = std::max(most_parameters, slot.parameters.size());
    held_.insert(held_.end(), slot.buckets.begin(), slot.buckets.end());
  }
  std::sort(held_.begin(), held_.end());
  held_.erase(std::unique(held_.begin(), held_.end()), held_.end());
  gradients_.reserve(most_parameters);
  key_.reserve(pass_key_words(most_parameters));
  place_memory();
}

ModelStage::Slot ModelStage::make_slot(Backend& backend, const Model& model,
                                       std::span<const Bucket> buckets,
                                       const std::vector<Field>& fields, int unit) {
  Slot slot;
  slot.unit = model.make_unit(unit, backend);
  const UnitSpec& spec = model.spec().units[static_cast<std::size_t>(unit)];
  slot.name = spec.name;
  slot.recompute = spec.recompute;
  slot.reads = read_indices(spec, fields);
  const auto& parameters = spec.parameters;
  slot.parameters.resize(parameters.size());
  for (int b = 0; b < std::ssize(buckets); ++b) {
    const Bucket& bucket = buckets[static_cast<std::size_t>(b)];
    if (std::find(bucket.uses.begin(), bucket.uses.end(), unit) == bucket.uses.end()) continue;
    slot.buckets.push_back(b);
    if (!bucket.frozen) slot.trained.push_back(b);
    for (std::size_t p = 0; p < parameters.size(); ++p)
      for (const BucketTensor& tensor : bucket.tensors) {
        const bool own = parameters[p].shared.empty() && tensor.unit == unit &&
                         tensor.parameter == static_cast<int>(p);
        const std::string& name = bucket.copy_of < 0
                                      ? tensor.name
                                      : buckets[static_cast<std::size_t>(bucket.copy_of)].name;
        if (own || (!parameters[p].shared.empty() && name == parameters[p].shared))
          slot.parameters[p] = {b, tensor.offset, tensor.count};
      }
  }
  for (std::size_t p = 0; p < parameters.size(); ++p)
    CONCERTINA_CHECK(slot.parameters[p].count == static_cast<std::size_t>(parameters[p].count()),
                     "parameter {} of unit {} is not in any bucket", parameters[p].name, unit);
  for (std::size_t p = 0; p < parameters.size(); ++p)
    slot.repacks |=
        slot.unit->packs(p) && !buckets[static_cast<std::size_t>(slot.parameters[p].bucket)].frozen;
  return slot;
}

void ModelStage::place_memory() {
  const std::size_t boundary = align_up(memory_.boundary_bytes);
  std::size_t forward = 0;  // used while running a unit that saves nothing
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    const UnitMemory needs = slot.unit->memory();
    slot.cache = memory_.cache_bytes;
    memory_.cache_bytes += align_up(needs.cache_bytes);
    const std::size_t edge = i + 1 < slots_.size() ? boundary : 0;  // output to the next unit
    if (frozen(i)) {
      forward = std::max(forward, align_up(needs.saved_bytes));
      if (i + 1 != frozen_) continue;
      slot.output = 0;  // the input of the first trained unit
      memory_.saved_bytes = edge;
      continue;
    }
    const std::size_t saved = align_up(needs.saved_bytes);
    slot.again = align_up(needs.grad_bytes);
    const std::size_t grads = slot.again + (slot.recompute ? saved : 0);
    if (slot.recompute) forward = std::max(forward, saved);
    slot.saved = memory_.saved_bytes;
    slot.output = slot.saved + (slot.recompute ? 0 : saved);
    memory_.saved_bytes = slot.output + edge;
    slot.grads = memory_.grad_bytes;
    slot.output_grad = slot.grads + grads;
    memory_.grad_bytes = slot.output_grad + edge;
    shared_grads_ = std::max(shared_grads_, grads);
  }
  // B holds the gradients of one unit and two edges: into the unit and out of it.
  const std::size_t trained = slots_.size() - frozen_;
  memory_.workspace_bytes =
      shared_grads_ + (trained > 0 ? std::min<std::size_t>(2, trained - 1) * boundary : 0);
  memory_.forward_bytes = frozen_edges() * boundary + forward;
  memory_.loss_rows = slots_.back().unit->result(nullptr).row_loss.count;
}

std::size_t ModelStage::packed_bytes() const {
  std::size_t bytes = 0;
  std::size_t scratch = 0;
  for (const Slot& slot : slots_) {
    const UnitMemory memory = slot.unit->memory();
    bytes += align_up(memory.packed_bytes);
    scratch = std::max(scratch, memory.pack_scratch);
  }
  return bytes + scratch;
}

void ModelStage::attach(std::span<const View> weights, void* packed) {
  backend_.forget_passes();
  auto* at = static_cast<std::byte*>(packed);
  for (Slot& slot : slots_) {
    std::vector<View> views;
    for (const Place& place : slot.parameters) {
      const View& bucket = weights[static_cast<std::size_t>(place.bucket)];
      CONCERTINA_CHECK(!bucket.empty(), "no weights for bucket {}", place.bucket);
      views.push_back(bucket.slice(place.offset, place.count));
    }
    slot.unit->attach(views, at);
    at += align_up(slot.unit->memory().packed_bytes);
  }
  pack_scratch_ = at;
}

View ModelStage::activation(void* at) const {
  return {at, memory_.boundary_bytes / size_of(memory_.activation), memory_.activation};
}

void* ModelStage::saved_of(std::size_t slot, const MicrobatchIo& io) const {
  if (!frozen(slot) && !recomputes(slot)) return offset_by(io.saved, slots_[slot].saved);
  return offset_by(forward_scratch_, frozen_edges() * align_up(memory_.boundary_bytes));
}

View ModelStage::output_of(std::size_t slot, const MicrobatchIo& io) const {
  if (slot + 1 == slots_.size()) return io.output;
  if (!frozen(slot + 1)) return activation(offset_by(io.saved, slots_[slot].output));
  return activation(
      offset_by(forward_scratch_, slot % frozen_edges() * align_up(memory_.boundary_bytes)));
}

View ModelStage::output_grad_of(std::size_t slot, const MicrobatchIo& io, Grads grads) const {
  if (slot + 1 == slots_.size()) return io.output_grad;
  if (grads == Grads::separate) return activation(offset_by(io.grads, slots_[slot].output_grad));
  return activation(offset_by(
      workspace_, shared_grads_ + (slot - frozen_) % 2 * align_up(memory_.boundary_bytes)));
}

UnitIo ModelStage::unit_io(std::size_t slot, const MicrobatchIo& io, Grads grads) const {
  UnitIo unit;
  const std::vector<int>& reads = slots_[slot].reads;
  for (std::size_t i = 0; i < reads.size(); ++i)
    unit.fields[i] = io.fields[static_cast<std::size_t>(reads[i])];
  unit.input = slot == 0 ? io.input : output_of(slot - 1, io);
  unit.output = output_of(slot, io);
  unit.saved = saved_of(slot, io);
  unit.cache = offset_by(io.cache, slots_[slot].cache);
  unit.loss_scale = io.loss_scale;
  unit.training = io.training && !frozen(slot);
  unit.random = {io.seed, static_cast<std::uint32_t>(io.step),
                 static_cast<std::uint32_t>(io.microbatch * samples_),
                 static_cast<std::uint32_t>(first_ + static_cast<int>(slot))};
  if (grads == Grads::none) return unit;
  if (slot == 0)
    unit.input_grad = io.input_grad;
  else if (!frozen(slot - 1))
    unit.input_grad = output_grad_of(slot - 1, io, grads);
  unit.output_grad = output_grad_of(slot, io, grads);
  unit.grads = grads == Grads::shared ? workspace_ : offset_by(io.grads, slots_[slot].grads);
  if (recomputes(slot)) unit.saved = offset_by(unit.grads, slots_[slot].again);
  return unit;
}

template <class F>
void ModelStage::run(std::size_t slot, Pass pass, const UnitIo& io,
                     std::span<const UnitGradient> gradients, const F& issue) {
  if (!backend_.records_passes()) return issue();
  const Slot& s = slots_[slot];
  write_pass_key(*s.unit, pass, io, gradients, key_);
  backend_.repeat({s.name, kPassNames[static_cast<std::size_t>(pass)], key_, io.random},
                  std::ref(issue));  // passed by reference so that std::function does not allocate
}

void ModelStage::weight_gradient(std::size_t slot, const MicrobatchIo& io, const UnitIo& unit_io,
                                 GradientSink& sink) {
  const Slot& s = slots_[slot];
  for (const int bucket : s.trained)
    if (skipped_[static_cast<std::size_t>(bucket)]) return;
  if (s.trained.empty()) return done(slot, Pass::weight);
  const int unit = first_ + static_cast<int>(slot);
  gradients_.assign(s.parameters.size(), {});
  for (const int bucket : s.trained) {
    const GradientTarget target = sink.begin(bucket, unit, io.microbatch);
    for (std::size_t p = 0; p < s.parameters.size(); ++p)
      if (const Place& place = s.parameters[p]; place.bucket == bucket)
        gradients_[p] = {target.gradient.slice(place.offset, place.count), target.accumulate};
  }
  run(slot, Pass::weight, unit_io, gradients_,
      [&] { s.unit->backward_weight(unit_io, gradients_); });
  for (const int bucket : s.trained) sink.end(bucket, unit, io.microbatch);
  done(slot, Pass::weight);
}

void ModelStage::forward_unit(int unit, const MicrobatchIo& io) {
  const std::size_t slot = slot_of(unit);
  const UnitIo own = unit_io(slot, io, Grads::none);
  run(slot, Pass::forward, own, {}, [&] { slots_[slot].unit->forward(own); });
  if (io.training && !own.output.empty() &&
      failpoint("activation-nan",
                {{"step", io.step}, {"microbatch", io.microbatch}, {"unit", unit}})) {
    constexpr std::uint32_t kNaN = ~0U;  // for any element type
    backend_.memory().copy(&kNaN, own.output.data, size_of(own.output.dtype));
  }
  done(slot, Pass::forward);
}

void ModelStage::input_gradient(std::size_t slot, const UnitIo& io) {
  run(slot, Pass::input, io, {}, [&] {
    if (recomputes(slot)) slots_[slot].unit->recompute(io);
    slots_[slot].unit->backward_input(io);
  });
  done(slot, Pass::input);
}

void ModelStage::backward_unit(int unit, const MicrobatchIo& io, GradientSink& sink) {
  const std::size_t slot = slot_of(unit);
  const UnitIo shared = unit_io(slot, io, Grads::shared);
  input_gradient(slot, shared);
  weight_gradient(slot, io, shared, sink);
}

void ModelStage::backward_input_unit(int unit, const MicrobatchIo& io) {
  const std::size_t slot = slot_of(unit);
  const UnitIo own = unit_io(slot, io, Grads::separate);
  input_gradient(slot, own);
}

void ModelStage::backward_weight_unit(int unit, const MicrobatchIo& io, GradientSink& sink) {
  const std::size_t slot = slot_of(unit);
  weight_gradient(slot, io, unit_io(slot, io, Grads::separate), sink);
}

View ModelStage::row_loss(const MicrobatchIo& io) const {
  const View rows = slots_.back().unit->result(saved_of(slots_.size() - 1, io)).row_loss;
  CONCERTINA_CHECK(!rows.empty(), "loss requested from a stage that is not the last one");
  return rows;
}

View ModelStage::logits(const MicrobatchIo& io) const {
  const View logits = slots_.back().unit->result(saved_of(slots_.size() - 1, io)).logits;
  CONCERTINA_CHECK(!logits.empty(), "logits requested from a stage that is not the last one");
  return logits;
}

void ModelStage::pack(std::size_t slot) {
  run(slot, Pass::pack, {}, {}, [&] { slots_[slot].unit->pack(pack_scratch_); });
}

void ModelStage::refresh_trained() {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (!slots_[i].repacks) continue;
    pack(i);
    done(i, Pass::pack);
  }
}

}  // namespace concertina
