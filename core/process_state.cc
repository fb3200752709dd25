#include "core/process_state.h"

#include <fmt/format.h>

#include <fstream>
#include <string>

namespace concertina {

bool stands_still(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string text;
  std::getline(file, text);
  const std::size_t end = text.rfind(')');  // of the program's name
  return end != std::string::npos && text.substr(end).starts_with(") T");
}

}  // namespace concertina
