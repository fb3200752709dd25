#include "io/strict_json.h"

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "core/error.h"

namespace concertina {

bool nested_deeper(std::string_view text, int most) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') quoted = !quoted;
    if (quoted && c == '\\') ++i;  // skip an escaped character, such as a quote
    if (quoted) continue;
    if ((c == '[' || c == '{') && ++depth > most) return true;
    if (c == ']' || c == '}') --depth;
  }
  return false;
}

nlohmann::json parse_strict_object(std::string_view text, const std::string& where) {
  using Event = nlohmann::json::parse_event_t;
  std::vector<std::unordered_set<std::string>> open;  // the keys of each open object
  const auto check = [&](int depth, Event event, const nlohmann::json& value) {
    if ((event == Event::object_start || event == Event::array_start) && depth >= kDeepestJson)
      throw_input(fmt::format("objects and lists are nested to depth {}", depth + 1), where,
                  fmt::format("reduce the depth to at most {}", kDeepestJson));
    if (event == Event::object_start) open.emplace_back();
    if (event == Event::object_end) open.pop_back();
    if (event != Event::key) return true;
    const auto& key = value.get_ref<const std::string&>();
    if (!open.back().insert(key).second)
      throw_input(fmt::format("duplicate key '{}'", key.substr(0, 60)), where,
                  "use each key only once in an object");
    return true;
  };
  nlohmann::json parsed;
  try {
    parsed = nlohmann::json::parse(text, check);
  } catch (const nlohmann::json::parse_error& error) {
    const std::string_view before = text.substr(0, std::min(error.byte, text.size()));
    const std::string line = text.find('\n') == std::string_view::npos
                                 ? ""
                                 : fmt::format(", line {}", 1 + std::ranges::count(before, '\n'));
    if (std::string_view(error.what()).find("surrogate") != std::string_view::npos)
      throw_input(fmt::format("the escape before byte {}{} is half of a character (a lone "
                              "surrogate)",
                              error.byte, line),
                  where, "use both halves, such as \\ud83d\\ude00, or the character in UTF-8");
    throw_input(fmt::format("invalid JSON at byte {}{}", error.byte, line), where,
                "check whether the file was truncated or modified");
  } catch (const nlohmann::json::out_of_range& error) {
    throw_input(fmt::format("a number is too large: {}", error.what()), where,
                "use numbers that fit into 64 bits");
  }
  if (!parsed.is_object()) throw_input("expected a JSON object", where, "use {\"...\": ...}");
  return parsed;
}

}  // namespace concertina
