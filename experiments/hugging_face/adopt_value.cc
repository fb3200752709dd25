#include "experiments/hugging_face/adopt_value.h"

#include <fmt/format.h>

#include "core/error.h"
#include "experiments/config/config_keys.h"
#include "experiments/config/config_toml.h"

namespace concertina {

void adopt_value(const std::string& key, const RunConfig& theirs, const std::string& source,
                 bool at_most, RunConfig& config) {
  const Key& known = *find_key(key);
  const std::string wanted = value_text(known, theirs);
  if (!config.origins.contains(key)) return set_key(key, wanted, source, config);
  const std::string set = value_text(known, config);
  if (set == wanted) return;
  RunConfig right = theirs;
  const KeyField mine = known.field(config), other = known.field(right);
  const bool less = at_most && std::holds_alternative<int*>(mine) &&
                    *std::get<int*>(mine) <= *std::get<int*>(other);
  if (!less)
    throw_input(fmt::format("{} = {}, but the model of model.from has {}", key, set, wanted),
                config.where(key), fmt::format("{} = {}", key, wanted));
}

}  // namespace concertina
