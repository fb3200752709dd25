#include "parallel/comm/stall.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/host_name.h"

namespace concertina {
namespace {

std::string why(const Stall& stall) {
  switch (stall.silence) {
    case Silence::meant:
      return "the operation has no time limit";
    case Silence::storage:
      return "it waits for storage or a slow link that still moves bytes: the launch is not "
             "aborted";
    case Silence::starved:
      return "it gets no CPU time: other processes use the cores";
    case Silence::follows:
      return fmt::format("it waits for rank {}", stall.waits_for);
    case Silence::outside:
      if (stall.waits_for < 0) return "it waits for other ranks";
      return fmt::format("it waits for rank {} on {}", stall.waits_for,
                         stall.peer_host.empty() ? "another host" : stall.peer_host);
    case Silence::cycle:
      return fmt::format("it waits for rank {}, which waits for it: a message was lost",
                         stall.waits_for);
    case Silence::computes:
      return "it uses its core without making progress";
    default:
      return "it is blocked, using neither a core nor storage";
  }
}

}  // namespace

const char* name_of(Silence silence) {
  constexpr const char* kNames[] = {"meant",   "storage", "starved",  "follows",
                                    "outside", "cycle",   "computes", "blocked"};
  return kNames[static_cast<int>(silence)];
}

bool is_slow(Silence silence) {
  return silence == Silence::meant || silence == Silence::storage || silence == Silence::starved;
}

bool hangs(Silence silence) {
  return silence == Silence::cycle || silence == Silence::computes || silence == Silence::blocked;
}

std::string headline(const Stall& stall) {
  std::string text =
      fmt::format("rank {} on {} has made no progress for {:.1f} s in {}: {}", stall.rank,
                  host_name(), stall.seconds, to_text(stall.now), why(stall));
  if (!stall.waiting.empty())
    text += fmt::format("; rank{} {} wait{} for it", stall.waiting.size() == 1 ? "" : "s",
                        fmt::join(stall.waiting, ", "), stall.waiting.size() == 1 ? "s" : "");
  return text;
}

std::string report_of(const Stall& stall) {
  std::string text = headline(stall);
  for (const auto& [rank, operations] : stall.last) {
    text += fmt::format("\n  last operations of rank {}:", rank);
    for (const Operation& one : operations)
      text += fmt::format("\n    {:10.3f} ms  {}", one.seconds * 1e3, to_text(one));
  }
  if (!stall.stack.empty())
    text +=
        fmt::format("\n  stack of rank {}:\n    {}", stall.rank, fmt::join(stall.stack, "\n    "));
  return text;
}

double PaceOfSteps::seconds() const noexcept {
  if (count_ < kEnough) return 0;
  std::array<double, kKept> sorted = seconds_;
  const auto end = sorted.begin() + std::min(count_, kKept);
  const auto middle = sorted.begin() + (end - sorted.begin()) / 2;
  std::nth_element(sorted.begin(), middle, end);
  return std::max(*middle, seconds_[(count_ - 1) % kKept]);
}

}  // namespace concertina
