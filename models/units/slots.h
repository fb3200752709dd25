// Memory that a unit keeps between its passes: named views of one block of bytes, from one table.
// Invariant: the size of the block and the places in it come from the same table; views are aligned
// and in the table's order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor.h"

namespace concertina {

/// A member of `Views`, its number of elements and their type; with 0 elements it stays empty.
template <class Views>
struct Slot {
  View Views::*view;
  std::int64_t count;
  DType dtype;
};

/// The bytes that `Views` take. `Views::slots(shape...)` is their table, an array of Slot<Views>.
template <class Views, class... Shape>
std::size_t slot_bytes(const Shape&... shape) {
  std::size_t bytes = 0;
  for (const Slot<Views>& slot : Views::slots(shape...))
    bytes += align_up(static_cast<std::size_t>(slot.count) * size_of(slot.dtype));
  return bytes;
}

/// The views themselves, in `memory` of slot_bytes().
template <class Views, class... Shape>
Views slots_in(void* memory, const Shape&... shape) {
  Views views;
  auto* at = static_cast<std::byte*>(memory);
  for (const Slot<Views>& slot : Views::slots(shape...)) {
    if (slot.count == 0) continue;
    const View view{at, static_cast<std::size_t>(slot.count), slot.dtype};
    views.*slot.view = view;
    at += align_up(view.bytes());
  }
  return views;
}

}  // namespace concertina
