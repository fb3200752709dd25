// JSON files of others, in which nothing is there twice.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace concertina {

/// The object that `text` is. Input errors, with `where`: no JSON, with byte and line; not an object; a
/// key that an object has twice, of which a reader would take either; a number beyond 64
/// bits; nesting deeper than 100.
nlohmann::json parse_strict_object(std::string_view text, const std::string& where);

}  // namespace concertina
