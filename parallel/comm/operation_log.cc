#include "parallel/comm/operation_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/clock.h"

namespace concertina {

std::string to_text(const Operation& operation) {
  std::string text = operation.what;
  const auto add = [&](const char* name, int value) {
    if (value >= 0) text += fmt::format(", {} {}", name, value);
  };
  add("stage", operation.stage);
  add("microbatch", operation.microbatch);
  add("rank", operation.peer);
  return text;
}

void OperationLog::begin(const char* what, int stage, int microbatch, int peer) noexcept {
  std::array<std::uint64_t, kWords> name{};
  std::memcpy(name.data(), what, std::min(std::strlen(what), sizeof(name) - 1));
  const unsigned begun = begun_.load(std::memory_order_relaxed);
  Slot& slot = slots_[begun % kKept];
  const auto set = [](auto& to, auto value) { to.store(value, std::memory_order_relaxed); };
  for (std::size_t i = 0; i < kWords; ++i) set(slot.name[i], name[i]);
  set(slot.stage, stage);
  set(slot.microbatch, microbatch);
  set(slot.peer, peer);
  set(slot.start, now());
  wait_for(kNobody);
  begun_.store(begun + 1, std::memory_order_release);
  beat();
}

std::vector<Operation> OperationLog::last(unsigned count) const {
  const unsigned end = begun_.load(std::memory_order_acquire);
  double next = now();
  std::vector<Operation> operations;
  for (unsigned i = end; i > end - std::min({count, kKept, end}); --i) {
    const Slot& slot = slots_[(i - 1) % kKept];
    std::array<std::uint64_t, kWords> name{};
    for (std::size_t word = 0; word < kWords; ++word) name[word] = slot.name[word].load();
    name[kWords - 1] &= ~std::uint64_t{0} >> 8U;  // null-terminates it in any case
    char text[sizeof(name)];
    std::memcpy(text, name.data(), sizeof(name));
    operations.push_back({text, slot.stage, slot.microbatch, slot.peer, slot.start});
    operations.back().seconds = next - operations.back().start;
    next = operations.back().start;
  }
  std::ranges::reverse(operations);
  return operations;
}

}  // namespace concertina
