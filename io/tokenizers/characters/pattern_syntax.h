// A regular expression of Oniguruma, which `tokenizers` uses, as one of PCRE2.
#pragma once

#include <string>
#include <string_view>

namespace concertina {

/// The same pattern for PCRE2, with PCRE2_UTF and PCRE2_UCP: white space is Unicode's, and with
/// `newer` categories have the characters that PCRE2's own tables may lack, which takes longer.
/// Input error, with `where`: a part that the two may read differently.
std::string pcre2_pattern(std::string_view pattern, bool newer, const std::string& where);

/// A pattern, of Oniguruma's syntax, that is found where `text` is.
std::string literal_pattern(std::string_view text);

}  // namespace concertina
