#include "models/hugging_face.h"

#include <fmt/format.h>

namespace concertina {

std::string attention_unit(std::int64_t layer) {
  return fmt::format("{:03}.attention", 1 + 2 * layer);
}
std::string mlp_unit(std::int64_t layer) {
  return fmt::format("{:03}.mlp", 2 + 2 * layer);
}
std::string head_unit(std::int64_t layers) {
  return fmt::format("{:03}.head", 1 + 2 * layers);
}

namespace {

std::vector<std::string> with_ending(const std::vector<std::string>& names,
                                     std::string_view ending) {
  std::vector<std::string> result;
  for (const std::string& name : names) result.push_back(fmt::format("{}.{}", name, ending));
  return result;
}

}  // namespace

void add_dense(std::vector<StoredElsewhere>& all, const std::string& ours,
               const std::vector<std::string>& theirs, bool transposed, bool bias, bool optional) {
  all.push_back({ours + ".weight", with_ending(theirs, "weight"), transposed, false, optional});
  if (bias) all.push_back({ours + ".bias", with_ending(theirs, "bias"), false, false, optional});
}

void add_norm(std::vector<StoredElsewhere>& all, const std::string& ours, const std::string& theirs,
              bool bias, bool optional) {
  add_dense(all, ours, {theirs}, false, bias, optional);
}

}  // namespace concertina
