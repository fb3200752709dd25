#include "parallel/simulate/exchange_clock.h"

#include <algorithm>

#include "core/index.h"
#include "core/model/exchange_order.h"

namespace concertina {

const ExchangeStep& ExchangeClock::Lane::step(int number) const {
  return (*steps)[at(number % step_count())];
}

/// Returns the bytes that `holder` sends in a step.
double ExchangeClock::Lane::bytes(int number, int holder) const {
  const auto& [load, piece_bytes] = loads[at(number / step_count())];
  return load->pieces[at(phase)][at(number % step_count())][at(holder)] * piece_bytes;
}

int ExchangeClock::add_group(std::vector<int> ranks, const ExchangeRoutes& routes) {
  const int group = static_cast<int>(groups_.size());
  for (std::size_t phase = 0; phase < routes.phases().size(); ++phase) {
    Lane& lane = lanes_.emplace_back();
    lane.group = group;
    lane.phase = static_cast<int>(phase);
    lane.last = phase + 1 == routes.phases().size();
    lane.ranks = ranks;
    lane.steps = &routes.phases()[phase];
    lane.lines.resize(ranks.size());
  }
  groups_.push_back(static_cast<int>(lanes_.size()));
  return group;
}

int ExchangeClock::add_exchange(int group, std::shared_ptr<const ExchangeLoad> load,
                                double piece_bytes) {
  int exchange = 0;
  for (int i = group == 0 ? 0 : groups_[at(group - 1)]; i < groups_[at(group)]; ++i) {
    Lane& lane = lanes_[at(i)];
    for (std::size_t holder = 0; holder < lane.ranks.size(); ++holder) {
      int missing = 1;
      for (const ExchangeStep& step : *lane.steps)
        missing += (step.to[holder] >= 0 ? 1 : 0) + (step.from[holder] >= 0 ? 1 : 0);
      lane.progress.push_back(Progress{.missing = missing});
    }
    exchange = static_cast<int>(lane.loads.size());
    lane.loads.push_back({load, piece_bytes});
  }
  return exchange;
}

void ExchangeClock::begin(int group, int exchange, int holder, double time, int node) {
  const int first = group == 0 ? 0 : groups_[at(group - 1)];
  Lane& lane = lanes_[at(first)];
  lane.progress[at(exchange) * lane.ranks.size() + at(holder)].node = node;
  add_event(time, Event::Kind::ready, first, holder, exchange);
}

const std::vector<ExchangeClock::End>& ExchangeClock::advance(LinkClock& links) {
  ends_.clear();
  const Event event = events_.top();
  events_.pop();
  Lane& lane = lanes_[at(event.lane)];
  switch (event.kind) {
    case Event::Kind::ready:
      begun(lane, event, links);
      break;
    case Event::Kind::arrived:
      arrived(lane, event, links);
      break;
    case Event::Kind::answered:
      close(lane.lines[at(event.holder)], event.index);
      post(lane, event.holder, event.time, links);
  }
  return ends_;
}

/// The receiver continues and replies to the sender.
void ExchangeClock::arrived(Lane& lane, const Event& event, LinkClock& links) {
  const int receiver = lane.step(event.index).to[at(event.holder)];
  const double answered =
      links.carry(lane.ranks[at(receiver)], lane.ranks[at(event.holder)], 0, event.time, -1).end;
  add_event(answered, Event::Kind::answered, event.lane, event.holder, event.index);
  close(lane.lines[at(receiver)], event.index);
  post(lane, receiver, event.time, links);
}

void ExchangeClock::begun(Lane& lane, const Event& event, LinkClock& links) {
  Line& line = lane.lines[at(event.holder)];
  const auto progress = [&](int exchange) -> Progress& {
    return lane.progress[at(exchange) * lane.ranks.size() + at(event.holder)];
  };
  progress(event.index).ready = true;
  for (; line.begun < static_cast<int>(lane.loads.size()); ++line.begun) {
    Progress& mine = progress(line.begun);
    if (!mine.ready) break;
    mine.begun = event.time;
    known(lane, line.begun, event.holder, event.time, mine.node);
  }
  post(lane, event.holder, event.time, links);
}

bool ExchangeClock::may_post(const Lane& lane, const Line& line) const {
  if (line.next >= line.begun * lane.step_count()) return false;
  return may_begin_step(static_cast<int>(line.open.size()), line.bytes);
}

void ExchangeClock::post(Lane& lane, int holder, double now, LinkClock& links) {
  Line& line = lane.lines[at(holder)];
  while (may_post(lane, line)) {
    const int step = line.next++;
    const int to = lane.step(step).to[at(holder)], from = lane.step(step).from[at(holder)];
    if (to < 0 && from < 0) continue;
    const double bytes = to < 0 ? 0 : lane.bytes(step, holder);
    line.open.push_back({step, to < 0 || from < 0 ? 1 : 2, bytes});
    line.bytes += bytes;
    if (to >= 0 && lane.lines[at(to)].next > step) carry(lane, step, holder, now, links);
    if (from >= 0 && lane.lines[at(from)].next > step) carry(lane, step, from, now, links);
  }
}

/// Carries the message of holder `from` in `step`, which both ends have posted.
void ExchangeClock::carry(Lane& lane, int step, int from, double now, LinkClock& links) {
  const int exchange = step / lane.step_count();
  const int to = lane.step(step).to[at(from)];
  const Progress* progress = &lane.progress[at(exchange) * lane.ranks.size()];
  const int late = progress[progress[from].begun > progress[to].begun ? from : to].node;
  const double end =
      links.carry(lane.ranks[at(from)], lane.ranks[at(to)], lane.bytes(step, from), now, late).end;
  for (const int holder : {from, to}) known(lane, exchange, holder, end, late);
  add_event(end, Event::Kind::arrived, number(lane), from, step);
}

/// Part of an exchange ends on `holder`. At the end of a phase, the next one begins.
void ExchangeClock::known(Lane& lane, int exchange, int holder, double end, int late) {
  Progress& mine = lane.progress[at(exchange) * lane.ranks.size() + at(holder)];
  if (end >= mine.end) {
    mine.end = end;
    mine.late = late;
  }
  if (--mine.missing > 0) return;
  if (lane.last) {
    ends_.push_back({lane.group, exchange, holder});
    return;
  }
  const int next = number(lane) + 1;
  lanes_[at(next)].progress[at(exchange) * lane.ranks.size() + at(holder)].node = mine.late;
  add_event(mine.end, Event::Kind::ready, next, holder, exchange);
}

void ExchangeClock::close(Line& line, int step) {
  const auto open = std::find_if(line.open.begin(), line.open.end(),
                                 [&](const Open& one) { return one.step == step; });
  if (--open->left > 0) return;
  line.bytes -= open->bytes;
  line.open.erase(open);
}

}  // namespace concertina
