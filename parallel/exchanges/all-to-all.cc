#include "parallel/plan/exchange_scheme.h"

namespace concertina {

static ExchangeRow row(const ExchangeShape& shape, int me) {
  const int size = shape.holders();
  ExchangePhase phase;
  for (int step = 1; step < size; ++step) {
    phase.sends.push_back({step, (me + step) % size, (me + step) % size});
    phase.receives.push_back({step, (me + size - step) % size, me});
  }
  return {phase};
}

ExchangeScheme exchange_all_to_all() {
  return {.row = row, .about = "each holder sends each owner its chunk, in ring order"};
}

}  // namespace concertina
