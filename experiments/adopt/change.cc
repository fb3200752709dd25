#include "experiments/adopt/change.h"

#include "core/error.h"
#include "experiments/predict/predict_memory.h"

namespace concertina {

std::optional<Adoption> adopt_change(Change& change, Trainer& trainer, int threads) {
  try {
    require_memory_for(change.next->assignment, trainer, threads);
  } catch (const Error& error) {
    if (error.code() != Exit::bad_input) throw;
    change.events.push_back(
        {EventKind::refused, {{"why", error.message()}, {"where", error.where()}}});
    change.reasons = {fmt::format("nothing changes: {} ({})", error.message(), error.where())};
    return std::nullopt;
  }
  const Adoption adoption =
      trainer.adopt(change.next->request, Assignment(change.next->assignment));
  change.events.at(change.cause)
      .facts.update({{"layout", short_form(trainer.layout())},
                     {"seconds", adoption.seconds},
                     {"moved_bytes", adoption.bytes},
                     {"extra_bytes", adoption.extra_bytes}});
  return adoption;
}

}  // namespace concertina
