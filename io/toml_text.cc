#include "io/toml_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace concertina {

std::string to_toml(bool value) {
  return value ? "true" : "false";
}
std::string to_toml(int value) {
  return fmt::format("{}", value);
}
std::string to_toml(std::int64_t value) {
  return fmt::format("{}", value);
}

std::string to_toml(double value) {
  std::string text = fmt::format("{}", value);  // shortest text that parses to the same bits
  if (text.find_first_of(".einf") == std::string::npos) text += ".0";
  return text;
}

std::string to_toml(const std::string& value) {
  std::string text = "\"";
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      text += {'\\', c};
    else if (c == '\n')
      text += "\\n";
    else if (c == '\t')
      text += "\\t";
    else if (byte < 0x20 || byte == 0x7f)
      text += fmt::format("\\u{:04X}", byte);
    else
      text += c;
  }
  return text + '"';
}

std::string to_toml(const std::vector<std::string>& values) {
  std::vector<std::string> items;
  for (const std::string& value : values) items.push_back(to_toml(value));
  return fmt::format("[{}]", fmt::join(items, ", "));
}

std::string to_toml(const std::vector<std::int64_t>& values) {
  return fmt::format("[{}]", fmt::join(values, ", "));
}

std::string to_toml(const std::vector<double>& values) {
  if (values.size() == 1) return to_toml(values[0]);
  std::vector<std::string> items;
  for (const double value : values) items.push_back(to_toml(value));
  return fmt::format("[{}]", fmt::join(items, ", "));
}

std::string to_toml(const std::array<double, 2>& values) {
  return fmt::format("[{}, {}]", to_toml(values[0]), to_toml(values[1]));
}

}  // namespace concertina
