#include "parallel/simulate/message_clock.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/index.h"

namespace concertina {
MessageClock::MessageClock(const std::vector<StageInfo>& stages, const Costs& costs,
                           LinkClock& links, Look look)
    : stages_(stages), costs_(costs), links_(links), look_(std::move(look)) {
  cell_begin_.push_back(0);
  for (const StageInfo& stage : stages_) {
    cell_begin_.push_back(cell_begin_.back() + stage.last_microbatch - stage.first_microbatch);
    stage_of_.resize(at(cell_begin_.back()), static_cast<int>(cell_begin_.size()) - 2);
  }
  messages_.resize(2 * at(cell_begin_.back()));
}

int MessageClock::find(int stage, int microbatch, bool gradient) const {
  const bool known = stage >= 0 && stage < static_cast<int>(stages_.size()) &&
                     microbatch >= stages_[at(stage)].first_microbatch &&
                     microbatch < stages_[at(stage)].last_microbatch;
  CONCERTINA_CHECK(known, "stage {} has no microbatch {}", stage, microbatch);
  const int cell = cell_begin_[at(stage)] + microbatch - stages_[at(stage)].first_microbatch;
  return 2 * cell + (gradient ? 1 : 0);
}

int MessageClock::from(int message) const {
  return stages_[at(stage_of_[at(message / 2)] + (message % 2 == 0 ? -1 : 1))].rank;
}

void MessageClock::carry(int message, double bytes, double ready) {
  Message& one = messages_[at(message)];
  const auto passage = links_.carry(from(message), to(message), bytes, ready,
                                    one.posted < 0           ? one.sender
                                    : one.sent >= one.posted ? one.sender
                                                             : one.receiver);
  one.start = passage.start;
  one.end = passage.end;
  if (passage.behind >= 0) one.behind = passage.behind;
  const LinkCosts& link = costs_.link(from(message), to(message));
  if (!std::isfinite(link.bandwidth)) one.copy = bytes * link.receive_cpu;
}

std::optional<double> MessageClock::posted(int message) {
  Message& one = messages_[at(message)];
  const LinkCosts& link = costs_.link(from(message), to(message));
  const double bytes = costs_.boundary_bytes;
  const double head = std::min(bytes, link.eager_bytes);
  const bool both = one.sent >= 0 && one.posted >= 0;
  // A link that has only latency delays nothing: its messages are available when needed.
  const bool latency_alone = std::isinf(link.bandwidth) && link.receive_cpu == 0;
  if (!std::isfinite(link.eager_bytes) && !latency_alone) {
    if (both) carry(message, bytes, std::max(one.sent, one.posted));
    return {};
  }
  if (one.sent >= 0 && one.phase_ == Message::Phase::none) {
    carry(message, head, one.sent);
    one.phase_ = Message::Phase::head;
    one.eager = head == bytes;
    if (one.eager) return {};
    one.head_end_ = std::exchange(one.end, -1);
  }
  if (!both || head == bytes) return {};
  return std::max(one.head_end_, one.posted);
}

std::optional<double> MessageClock::proceed(int message, double time) {
  using Phase = Message::Phase;
  Message& one = messages_[at(message)];
  const int sender = from(message), receiver = to(message);
  switch (one.phase_) {
    case Phase::head:
      one.phase_ = Phase::matched;
      return look_(receiver, time);
    case Phase::matched: {
      one.phase_ = Phase::answered;
      const auto answer = links_.carry(receiver, sender, 0, time, one.cause());
      one.behind = answer.behind;
      return answer.end;
    }
    case Phase::answered:
      one.phase_ = Phase::free;
      return look_(sender, time);
    default:
      carry(message, costs_.boundary_bytes - costs_.link(sender, receiver).eager_bytes, time);
      return {};
  }
}

}  // namespace concertina
