#include "io/tokenizers/characters/pattern_syntax.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "core/error.h"
#include "io/tokenizers/characters/library_characters.h"

namespace concertina {
namespace {

/// Unicode's White_Space, which \s means in Oniguruma. PCRE2's \s also matches U+180E, which has
/// not been in White_Space since Unicode 6.3.
constexpr std::string_view kSpace =
    R"(\t-\r\x{20}\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";
constexpr std::string_view kNoSpace =
    R"(\x{0}-\x{8}\x{E}-\x{1F}\x{21}-\x{84}\x{86}-\x{9F}\x{A1}-\x{167F}\x{1681}-\x{1FFF}\x{200B}-\x{2027}\x{202A}-\x{202E}\x{2030}-\x{205E}\x{2060}-\x{2FFF}\x{3001}-\x{10FFFF})";
constexpr std::array<std::string_view, 30> kCategories{
    "L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M",  "Mn", "Mc", "Me", "N",  "Nd", "Nl", "No", "P",
    "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "S",  "Sm", "Sc", "Sk", "So", "Z",  "Zs", "Zl"};
constexpr std::array<std::string_view, 6> kGroups{"(?:", "(?i:", "(?=", "(?!", "(?<=", "(?<!"};

class PatternReader {
 public:
  PatternReader(std::string_view pattern, bool newer, const std::string& where)
      : pattern_(pattern), newer_(newer), where_(where) {}

  std::string read() {
    while (at_ < pattern_.size()) read_item();
    return std::move(made_);
  }

 private:
  [[noreturn]] void refuse(std::size_t begin) const {
    throw_input(fmt::format("the pattern for words has unsupported syntax '{}' at character {}",
                            pattern_.substr(begin, 12), begin + 1),
                where_,
                "use literals, classes, \\s, \\d, \\p{L} and the like, groups, |, ?, *, +, {n,m}");
  }
  char here() const { return at_ < pattern_.size() ? pattern_[at_] : '\0'; }
  std::string newer(std::string_view category) const {
    // For ideographs, the blocks of Unicode 15 and 15.1.
    return !newer_             ? ""
           : category == "Han" ? R"(\x{2EBF0}-\x{2EE5D}\x{31350}-\x{323AF})"
                               : newer_characters(category);
  }
  void copy(std::size_t count) {
    made_ += pattern_.substr(at_, count);
    at_ += count;
  }
  void read_item();
  void read_group();
  void read_class();
  void read_escape(bool in_class);
  void read_property(bool in_class);

  std::string_view pattern_;
  bool newer_;
  const std::string& where_;
  std::string made_;
  std::size_t at_ = 0;
};

void PatternReader::read_item() {
  switch (here()) {
    case '\\':
      return read_escape(false);
    case '[':
      return read_class();
    case '(':
      return read_group();
    case '.':
      made_ += R"([^\n])";
      ++at_;
      return;
    case '^':
    case '$':
      return refuse(at_);
    case '{': {
      const std::size_t begin = at_, end = pattern_.find('}', at_);
      const std::string_view inner = pattern_.substr(at_ + 1, end - at_ - 1);
      const bool counts =
          end != std::string_view::npos && !inner.empty() && inner[0] != ',' &&
          std::ranges::all_of(inner, [](char c) { return (c >= '0' && c <= '9') || c == ','; });
      if (!counts) refuse(begin);
      copy(end + 1 - at_);
      if (here() == '+') refuse(begin);  // possessive in only one of them
      return;
    }
    default:
      copy(1);
  }
}

void PatternReader::read_group() {
  if (!pattern_.substr(at_).starts_with("(?")) {
    made_ += "(?:";
    ++at_;
    return;
  }
  const auto* const group = std::ranges::find_if(
      kGroups, [&](std::string_view begins) { return pattern_.substr(at_).starts_with(begins); });
  if (group == kGroups.end()) refuse(at_);
  copy(group->size());
}

void PatternReader::read_class() {
  const std::size_t begin = at_;
  copy(1);
  if (here() == '^') copy(1);
  if (here() == ']') refuse(begin);
  while (here() != ']') {
    if (at_ >= pattern_.size() || here() == '[' || pattern_.substr(at_).starts_with("&&"))
      refuse(begin);
    here() == '\\' ? read_escape(true) : copy(1);
  }
  copy(1);
}

void PatternReader::read_escape(bool in_class) {
  const std::size_t begin = at_;
  if (++at_ >= pattern_.size()) refuse(begin);
  const auto put_class = [&](std::string_view items) {
    made_ += in_class ? std::string(items) : fmt::format("[{}]", items);
    ++at_;
  };
  const char letter = here();
  if (letter == 's') return put_class(kSpace);
  if (letter == 'S') return put_class(kNoSpace);
  if (letter == 'd') return put_class(R"(\p{Nd})" + newer("Nd"));
  if (letter == 'p' || letter == 'P') return read_property(in_class);
  if (letter == 'x' || letter == 'u') {
    const bool braces = pattern_.substr(at_).starts_with("x{");
    const std::size_t digits = at_ + (braces ? 2 : 1);
    std::size_t end = digits;
    while (end < pattern_.size() &&
           end < digits + (braces          ? 6
                           : letter == 'u' ? 4
                                           : 2) &&
           std::isxdigit(static_cast<unsigned char>(pattern_[end])) != 0)
      ++end;
    const bool whole = braces ? end < pattern_.size() && pattern_[end] == '}' && end > digits
                              : end == digits + (letter == 'u' ? 4 : 2);
    // Two digits denote a byte in Oniguruma, but a character in PCRE2.
    if (!whole || (letter == 'x' && !braces && pattern_[digits] > '7')) refuse(begin);
    made_ += fmt::format(R"(\x{{{}}})", pattern_.substr(digits, end - digits));
    at_ = end + (braces ? 1 : 0);
    return;
  }
  const bool mark = std::ispunct(static_cast<unsigned char>(letter)) != 0 || letter == ' ';
  if (!mark && std::string_view("rntf").find(letter) == std::string_view::npos) refuse(begin);
  made_ += '\\';
  copy(1);
}

/// Reads a property, starting at the p of \p{L}.
void PatternReader::read_property(bool in_class) {
  const std::size_t begin = at_ - 1, end = pattern_.find('}', at_);
  bool negated = here() == 'P';
  if (end == std::string_view::npos || pattern_[at_ + 1] != '{') refuse(begin);
  std::string_view name = pattern_.substr(at_ + 2, end - at_ - 2);
  if (name.starts_with('^')) {
    negated = !negated;
    name.remove_prefix(1);
  }
  const bool known = std::ranges::find(kCategories, name) != kCategories.end() || name == "Han";
  if (!known || (negated && in_class)) refuse(begin);
  const std::string items = fmt::format(R"(\p{{{}}}{})", name, newer(name));
  made_ += in_class ? items : fmt::format("[{}{}]", negated ? "^" : "", items);
  at_ = end + 1;
}

}  // namespace

std::string pcre2_pattern(std::string_view pattern, bool newer, const std::string& where) {
  return PatternReader(pattern, newer, where).read();
}

std::string literal_pattern(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    if (std::ispunct(static_cast<unsigned char>(c)) != 0) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

}  // namespace concertina
