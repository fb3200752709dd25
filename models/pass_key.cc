#include "models/pass_key.h"

#include <bit>

namespace concertina {
namespace {

std::uint64_t word_of(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}

void append(std::vector<std::uint64_t>& words, const View& view) {
  words.insert(words.end(),
               {word_of(view.data), view.count, static_cast<std::uint64_t>(view.dtype)});
}

}  // namespace

void write_pass_key(const Unit& unit, Pass pass, const UnitIo& io,
                    std::span<const UnitGradient> gradients, std::vector<std::uint64_t>& words) {
  // Destructured: a new member of UnitIo fails to compile here.
  const auto& [fields, input, output, input_grad, output_grad, saved, grads, loss_scale, training,
               random] = io;
  words.assign({word_of(&unit), static_cast<std::uint64_t>(pass), word_of(saved), word_of(grads),
                std::bit_cast<std::uint32_t>(loss_scale), training, random.seed, random.unit});
  for (const View& field : fields) append(words, field);
  for (const View* view : {&input, &output, &input_grad, &output_grad}) append(words, *view);
  for (const UnitGradient& gradient : gradients) {
    append(words, gradient.view);
    words.push_back(gradient.accumulate);
  }
}

}  // namespace concertina
