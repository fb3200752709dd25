#include "experiments/machine/error_text.h"

#include <fmt/format.h>

namespace concertina {

std::string terminal_text(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f)
      result += fmt::format("\\x{:02x}", byte);
    else
      result += c;
  }
  return result;
}

std::string error_text(const Error& error, int rank) {
  const std::string who = rank < 0 ? std::string() : fmt::format(" on rank {}", rank);
  // Not what(): that ends at the first NUL of a broken input.
  std::string text = fmt::format("concertina: error{}: {}\n", who, terminal_text(error.message()));
  if (!error.where().empty()) text += fmt::format("  at: {}\n", terminal_text(error.where()));
  if (!error.fix().empty()) text += fmt::format("  try: {}\n", terminal_text(error.fix()));
  return text;
}

}  // namespace concertina
