// Memory that a unit keeps between passes: named views of one block, laid out by a table.
// Invariant: the size of the block and the offsets in it follow from the same table. Views are
// aligned and in the table's order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor.h"

namespace concertina {

/// A member of `Views` with its element count and type. With 0 elements the view stays empty.
template <class Views>
struct Slot {
  View Views::*view;
  std::int64_t count;
  DType dtype;
};

/// Returns the size of `Views`, whose table is the array of slots Views::slots(shape...).
template <class Views, class... Shape>
std::size_t slot_bytes(const Shape&... shape) {
  std::size_t bytes = 0;
  for (const Slot<Views>& slot : Views::slots(shape...))
    bytes += align_up(static_cast<std::size_t>(slot.count) * size_of(slot.dtype));
  return bytes;
}

/// Returns the views in `memory`, which spans slot_bytes().
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
