// Translates Oniguruma's regular expressions, which `tokenizers` uses, to PCRE2.
#pragma once

#include <string>
#include <string_view>

namespace concertina {

/// Returns the same pattern for PCRE2 with PCRE2_UTF and PCRE2_UCP. White space is Unicode's. With
/// `newer`, categories include characters that PCRE2's tables may lack, which is slower. Throws
/// Error{bad_input} with `where` for syntax that the two libraries may interpret differently.
std::string pcre2_pattern(std::string_view pattern, bool newer, const std::string& where);

/// Returns a pattern in Oniguruma's syntax that matches `text` literally.
std::string literal_pattern(std::string_view text);

}  // namespace concertina
