#include "io/toml_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "core/error.h"
#include "core/text/nearest.h"
#include "io/toml_text.h"

namespace concertina {
namespace {

/// Returns where a value begins. A table made of dotted keys has no position of its own.
toml::source_position begin_of(const toml::node& node) {
  const auto before = [](const toml::source_position& a, const toml::source_position& b) {
    return std::pair(a.line, a.column) < std::pair(b.line, b.column);
  };
  toml::source_position first = node.source().begin;
  if (const auto* table = node.as_table())
    for (const auto& [key, value] : *table) {
      const toml::source_position inner = begin_of(value);
      if (first.line == 0 || before(inner, first)) first = inner;
    }
  return first;
}

std::string describe(const toml::node& node) {
  std::ostringstream type;
  node.visit([&](const auto& value) { type << value.type(); });
  return node.is_value() ? fmt::format("{} {}", type.str(), node_text(node)) : type.str();
}

}  // namespace

std::string TomlSource::origin(const toml::node& node) const {
  const toml::source_position at = begin_of(node);
  if (!has_lines_ || at.line == 0) return name_;
  return fmt::format("{}:{}:{}", name_, at.line, at.column);
}

std::string TomlSource::place(const toml::node& node, std::string_view key) const {
  return fmt::format("{}: {}", origin(node), key);
}

std::string TomlSource::place(const toml::source_region& region, std::string_view key) const {
  if (!has_lines_ || region.begin.line == 0) return fmt::format("{}: {}", name_, key);
  return fmt::format("{}:{}:{}: {}", name_, region.begin.line, region.begin.column, key);
}

void TomlSource::refuse(const toml::node& node, std::string_view key, std::string what,
                        std::string fix) const {
  throw_input(std::move(what), place(node, key), std::move(fix));
}

void TomlSource::wrong_type(const toml::node& node, std::string_view key,
                            const std::string& fix) const {
  refuse(node, key, fmt::format("{} has the wrong type: {}", key, describe(node)), fix);
}

void TomlSource::out_of_range(const toml::node& node, std::string_view key, std::string fix) const {
  refuse(node, key, fmt::format("{} = {} is out of range", key, node_text(node)), std::move(fix));
}

bool TomlSource::truth(const toml::node& node, std::string_view key, const std::string& fix) const {
  if (!node.is_boolean()) wrong_type(node, key, fix);
  return **node.as_boolean();
}

std::int64_t TomlSource::whole(const toml::node& node, std::string_view key,
                               const std::string& fix) const {
  if (!node.is_integer()) wrong_type(node, key, fix);
  return **node.as_integer();
}

double TomlSource::number(const toml::node& node, std::string_view key,
                          const std::string& fix) const {
  if (!node.is_number()) wrong_type(node, key, fix);
  return node.value<double>().value_or(std::nan(""));
}

const std::string& TomlSource::text(const toml::node& node, std::string_view key,
                                    const std::string& fix) const {
  if (!node.is_string()) wrong_type(node, key, fix);
  return node.as_string()->get();
}

const toml::array& TomlSource::list(const toml::node& node, std::string_view key,
                                    const std::string& fix) const {
  if (!node.is_array()) wrong_type(node, key, fix);
  return *node.as_array();
}

const toml::table& TomlSource::table(const toml::node& node, std::string_view key,
                                     const std::string& fix) const {
  if (!node.is_table()) wrong_type(node, key, fix);
  return *node.as_table();
}

std::int64_t TomlSource::whole(const toml::node& node, std::string_view key, std::int64_t low,
                               std::int64_t high) const {
  const std::string fix = fmt::format("a whole number from {} to {}", low, high);
  const std::int64_t value = whole(node, key, fix);
  if (value < low || value > high) out_of_range(node, key, fix);
  return value;
}

double TomlSource::number(const toml::node& node, std::string_view key, double low,
                          double high) const {
  const std::string fix = fmt::format("a number from {} to {}", low, high);
  const double value = number(node, key, fix);
  if (!(value >= low && value <= high)) out_of_range(node, key, fix);
  return value;
}

std::string TomlSource::choice(const toml::node& node, std::string_view key,
                               std::span<const std::string_view> words) const {
  const std::string& word = text(node, key, one_of({}, words));
  if (std::ranges::find(words, word) == words.end())
    refuse(node, key, fmt::format("{} = {} is unknown", key, to_toml(word)),
           one_of(nearest_word(word, words), words));
  return word;
}

TomlTable::TomlTable(const TomlSource& source, const toml::node& node, std::string path)
    : source_(source),
      table_(source.table(node, path, fmt::format("use [{}] and lines of KEY = VALUE", path))),
      path_(std::move(path)) {}

const toml::node* TomlTable::take(std::string_view key) {
  taken_.push_back(key);
  return table_.get(key);
}

std::string TomlTable::name(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

void TomlTable::text(std::string_view key, std::string& out) {
  if (const toml::node* node = take(key)) out = source_.text(*node, name(key));
}

void TomlTable::whole(std::string_view key, std::int64_t low, std::int64_t high,
                      std::int64_t& out) {
  if (const toml::node* node = take(key)) out = source_.whole(*node, name(key), low, high);
}

void TomlTable::whole(std::string_view key, int low, int high, int& out) {
  if (const toml::node* node = take(key))
    out = static_cast<int>(source_.whole(*node, name(key), std::int64_t{low}, std::int64_t{high}));
}

void TomlTable::number(std::string_view key, double low, double high, double& out) {
  if (const toml::node* node = take(key)) out = source_.number(*node, name(key), low, high);
}

void TomlTable::refuse(std::string what, std::string fix) const {
  source_.refuse(table_, path_, std::move(what), std::move(fix));
}

void TomlTable::finish() const {
  for (const auto& [key, value] : table_) {
    if (std::ranges::find(taken_, key.str()) != taken_.end()) continue;
    throw_input(fmt::format("unknown key {}", name(key.str())),
                source_.place(key.source(), name(key.str())),
                one_of(nearest_word(key.str(), taken_), taken_));
  }
}

std::vector<TomlMember> in_order(const toml::table& table) {
  std::vector<TomlMember> members;
  for (const auto& [key, value] : table) members.push_back({std::string(key.str()), &value});
  std::ranges::stable_sort(members, [](const TomlMember& a, const TomlMember& b) {
    const toml::source_position at = begin_of(*a.value), other = begin_of(*b.value);
    return std::pair(at.line, at.column) < std::pair(other.line, other.column);
  });
  return members;
}

std::string node_text(const toml::node& node) {
  if (const auto* number = node.as_floating_point()) return to_toml(number->get());
  if (const auto* text = node.as_string()) return to_toml(text->get());
  std::vector<std::string> parts;
  if (const auto* array = node.as_array()) {
    for (const toml::node& value : *array) parts.push_back(node_text(value));
    return fmt::format("[{}]", fmt::join(parts, ", "));
  }
  if (const auto* table = node.as_table()) {
    for (const TomlMember& member : in_order(*table))
      parts.push_back(fmt::format("{} = {}", member.key, node_text(*member.value)));
    return fmt::format("{{{}}}", fmt::join(parts, ", "));
  }
  std::ostringstream text;  // a boolean, an integer, a date
  text << toml::node_view<const toml::node>(node);
  return text.str();
}

toml::table parse_toml(std::string_view text, const TomlSource& source, const std::string& fix) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    throw_input(fmt::format("not valid TOML: {}", error.description()),
                fmt::format("{}:{}:{}", source.name(), error.source().begin.line,
                            error.source().begin.column),
                fix);
  }
}

}  // namespace concertina
