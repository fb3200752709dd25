#include "experiments/report/run_trace.h"

#include <fmt/format.h>

namespace concertina {

std::string title(const Action& action) {
  if (action.kind == Kind::STEP) return "optimizer";
  if (action.kind == Kind::REDUCE) return fmt::format("reduce stage {}", action.stage);
  const std::string text = to_text(action);
  const std::size_t kind = text.find_first_not_of("0123456789");
  return fmt::format("{} {} stage {}",
                     text.substr(kind, text.find_last_not_of("0123456789") + 1 - kind),
                     action.microbatch, action.stage);
}

}  // namespace concertina
