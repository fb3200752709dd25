#include "models/units/part.h"

#include <algorithm>

#include "core/error.h"

namespace concertina {

std::size_t Tables::index_of(std::size_t table) const {
  return static_cast<std::size_t>(
      std::count(there_.begin(), there_.begin() + static_cast<std::ptrdiff_t>(table), true));
}

std::size_t Tables::parameters() const {
  return index_of(there_.size());
}

void Tables::attach(std::span<const View> weights, void* /*packed*/) {
  for (std::size_t table = 0; table < views_.size(); ++table)
    if (there_[table]) views_[table] = weights[index_of(table)];
}

UnitGradient Tables::gradient(std::span<const UnitGradient> gradients, std::size_t table) const {
  return there_[table] ? own(gradients, index_of(table)) : UnitGradient{};
}

void PartedUnit::add_parts(std::span<UnitPart* const> parts) {
  std::size_t first = 0;
  for (const UnitPart* part : parts_) first += part->parameters();
  for (UnitPart* part : parts) {
    part->place(first);
    first += part->parameters();
    parts_.push_back(part);
  }
}

UnitMemory PartedUnit::with_parts(std::size_t saved_bytes, std::size_t grad_bytes) const {
  UnitMemory memory{.saved_bytes = saved_bytes, .grad_bytes = grad_bytes};
  for (const UnitPart* part : parts_) {
    memory.packed_bytes += align_up(part->packed_bytes());
    memory.pack_scratch = std::max(memory.pack_scratch, part->pack_scratch());
  }
  return memory;
}

void PartedUnit::attach(std::span<const View> parameters, void* packed) {
  auto* at = static_cast<std::byte*>(packed);
  for (UnitPart* part : parts_) {
    CONCERTINA_CHECK(parameters.size() >= part->parameters(),
                     "only {} parameters are left for a part with {}", parameters.size(),
                     part->parameters());
    part->attach(parameters.first(part->parameters()), at);
    parameters = parameters.subspan(part->parameters());
    at += align_up(part->packed_bytes());
  }
  CONCERTINA_CHECK(parameters.empty(), "{} parameters belong to no part", parameters.size());
}

void PartedUnit::pack(void* scratch) {
  for (UnitPart* part : parts_) part->pack(scratch);
}

bool PartedUnit::packs(std::size_t parameter) const {
  for (const UnitPart* part : parts_) {
    if (parameter < part->parameters()) return part->packs(parameter);
    parameter -= part->parameters();
  }
  return false;
}

}  // namespace concertina
