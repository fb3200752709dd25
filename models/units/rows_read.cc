#include "models/units/rows_read.h"

#include <array>

#include "models/units/slots.h"

namespace concertina {
namespace {

/// Rows [samples n,C] of the selected input and of the unit's output for it; their positions.
struct Saved {
  View input, output, places, targets;

  static auto slots(const RowsRead& rows, const UnitShape& read) {
    const std::int64_t found = rows.vary() ? read.rows() : 0;
    const bool targets = rows.which == RowsRead::Which::targets;
    return std::array{Slot{&Saved::input, read.elements(1), read.compute},
                      Slot{&Saved::output, read.elements(1), read.compute},
                      Slot{&Saved::places, found, DType::i32},
                      Slot{&Saved::targets, targets ? found : 0, DType::i32}};
  }
};

/// The gradients of both.
struct Grads {
  View output, input;
  static auto slots(const UnitShape& read) {
    return std::array{Slot{&Grads::output, read.elements(1), read.compute},
                      Slot{&Grads::input, read.elements(1), read.compute}};
  }
};

class OnRows final : public Unit {
 public:
  OnRows(const RowsRead& rows, const UnitShape& shape, std::unique_ptr<Unit> inner,
         Backend& backend)
      : rows_(rows),
        shape_(shape),
        read_(shape_of(rows, shape)),
        inner_(std::move(inner)),
        backend_(backend) {}

  UnitMemory memory() const override {
    UnitMemory memory = inner_->memory();
    memory.saved_bytes += slot_bytes<Saved>(rows_, read_);
    memory.grad_bytes += slot_bytes<Grads>(read_);
    return memory;
  }
  void attach(std::span<const View> parameters, void* packed) override {
    inner_->attach(parameters, packed);
  }
  void pack(void* scratch) override { inner_->pack(scratch); }
  bool packs(std::size_t parameter) const override { return inner_->packs(parameter); }

  void forward(const UnitIo& io) override {
    const UnitIo read = take_input(io);
    inner_->forward(read);
    spread(io, read.output, io.output);
  }
  void recompute(const UnitIo& io) override { inner_->recompute(take_input(io)); }
  void backward_input(const UnitIo& io) override {
    const UnitIo read = of_rows_read(io);
    take(io, io.output_grad, read.output_grad);
    inner_->backward_input(read);
    if (!io.input_grad.empty()) spread(io, read.input_grad, io.input_grad);
  }
  void backward_weight(const UnitIo& io, std::span<const UnitGradient> gradients) override {
    inner_->backward_weight(of_rows_read(io), gradients);
  }

 private:
  Saved saved(const UnitIo& io) const { return slots_in<Saved>(io.saved, rows_, read_); }

  UnitIo of_rows_read(const UnitIo& io) const {
    const Saved saved = this->saved(io);
    const Grads grads = slots_in<Grads>(io.grads, read_);
    UnitIo read = io;
    read.input = saved.input, read.output = saved.output;
    read.output_grad = grads.output;
    if (!io.input_grad.empty()) read.input_grad = grads.input;
    read.saved = static_cast<std::byte*>(io.saved) + slot_bytes<Saved>(rows_, read_);
    read.grads = static_cast<std::byte*>(io.grads) + slot_bytes<Grads>(read_);
    return read;
  }

  UnitIo take_input(const UnitIo& io) {
    const Saved saved = this->saved(io);
    find_rows(backend_, rows_, shape_, io.fields[0], {saved.places, saved.targets});
    const UnitIo read = of_rows_read(io);
    take(io, io.input, read.input);
    return read;
  }
  void take(const UnitIo& io, View x, View y) {
    backend_.run(TakeRows{.x = x, .places = saved(io).places, .samples = shape_.samples, .y = y});
  }
  void spread(const UnitIo& io, View dy, View dx) {
    backend_.run(
        ScatterRows{.dy = dy, .places = saved(io).places, .samples = shape_.samples, .dx = dx});
  }

  RowsRead rows_;
  UnitShape shape_, read_;
  std::unique_ptr<Unit> inner_;
  Backend& backend_;
};

}  // namespace

std::int64_t RowsRead::count(std::int64_t tokens) const {
  return which == Which::all ? tokens : which == Which::targets ? targets : 1;
}

std::vector<Field> RowsRead::fields(std::int64_t tokens) const {
  if (which == Which::last) return {lengths_field()};
  if (which == Which::targets) return {targets_field(tokens, targets)};
  return {};
}

UnitShape shape_of(const RowsRead& rows, UnitShape shape) {
  shape.tokens = rows.count(shape.tokens);
  return shape;
}

void find_rows(Backend& backend, const RowsRead& rows, const UnitShape& shape, View field,
               const RowPlaces& to) {
  if (rows.which == RowsRead::Which::last)
    backend.run(FindLastRows{.lengths = field, .t = shape.tokens, .places = to.places});
  if (rows.which == RowsRead::Which::targets)
    backend.run(FindTargets{
        .targets = field, .samples = shape.samples, .places = to.places, .taken = to.targets});
}

UnitPlan on_rows(const RowsRead& rows, const UnitShape& shape,
                 const std::function<UnitPlan(const UnitShape& shape)>& plan) {
  const UnitShape read = shape_of(rows, shape);
  UnitPlan unit = plan(read);
  if (!rows.some()) return unit;
  CONCERTINA_CHECK(unit.spec.reads.empty(), "a unit that reads fields cannot run on selected rows");
  unit.spec.reads = rows.fields(shape.tokens);
  unit.spec.cost.saved_bytes += slot_bytes<Saved>(rows, read);
  unit.spec.cost.grad_bytes += slot_bytes<Grads>(read);
  // Traffic: the selected rows are gathered, and scattered into all rows of a sample.
  const double moved = read.moved(2 * read.width) + shape.moved(shape.width);
  unit.spec.cost.forward_moved += moved;
  unit.spec.cost.input_moved += moved;
  unit.make = [rows, shape, make = std::move(unit.make)](Backend& backend) {
    return std::make_unique<OnRows>(rows, shape, make(backend), backend);
  };
  return unit;
}

}  // namespace concertina
