#include "models/units/adapter.h"

#include <algorithm>
#include <cmath>

namespace concertina {

std::vector<ParameterSpec> adapter_parameters(const AdapterSpec& spec, const std::string& name,
                                              std::int64_t in, std::int64_t out) {
  if (spec.rank == 0) return {};
  // The standard deviation of peft's uniform initial values. B = 0: the model starts unchanged.
  const float std = static_cast<float>(1 / std::sqrt(3.0 * static_cast<double>(in)));
  return {{.name = name + ".lora_a",
           .shape = {in, spec.rank},
           .decay = true,
           .init = {Init::Kind::normal, std},
           .tuned = true},
          {.name = name + ".lora_b", .shape = {spec.rank, out}, .decay = true, .tuned = true}};
}

AdapterSpec LoraSpec::of(std::string_view map) const {
  return std::ranges::find(targets, map) == targets.end() ? AdapterSpec{} : adapter;
}

std::int64_t LoraSpec::scratch(std::initializer_list<std::string_view> maps,
                               std::int64_t rows) const {
  std::int64_t rank = 0;
  for (const std::string_view map : maps) rank = std::max(rank, of(map).rank);
  return 2 * rank * rows;
}

Adapter::Adapter(const AdapterSpec& spec, const LinearShape& map, Backend& backend)
    : spec_(spec),
      backend_(backend),
      a_(backend.linear({map.rows, map.in, spec.rank, false, map.compute, map.products})),
      b_(backend.linear({map.rows, spec.rank, map.out, false, map.compute, map.products})),
      product_(backend.linear({map.in, spec.rank, map.out})) {}

std::size_t Adapter::packed_bytes() const {
  return align_up(a_->packed_bytes()) + b_->packed_bytes();
}

std::size_t Adapter::scratch_bytes() const {
  const LinearShape& product = product_->shape();
  const auto bytes = [](std::int64_t n) {
    return align_up(static_cast<std::size_t>(n) * sizeof(float));
  };
  return bytes(product.rows * product.out) + bytes(spec_.rank * (product.rows + product.out)) +
         product_->packed_bytes();
}

void Adapter::attach(View a, View b, void* packed) {
  a_view_ = a, b_view_ = b;
  packed_a_ = static_cast<std::byte*>(packed);
  packed_b_ = packed_a_ + align_up(a_->packed_bytes());
}

View Adapter::scaled(View x, View out) const {
  const auto n = static_cast<std::int64_t>(x.count);
  backend_.run(CopyColumns{x, n, 0, out, n, 0, n});
  backend_.run(Axpby{.a = 0, .x = out, .b = spec_.scale, .y = out});
  return out;
}

View Adapter::merge(View weight, void* scratch) {
  const LinearShape& product = product_->shape();
  auto at = [&, next = static_cast<std::byte*>(scratch)](std::int64_t n) mutable {
    const View view{next, static_cast<std::size_t>(n), DType::f32};
    next += align_up(view.bytes());
    return view;
  };
  const View sum = at(product.rows * product.out);
  const View factors = at(spec_.rank * (product.rows + product.out));
  const View packed = at(0);
  const View a = scaled(a_view_, factors.slice(0, a_view_.count));
  const View b = scaled(b_view_, factors.slice(a_view_.count, b_view_.count));
  backend_.run(PackWeights{.map = *a_, .weight = a, .packed = packed_a_});
  backend_.run(PackWeights{.map = *b_, .weight = b, .packed = packed_b_});
  backend_.run(PackWeights{.map = *product_, .weight = b, .packed = packed.data});
  backend_.run(LinearForward{.map = *product_,
                             .x = a_view_,
                             .packed = packed.data,
                             .epilogue = {Epilogue::Kind::residual, weight},
                             .y = sum});
  return sum;
}

void Adapter::backward_weight(View x, View dy, View scratch, const UnitGradient& da,
                              const UnitGradient& db) const {
  const std::size_t half = scratch.count / 2;
  const View xa = scratch.slice(0, half), dyb = scratch.slice(half, half);
  backend_.run(LinearForward{.map = *a_, .x = x, .packed = packed_a_, .y = xa});
  backend_.run(LinearInput{.map = *b_, .dy = dy, .packed = packed_b_, .dx = dyb});
  const auto gradient = [&](Linear& map, View in, View out, const UnitGradient& of) {
    if (of.view.empty()) return;
    backend_.run(LinearWeight{
        .map = map, .x = in, .dy = out, .dweight = of.view, .accumulate = of.accumulate});
  };
  gradient(*a_, x, dyb, da);
  gradient(*b_, xa, dy, db);
}

}  // namespace concertina
