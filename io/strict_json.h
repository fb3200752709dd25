// JSON that others may have written: never nested so deep that whoever copies or prints it runs out
// of stack.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace concertina {

/// The object that `text` is. Input errors, with `where`: no JSON, with byte and line; not an
/// object; a key that an object has twice, of which a reader would take either; a number beyond 64
/// bits; nesting deeper than 100.
nlohmann::json parse_strict_object(std::string_view text, const std::string& where);

/// A copy of what is nested takes the stack's memory; what others write has about ten.
inline constexpr int kDeepestJson = 100;
/// Whether lists and objects are nested deeper than `most` in what may be JSON.
bool nested_deeper(std::string_view text, int most);

/// The value that `text` is; discarded, which is no object, list, number or text, if that is no
/// JSON or nested deeper than 100.
template <class Json = nlohmann::json>
Json parse_json(std::string_view text) {
  return nested_deeper(text, kDeepestJson) ? Json(Json::value_t::discarded)
                                           : Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace concertina
