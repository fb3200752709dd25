#include "parallel/simulate/exchange_clock.h"

#include <algorithm>

#include "core/exchange_order.h"
#include "core/index.h"

namespace concertina {
namespace {

/// Steps that are simulated one by one; in larger groups neighbouring ones are taken as one, so
/// that the time of a simulation grows with the number of ranks and not with its square.
constexpr int kMostSteps = 64;

}  // namespace

std::vector<ExchangeClock::Step> ExchangeClock::steps_of(int size) {
  std::vector<Step> steps;
  const int all = size - 1, count = std::min(all, kMostSteps);
  for (int i = 0; i < count; ++i) {
    const int first = 1 + i * all / count, last = (i + 1) * all / count;
    steps.push_back({(first + last) / 2, static_cast<double>(last - first + 1)});
  }
  return steps;
}

int ExchangeClock::add_group(std::vector<int> ranks) {
  Group group;
  group.steps = steps_of(static_cast<int>(ranks.size()));
  group.lines.resize(ranks.size());
  group.ranks = std::move(ranks);
  groups_.push_back(std::move(group));
  return static_cast<int>(groups_.size()) - 1;
}

int ExchangeClock::add_exchange(int group, std::vector<double> bytes) {
  Group& one = groups_[at(group)];
  const auto messages = 2 * static_cast<int>(one.steps.size());
  one.progress.resize(one.progress.size() + one.ranks.size(), Progress{.missing = messages});
  one.bytes.push_back(std::move(bytes));
  return static_cast<int>(one.bytes.size()) - 1;
}

void ExchangeClock::begin(int group, int exchange, int holder, double time, int node) {
  Group& one = groups_[at(group)];
  one.progress[at(exchange) * one.ranks.size() + at(holder)].node = node;
  events_.push({time, events_made_++, Event::Kind::ready, group, holder, exchange});
}

const std::vector<ExchangeClock::End>& ExchangeClock::advance(LinkClock& links) {
  ends_.clear();
  const Event event = events_.top();
  events_.pop();
  Group& group = groups_[at(event.group)];
  switch (event.kind) {
    case Event::Kind::ready:
      begun(group, event, links);
      break;
    case Event::Kind::arrived:
      arrived(group, event, links);
      break;
    case Event::Kind::answered:
      close(group.lines[at(event.holder)], event.index);
      post(group, event.group, event.holder, event.time, links);
  }
  return ends_;
}

/// The receiver goes on, and answers the sender.
void ExchangeClock::arrived(Group& group, const Event& event, LinkClock& links) {
  const int size = static_cast<int>(group.ranks.size());
  const int ahead = group.steps[at(event.index) % group.steps.size()].ahead;
  const int receiver = (event.holder + ahead) % size;
  const double answered =
      links.carry(group.ranks[at(receiver)], group.ranks[at(event.holder)], 0, event.time, -1).end;
  events_.push(
      {answered, events_made_++, Event::Kind::answered, event.group, event.holder, event.index});
  close(group.lines[at(receiver)], event.index);
  post(group, event.group, receiver, event.time, links);
}

void ExchangeClock::begun(Group& group, const Event& event, LinkClock& links) {
  Line& line = group.lines[at(event.holder)];
  const auto progress = [&](int exchange) -> Progress& {
    return group.progress[at(exchange) * group.ranks.size() + at(event.holder)];
  };
  progress(event.index).ready = true;
  for (; line.begun < static_cast<int>(group.bytes.size()); ++line.begun) {
    if (!progress(line.begun).ready) break;
    progress(line.begun).begun = event.time;
  }
  post(group, event.group, event.holder, event.time, links);
}

bool ExchangeClock::may_post(const Group& group, const Line& line) const {
  if (line.next >= line.begun * static_cast<int>(group.steps.size())) return false;
  return may_begin_step(static_cast<int>(line.open.size()), line.bytes);
}

void ExchangeClock::post(Group& group, int number, int holder, double now, LinkClock& links) {
  const int size = static_cast<int>(group.ranks.size());
  Line& line = group.lines[at(holder)];
  while (may_post(group, line)) {
    const int step = line.next++;
    const Step& one = group.steps[at(step) % group.steps.size()];
    const double bytes = group.bytes[at(step) / group.steps.size()][at(holder)] * one.parts;
    line.open.push_back({step, 2, bytes});
    line.bytes += bytes;
    const int to = (holder + one.ahead) % size, from = (holder + size - one.ahead) % size;
    if (group.lines[at(to)].next > step) carry(group, number, step, holder, now, links);
    if (group.lines[at(from)].next > step) carry(group, number, step, from, now, links);
  }
}

/// The message of holder `from` in `step`, which both its ends have posted by now.
void ExchangeClock::carry(Group& group, int number, int step, int from, double now,
                          LinkClock& links) {
  const int size = static_cast<int>(group.ranks.size());
  const int exchange = step / static_cast<int>(group.steps.size());
  const Step& one = group.steps[at(step) % group.steps.size()];
  const int to = (from + one.ahead) % size;
  Progress* progress = &group.progress[at(exchange) * group.ranks.size()];
  const int late = progress[progress[from].begun > progress[to].begun ? from : to].node;
  const double end = links
                         .carry(group.ranks[at(from)], group.ranks[at(to)],
                                group.bytes[at(exchange)][at(from)] * one.parts, now, late)
                         .end;
  for (const int holder : {from, to}) {
    Progress& mine = progress[holder];
    if (end >= mine.end) {
      mine.end = end;
      mine.late = late;
    }
    if (--mine.missing == 0) ends_.push_back({number, exchange, holder});
  }
  events_.push({end, events_made_++, Event::Kind::arrived, number, from, step});
}

void ExchangeClock::close(Line& line, int step) {
  const auto open = std::find_if(line.open.begin(), line.open.end(),
                                 [&](const Open& one) { return one.step == step; });
  if (--open->left > 0) return;
  line.bytes -= open->bytes;
  line.open.erase(open);
}

}  // namespace concertina
