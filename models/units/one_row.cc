#include "models/units/one_row.h"

#include <array>

#include "core/batch.h"
#include "models/slots.h"

namespace concertina {
namespace {

/// Rows [samples,C]: the input's that are read, and what the unit makes of them.
struct Saved {
  View input, output;
  static auto slots(const UnitShape& one) {
    return std::array{Slot{&Saved::input, one.elements(1), one.compute},
                      Slot{&Saved::output, one.elements(1), one.compute}};
  }
};

/// Their gradients.
struct Grads {
  View output, input;
  static auto slots(const UnitShape& one) {
    return std::array{Slot{&Grads::output, one.elements(1), one.compute},
                      Slot{&Grads::input, one.elements(1), one.compute}};
  }
};

class OneRow final : public Unit {
 public:
  OneRow(RowsRead rows, const UnitShape& one, std::unique_ptr<Unit> inner, Backend& backend)
      : rows_(rows), one_(one), inner_(std::move(inner)), backend_(backend) {}

  UnitMemory memory() const override {
    UnitMemory memory = inner_->memory();
    memory.saved_bytes += slot_bytes<Saved>(one_);
    memory.grad_bytes += slot_bytes<Grads>(one_);
    return memory;
  }
  void attach(std::span<const View> parameters, void* packed) override {
    inner_->attach(parameters, packed);
  }
  void pack() override { inner_->pack(); }
  bool packs(std::size_t parameter) const override { return inner_->packs(parameter); }

  void forward(const UnitIo& io) override {
    const UnitIo one = of_one_row(io);
    take(io, io.input, one.input);
    inner_->forward(one);
    spread(io, one.output, io.output);
  }
  void recompute(const UnitIo& io) override {
    const UnitIo one = of_one_row(io);
    take(io, io.input, one.input);
    inner_->recompute(one);
  }
  void backward_input(const UnitIo& io) override {
    const UnitIo one = of_one_row(io);
    take(io, io.output_grad, one.output_grad);
    inner_->backward_input(one);
    if (!io.input_grad.empty()) spread(io, one.input_grad, io.input_grad);
  }
  void backward_weight(const UnitIo& io, std::span<const UnitGradient> gradients) override {
    inner_->backward_weight(of_one_row(io), gradients);
  }
  UnitResult result(void*) const override { return {}; }

 private:
  UnitIo of_one_row(const UnitIo& io) const {
    const Saved saved = slots_in<Saved>(io.saved, one_);
    const Grads grads = slots_in<Grads>(io.grads, one_);
    UnitIo one = io;
    one.input = saved.input, one.output = saved.output;
    one.output_grad = grads.output;
    if (!io.input_grad.empty()) one.input_grad = grads.input;
    one.saved = static_cast<std::byte*>(io.saved) + slot_bytes<Saved>(one_);
    one.grads = static_cast<std::byte*>(io.grads) + slot_bytes<Grads>(one_);
    return one;
  }

  View lengths(const UnitIo& io) const { return rows_ == RowsRead::last ? io.fields[0] : View{}; }
  void take(const UnitIo& io, View x, View y) {
    backend_.run(TakeRows{.x = x, .lengths = lengths(io), .samples = one_.samples, .y = y});
  }
  void spread(const UnitIo& io, View dy, View dx) {
    backend_.run(SpreadRows{.dy = dy, .lengths = lengths(io), .samples = one_.samples, .dx = dx});
  }

  RowsRead rows_;
  UnitShape one_;
  std::unique_ptr<Unit> inner_;
  Backend& backend_;
};

}  // namespace

UnitShape shape_of(RowsRead rows, UnitShape shape) {
  if (rows != RowsRead::all) shape.tokens = 1;
  return shape;
}

UnitPlan on_rows(RowsRead rows, const UnitShape& shape,
                 const std::function<UnitPlan(const UnitShape& shape)>& plan) {
  const UnitShape one = shape_of(rows, shape);
  UnitPlan unit = plan(one);
  if (rows == RowsRead::all) return unit;
  CONCERTINA_CHECK(unit.spec.reads.empty(), "a unit on one row of a sample that reads fields");
  if (rows == RowsRead::last) unit.spec.reads = {lengths_field()};
  unit.spec.cost.saved_bytes += slot_bytes<Saved>(one);
  unit.spec.cost.grad_bytes += slot_bytes<Grads>(one);
  unit.make = [rows, one, make = std::move(unit.make)](Backend& backend) {
    return std::make_unique<OneRow>(rows, one, make(backend), backend);
  };
  return unit;
}

}  // namespace concertina
