#include "core/clock.h"

#include <fmt/chrono.h>

namespace concertina {

std::string utc_text() {
  using namespace std::chrono;
  const auto since = floor<milliseconds>(system_clock::now().time_since_epoch()).count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                     fmt::gmtime(static_cast<std::time_t>(since / 1000)), since % 1000);
}

}  // namespace concertina
