#include "io/datasets/class_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "io/file.h"

namespace concertina {
namespace {

constexpr std::uint64_t kLargestNames = std::uint64_t{1} << 24;

}  // namespace

std::vector<std::string> class_names_in(const std::string& path) {
  const std::string text = read_file(path, kLargestNames);
  std::vector<std::string> names;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string name = text.substr(at, end - at);
    if (name.ends_with('\r')) name.pop_back();
    names.push_back(std::move(name));
    at = end + 1;
  }
  while (!names.empty() && names.back().empty()) names.pop_back();
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i].empty())
      throw_input("empty class name", fmt::format("{}:{}", path, i + 1), "use one name per line");
  return names;
}

}  // namespace concertina
