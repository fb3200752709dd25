#include "core/precision.h"

namespace concertina {

std::string_view name_of(const Precision& precision) {
  switch (precision.products) {
    case Products::as_stored:
      return name_of(precision.storage);
    case Products::tf32:
      return "tf32";
    case Products::fp8:
      return "fp8";
  }
  return "?";
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
