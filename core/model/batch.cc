#include "core/model/batch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"

namespace concertina {
namespace {

std::string text_of(const Field& field) {
  return fmt::format("{} {} [{}]{}", field.name, name_of(field.type), fmt::join(field.shape, ", "),
                     field.most > 0 ? fmt::format(" with at most {} valid", field.most) : "");
}

bool serves(const Field& offered, const Field& wanted) {
  const bool few = wanted.most == 0 || (offered.most > 0 && offered.most <= wanted.most);
  return few && offered.name == wanted.name && offered.type == wanted.type &&
         offered.shape == wanted.shape;
}

[[noreturn]] void refuse(const Field& missing, std::span<const Field> offered) {
  const auto same_name = std::ranges::find(offered, missing.name, &Field::name);
  if (same_name != offered.end())
    throw_input(fmt::format("the model reads {}, but the data has {}", text_of(missing),
                            text_of(*same_name)),
                "model", "a model whose size matches the data, or other data");
  std::vector<std::string> texts;
  for (const Field& field : offered) texts.push_back(text_of(field));
  throw_input(
      fmt::format("the model reads {}, which the data does not provide", text_of(missing)),
      "model.family",
      fmt::format("another data.format, or a model and task that read the fields of this data: {}",
                  fmt::join(texts, ", ")));
}

}  // namespace

void find_fields(std::span<const Field> offered, std::span<const Field> wanted,
                 std::span<int> places) {
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto found =
        std::ranges::find_if(offered, [&](const Field& field) { return serves(field, wanted[i]); });
    if (found == offered.end()) refuse(wanted[i], offered);
    places[i] = static_cast<int>(found - offered.begin());
  }
}

std::int64_t masked_count(std::int64_t tokens) {
  return std::max<std::int64_t>(1, (15 * tokens + 50) / 100);
}

Field tokens_field(std::int64_t tokens) {
  return {"tokens", DType::i32, {tokens}};
}
Field targets_field(std::int64_t tokens, std::int64_t most) {
  return {.name = "targets", .shape = {tokens}, .most = most, .target = true};
}
Field types_field(std::int64_t tokens) {
  return {"types", DType::i32, {tokens}};
}
Field lengths_field() {
  return {"lengths", DType::i32, {}};
}
Field starts_field(std::int64_t tokens) {
  return {"starts", DType::i32, {tokens}};
}
Field label_field() {
  return {.name = "label", .shape = {}, .target = true};
}
Field scores_field(std::int64_t scores) {
  return {.name = "scores", .type = DType::f32, .shape = {scores}, .target = true};
}
Field tags_field(std::int64_t tokens) {
  return {.name = "tags", .shape = {tokens}, .target = true};
}
Field start_field() {
  return {.name = "start", .shape = {}, .target = true};
}
Field end_field() {
  return {.name = "end", .shape = {}, .target = true};
}
Field teacher_field(std::int64_t rows, std::int64_t columns) {
  return {"teacher", DType::f32, {rows, columns}};
}
Field image_field(std::int64_t channels, std::int64_t height, std::int64_t width) {
  return {"image", DType::f32, {channels, height, width}};
}

std::vector<Field> text_fields(std::int64_t tokens) {
  return {tokens_field(tokens), targets_field(tokens)};
}

void blank_sample(std::span<const Field> fields, std::span<const View> views) {
  for (std::size_t f = 0; f < fields.size(); ++f) {
    if (views[f].empty()) continue;
    const Field& field = fields[f];
    const auto count = static_cast<std::size_t>(field.elements());
    if (field.type == DType::f32)
      std::fill_n(views[f].f32(), count, field.target ? kNoScore : 0.0F);
    else
      std::fill_n(views[f].i32(), count, field.target ? kIgnored : field.name == "lengths" ? 1 : 0);
  }
}

}  // namespace concertina
