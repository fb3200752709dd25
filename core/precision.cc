#include "core/precision.h"

namespace concertina {

std::string_view name_of(const Precision& precision) {
  if (precision.products == Products::as_stored) return name_of(precision.storage);
  return precision.products == Products::tf32 ? "tf32" : "fp8";
}

std::optional<Precision> find_precision(std::string_view name) {
  for (const Precision& precision : kPrecisions)
    if (name_of(precision) == name) return precision;
  return {};
}

std::string list_names(std::span<const Precision> precisions) {
  std::string names;
  for (const Precision& precision : precisions)
    names.append(names.empty() ? "" : ", ").append(name_of(precision));
  return names;
}

}  // namespace concertina
