#include "io/csv.h"

namespace concertina {

std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) line += ',';
    if (cells[i].find_first_of(",\"\r\n") == std::string::npos) {
      line += cells[i];
      continue;
    }
    line += '"';
    for (const char c : cells[i]) line += c == '"' ? std::string("\"\"") : std::string(1, c);
    line += '"';
  }
  return line + "\n";
}

std::optional<std::vector<std::vector<std::string>>> parse_csv(const std::string& text) {
  std::vector<std::vector<std::string>> lines;
  for (std::size_t at = 0; at < text.size();) {
    std::vector<std::string>& cells = lines.emplace_back(1);
    for (bool quoted = false; at < text.size(); ++at) {
      const char c = text[at];
      if (quoted && c == '"' && at + 1 < text.size() && text[at + 1] == '"')
        cells.back() += text[++at];
      else if (quoted && c == '"')
        quoted = false;
      else if (quoted)
        cells.back() += c;
      else if (c == '"' && !cells.back().empty())
        return std::nullopt;
      else if (c == '"')
        quoted = true;
      else if (c == ',')
        cells.emplace_back();
      else if (c == '\n')
        break;
      else if (c != '\r')
        cells.back() += c;
      if (quoted && at + 1 == text.size()) return std::nullopt;
    }
    ++at;
  }
  return lines;
}

}  // namespace concertina
