#include "core/batch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"

namespace concertina {
namespace {

std::string text_of(const Field& field) {
  return fmt::format("{} {} [{}]", field.name, name_of(field.type), fmt::join(field.shape, ", "));
}

[[noreturn]] void refuse(const Field& missing, std::span<const Field> offered) {
  std::vector<std::string> texts;
  for (const Field& field : offered) texts.push_back(text_of(field));
  throw_input(fmt::format("the model reads {}, which the data does not have", text_of(missing)),
              "model.family",
              fmt::format("a model that reads what the data has: {}", fmt::join(texts, ", ")));
}

}  // namespace

void find_fields(const BatchSource& source, std::span<const Field> wanted, std::span<int> indices) {
  const std::span<const Field> offered = source.fields();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto found = std::find(offered.begin(), offered.end(), wanted[i]);
    if (found == offered.end()) refuse(wanted[i], offered);
    indices[i] = static_cast<int>(found - offered.begin());
  }
}

std::vector<Field> text_fields(std::int64_t tokens) {
  return {{"tokens", DType::i32, {tokens}}, {"targets", DType::i32, {tokens}}};
}

}  // namespace concertina
