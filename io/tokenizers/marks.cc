#include "io/tokenizers/stages.h"

#include <algorithm>

#include "core/error.h"
#include "core/registry.h"
#include "io/tokenizers/characters/json_rules.h"

namespace concertina {
namespace {

using MarksJson = nlohmann::json;
using Parts = std::vector<Marks::Part>;
using MakeMarks = std::optional<Marks> (*)(const MarksJson& step, const std::string& where);

std::optional<Marks> no_marks(const MarksJson& /*step*/, const std::string& /*where*/) {
  return std::nullopt;
}

std::int32_t token_id(const MarksJson& value, const std::string& where) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() >= kMostTokenIds)
    throw_input(fmt::format("the post-processor has the invalid id {}", value.dump().substr(0, 60)),
                where, "use ids from 0 to 2^22 - 1");
  return value.get<std::int32_t>();
}

/// Parses ["[SEP]", 102].
std::int32_t named_token(const MarksJson& step, const char* key, const std::string& where) {
  const MarksJson& pair = list_of(step, key, where);
  if (pair.size() != 2)
    throw_input(fmt::format("{} is not a token and its id", key), where, "use [\"</s>\", 2]");
  return token_id(pair[1], where);
}

Marks::Part mark(std::int32_t token, std::int32_t type = 0) {
  return {.text = -1, .token = token, .type = type};
}

std::optional<Marks> bert_marks(const MarksJson& step, const std::string& where) {
  require_only(step, {}, {"type", "sep", "cls"}, where);
  const std::int32_t sep = named_token(step, "sep", where), cls = named_token(step, "cls", where);
  return Marks{.single = {mark(cls), {.text = 0}, mark(sep)},
               .pair = {mark(cls), {.text = 0}, mark(sep), {.text = 1, .type = 1}, mark(sep, 1)}};
}

std::optional<Marks> roberta_marks(const MarksJson& step, const std::string& where) {
  require_only(step, {}, {"type", "sep", "cls", "trim_offsets", "add_prefix_space"}, where);
  const std::int32_t sep = named_token(step, "sep", where), cls = named_token(step, "cls", where);
  return Marks{.single = {mark(cls), {.text = 0}, mark(sep)},
               .pair = {mark(cls), {.text = 0}, mark(sep), mark(sep), {.text = 1}, mark(sep)}};
}

/// Parses a template: [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": ...}].
Parts read_template(const MarksJson& step, const char* key, const std::string& where) {
  Parts parts;
  for (const MarksJson& item : list_of(step, key, where)) {
    const bool text = item.is_object() && item.contains("Sequence");
    const MarksJson& inner = object_of(item, text ? "Sequence" : "SpecialToken", where);
    const std::string id = text_of(inner, "id", where);
    const std::int64_t type = count_of(inner, "type_id", where);
    if (text) {
      parts.push_back({.text = id == "A" ? 0 : 1, .type = static_cast<std::int32_t>(type)});
      continue;
    }
    const MarksJson& known = object_of(step, "special_tokens", where);
    for (const MarksJson& token : list_of(object_of(known, id.c_str(), where), "ids", where))
      parts.push_back(mark(token_id(token, where), static_cast<std::int32_t>(type)));
  }
  return parts;
}

std::optional<Marks> template_marks(const MarksJson& step, const std::string& where) {
  require_only(step, {}, {"type", "single", "pair", "special_tokens"}, where);
  Marks marks{.single = read_template(step, "single", where),
              .pair = read_template(step, "pair", where)};
  const auto texts = [](const Parts& parts) {
    std::vector<int> order;
    for (const Marks::Part& part : parts)
      if (part.text >= 0) order.push_back(part.text);
    return order;
  };
  if (texts(marks.single) != std::vector{0} || texts(marks.pair) != std::vector{0, 1})
    throw_input("a template needs the text A, or A followed by B", where,
                "use each text once, in order");
  return marks;
}

constexpr Entry<MakeMarks> kPostProcessors[] = {{"BertProcessing", bert_marks},
                                                {"ByteLevel", no_marks},
                                                {"RobertaProcessing", roberta_marks},
                                                {"TemplateProcessing", template_marks}};

}  // namespace

std::optional<Marks> read_marks(const MarksJson& post_processor, const std::string& where) {
  std::optional<Marks> all;
  for (const MarksJson* step : steps_of(post_processor, "processors", where)) {
    const std::string type = type_of(*step, where);
    auto made = lookup<MakeMarks>(kPostProcessors, type, "post-processor", where)(*step, where);
    if (made && all) throw_input("more than one post-processor adds tokens", where, "use only one");
    if (made) all = std::move(made);
  }
  return all;
}

}  // namespace concertina
