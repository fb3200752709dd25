// What Hugging Face's `tokenizers` (0.23) takes characters for. Its tables are of several versions
// of Unicode, from 8 to 17: those of library_characters.inc, which tests/golden/make_characters.py
// makes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace concertina {

/// Whether BertNormalizer's clean_text removes it.
bool is_library_control(std::uint32_t code);
/// Whether BertNormalizer's strip_accents removes it.
bool is_library_non_spacing(std::uint32_t code);
/// Whether StripAccents removes it.
bool is_library_combining(std::uint32_t code);
/// Whether it is a word of its own for BertPreTokenizer and Punctuation.
bool is_library_punctuation(std::uint32_t code);
/// Whether it is a number for Digits.
bool is_library_numeric(std::uint32_t code);
/// The text without the characters that `leaves_out` is true of.
std::string text_without(std::string_view text, bool (*leaves_out)(std::uint32_t code));
/// The text in small letters.
std::string library_lower(std::string_view text);
/// "NFC", "NFD", "NFKC" or "NFKD" of the text, which is UTF-8.
std::string library_normal_form(std::string_view text, std::string_view form);
/// Whether UTF-8 text has a character that PCRE2 may not know.
bool has_newer_characters(std::string_view text);
/// Items of a PCRE2 class: the characters of a category, such as "L" or "Nd", that PCRE2 may not
/// know.
std::string newer_characters(std::string_view category);

}  // namespace concertina
