// Parses untrusted JSON. The nesting depth is limited, so that copying or printing a value cannot
// overflow the stack.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace concertina {

/// Parses `text` as an object. Throws Error{bad_input} with `where` for invalid JSON (with byte and
/// line), a value that is not an object, a duplicate key (parsers differ in which one they use), a
/// number beyond 64 bits, or nesting deeper than 100.
nlohmann::json parse_strict_object(std::string_view text, const std::string& where);

/// Copying a nested value uses stack memory; files from other programs are about ten levels deep.
inline constexpr int kDeepestJson = 100;
/// Whether lists and objects in `text`, which may be invalid JSON, are nested deeper than `most`.
bool nested_deeper(std::string_view text, int most);

/// Parses `text`. Returns a discarded value, which matches no other type, if the text is invalid
/// JSON or nested more than 100 levels deep.
template <class Json = nlohmann::json>
Json parse_json(std::string_view text) {
  return nested_deeper(text, kDeepestJson) ? Json(Json::value_t::discarded)
                                           : Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace concertina
