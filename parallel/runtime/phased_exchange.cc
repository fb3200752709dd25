#include "parallel/runtime/phased_exchange.h"

#include <algorithm>

#include "core/error.h"

namespace concertina {

PhasedExchange::PhasedExchange(std::vector<Communicator*> groups,
                               std::function<void(int, int)> ended)
    : groups_(std::move(groups)),
      ended_(std::move(ended)),
      next_(std::max<std::size_t>(1, groups_.size())) {}

int PhasedExchange::add(std::vector<Messages> phases) {
  CONCERTINA_CHECK(phases.size() == next_.size(), "an exchange of {} phases for {} communicators",
                   phases.size(), groups_.size());
  exchanges_.emplace_back().phases = std::move(phases);
  return static_cast<int>(exchanges_.size()) - 1;
}

void PhasedExchange::reserve() {
  for (std::size_t phase = 0; phase < groups_.size(); ++phase) {
    std::size_t most = 0;
    for (const Exchange& one : exchanges_)
      most = std::max(most, one.phases[phase].sends.size() + one.phases[phase].receives.size());
    groups_[phase]->reserve(0, exchanges_.size(), most);
  }
}

void PhasedExchange::begin(int exchange) {
  exchanges_[index(exchange)].ready = true;
  begin_what_may();
}

void PhasedExchange::begin_what_may() {
  for (int phase = 0; phase < phases(); ++phase)
    for (std::size_t& next = next_[index(phase)]; next < exchanges_.size(); ++next) {
      Exchange& one = exchanges_[next];
      if (one.out) continue;
      if (!one.ready || one.ended < phase) break;
      const Messages& messages = one.phases[index(phase)];
      if (!groups_.empty())
        one.work = groups_[index(phase)]->exchange(messages.sends, messages.receives);
      ++one.begun;
    }
}

void PhasedExchange::end_phase(int exchange) {
  ended_(exchange, exchanges_[index(exchange)].ended);
  ++exchanges_[index(exchange)].ended;
}

void PhasedExchange::progress(int but) {
  bool ended = false;
  for (int i = 0; i < static_cast<int>(exchanges_.size()); ++i) {
    Exchange& one = exchanges_[index(i)];
    if (i == but || one.begun == one.ended || !one.work.test()) continue;
    end_phase(i);
    ended = true;
  }
  if (ended && phases() > 1) begin_what_may();
}

void PhasedExchange::wait(int exchange) {
  Exchange& one = exchanges_[index(exchange)];
  const auto others = [&] { progress(exchange); };
  while (!one.out && one.ended < phases()) {
    CONCERTINA_CHECK(one.begun > one.ended, "phase {} of exchange {} never began", one.ended,
                     exchange);
    if (phases() == 1)
      one.work.wait();
    else
      one.work.wait(std::ref(others));
    end_phase(exchange);
    begin_what_may();
  }
}

void PhasedExchange::reset() {
  std::ranges::fill(next_, std::size_t{0});
  for (Exchange& one : exchanges_) {
    one.begun = one.ended = 0;
    one.ready = false;
  }
}

}  // namespace concertina
