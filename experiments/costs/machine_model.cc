#include "experiments/costs/machine_model.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <sstream>

#include "core/error.h"
#include "experiments/config/byte_size.h"
#include "experiments/config/input_file.h"
#include "experiments/costs/figure.h"

namespace concertina {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kMostMachineBytes = 64 << 20;  // of a machine file
constexpr int kMostMachineRanks = 1 << 16;             // that a machine file may speak of

template <class Owner>
struct Number {
  const char* key;
  double Owner::*value;
};

constexpr std::array kRates = {
    Number<MachineModel>{"flops_per_s", &MachineModel::flops_per_s},
    Number<MachineModel>{"load_s", &MachineModel::load_s},
    Number<MachineModel>{"norm_s_per_element", &MachineModel::norm_s_per_element},
    Number<MachineModel>{"update_s_per_element", &MachineModel::update_s_per_element},
    Number<MachineModel>{"post_s", &MachineModel::post_s},
    Number<MachineModel>{"combine_s_per_byte", &MachineModel::combine_s_per_byte},
    Number<MachineModel>{"cache_read_s_per_byte", &MachineModel::cache_read_s_per_byte}};
constexpr std::array kMoves = {
    Number<MoveRates>{"exchange_s_per_byte", &MoveRates::exchange_s_per_byte},
    Number<MoveRates>{"copy_s_per_byte", &MoveRates::copy_s_per_byte},
    Number<MoveRates>{"block_s_per_byte", &MoveRates::block_s_per_byte},
    Number<MoveRates>{"move_factor", &MoveRates::move_factor},
    Number<MoveRates>{"rebuild_s", &MoveRates::rebuild_s}};
constexpr std::array kDevice = {
    Number<DeviceFigures>{"memory", &DeviceFigures::memory},
    Number<DeviceFigures>{"reserved_bytes", &DeviceFigures::reserved_bytes},
    Number<DeviceFigures>{"peak_flops_per_s", &DeviceFigures::peak_flops_per_s},
    Number<DeviceFigures>{"memory_bytes_per_s", &DeviceFigures::memory_bytes_per_s},
    Number<DeviceFigures>{"layer_s", &DeviceFigures::layer_s}};
constexpr std::array kLink = {Number<LinkCosts>{"latency_s", &LinkCosts::latency},
                              Number<LinkCosts>{"bytes_per_s", &LinkCosts::bandwidth},
                              Number<LinkCosts>{"send_cpu_s_per_byte", &LinkCosts::send_cpu},
                              Number<LinkCosts>{"receive_cpu_s_per_byte", &LinkCosts::receive_cpu},
                              Number<LinkCosts>{"eager_bytes", &LinkCosts::eager_bytes}};

/// Takes keys out of one table and refuses those that are left.
class Table {
 public:
  Table(const nlohmann::json& json, std::string source, std::string path)
      : json_(json), source_(std::move(source)), path_(std::move(path)) {
    if (!json_.is_object()) refuse("is not a table", "keys and values");
  }

  template <class Owner, std::size_t N>
  void numbers(const std::array<Number<Owner>, N>& fields, Owner& owner) {
    for (const auto& field : fields) {
      const auto found = json_.find(field.key);
      if (found == json_.end()) continue;
      seen_.push_back(field.key);
      const std::optional<double> value = figure(*found, field.key);
      if (!value)
        refuse(fmt::format("has {} = {}", field.key, value_text(*found)),
               fmt::format("{}; or leave it out", kFigures));
      owner.*field.value = *value;
    }
  }
  std::optional<int> count(const char* key) {
    const auto found = json_.find(key);
    if (found == json_.end()) return std::nullopt;
    seen_.push_back(key);
    if (!found->is_number_integer() || found->get<std::int64_t>() < 0 ||
        found->get<std::int64_t>() >= kMostMachineRanks)
      refuse(fmt::format("has {} = {}", key, value_text(*found)),
             fmt::format("a whole number from 0 to {}", kMostMachineRanks - 1));
    return found->get<int>();
  }
  const nlohmann::json* child(const char* key) {
    const auto found = json_.find(key);
    if (found == json_.end()) return nullptr;
    seen_.push_back(key);
    return &*found;
  }
  void finish() const {
    for (const auto& [key, value] : json_.items())
      if (std::find(seen_.begin(), seen_.end(), key) == seen_.end())
        refuse(fmt::format("has the unknown key '{}'", key),
               "the keys of a machine file in experiments/README.md");
  }
  /// A number; bytes may be a text, as config keys have them: "80 GiB".
  static std::optional<double> figure(const nlohmann::json& value, std::string_view key) {
    if (value.is_string() && (key == "memory" || key == "reserved_bytes")) {
      const auto size = parse_byte_size(value.get<std::string>());
      return size ? std::optional(static_cast<double>(size->bytes)) : std::nullopt;
    }
    if (!value.is_number() || !is_figure(value.get<double>())) return std::nullopt;
    return value.get<double>();
  }
  /// As a person wrote it: JSON has no word for NaN and infinity.
  static std::string value_text(const nlohmann::json& value) {
    return value.is_number_float() ? fmt::format("{}", value.get<double>()) : value.dump();
  }
  [[noreturn]] void refuse(const std::string& what, const std::string& fix) const {
    throw_input(fmt::format("{} {}", path_.empty() ? "the machine" : path_, what), source_, fix);
  }

 private:
  const nlohmann::json& json_;
  std::string source_, path_;
  std::vector<std::string> seen_;
};

LinkCosts read_link(Table& table) {
  LinkCosts link;
  table.numbers(kLink, link);
  if (!(link.bandwidth > 0)) table.refuse("has bytes_per_s = 0", "a positive bandwidth");
  return link;
}

std::pair<int, int> read_ends(Table& table) {
  const std::optional<int> from = table.count("from"), to = table.count("to");
  if (!from || !to)
    table.refuse(fmt::format("has no '{}'", from ? "to" : "from"), "from = RANK and to = RANK");
  if (*from == *to)
    table.refuse(fmt::format("is from rank {} to itself", *from), "two different ranks");
  return {*from, *to};
}

Json link_json(const LinkCosts& link) {
  Json json = Json::object();
  for (const auto& field : kLink)
    if (std::isfinite(link.*field.value)) json[field.key] = link.*field.value;
  return json;
}

nlohmann::json from_toml(const toml::node& node) {
  if (const auto* table = node.as_table()) {
    nlohmann::json json = nlohmann::json::object();
    for (const auto& [key, value] : *table) json[std::string(key.str())] = from_toml(value);
    return json;
  }
  if (const auto* array = node.as_array()) {
    nlohmann::json json = nlohmann::json::array();
    for (const auto& value : *array) json.push_back(from_toml(value));
    return json;
  }
  if (const auto* whole = node.as_integer()) return whole->get();
  if (const auto* number = node.as_floating_point()) return number->get();
  if (const auto* text = node.as_string()) return text->get();
  std::ostringstream text;
  text << toml::node_view<const toml::node>(node);
  return text.str();
}

}  // namespace

MachineModel machine_from_json(const nlohmann::json& json, const std::string& source) {
  MachineModel machine;
  Table table(json, source, "");
  table.numbers(kRates, machine);
  table.numbers(kMoves, machine.moves);
  table.numbers(kDevice, machine.device);
  machine.ranks_per_host = table.count("ranks_per_host").value_or(0);
  machine.nics_per_host = table.count("nics_per_host").value_or(0);
  for (const auto& [key, link] : {std::pair{"local", &machine.local}, {"remote", &machine.remote}})
    if (const nlohmann::json* found = table.child(key)) {
      Table one(*found, source, key);
      *link = read_link(one);
      one.finish();
    }
  if (const nlohmann::json* pairs = table.child("pair")) {
    if (!pairs->is_array()) table.refuse("has a `pair` that is no list", "[[pair]] tables");
    for (const nlohmann::json& pair : *pairs) {
      Table one(pair, source, "a pair");
      const std::pair<int, int> ends = read_ends(one);
      if (!machine.pairs.emplace(ends, read_link(one)).second)
        one.refuse(fmt::format("from {} to {} is there twice", ends.first, ends.second),
                   "one [[pair]] for each two ranks");
      one.finish();
    }
  }
  table.finish();
  return machine;
}

Json to_json(const MachineModel& machine) {
  Json json = Json::object();
  for (const auto& field : kRates) json[field.key] = machine.*field.value;
  for (const auto& field : kMoves) json[field.key] = machine.moves.*field.value;
  for (const auto& field : kDevice)
    if (machine.device.*field.value != 0) json[field.key] = machine.device.*field.value;
  json["ranks_per_host"] = machine.ranks_per_host;
  if (machine.nics_per_host != 0) json["nics_per_host"] = machine.nics_per_host;
  json["local"] = link_json(machine.local);
  json["remote"] = link_json(machine.remote);
  for (const auto& [ends, link] : machine.pairs) {
    Json pair = {{"from", ends.first}, {"to", ends.second}};
    pair.update(link_json(link));
    json["pair"].push_back(pair);
  }
  return json;
}

MachineModel read_machine_file(const std::string& path) {
  try {
    const std::string text = read_input_file(
        path, kMostMachineBytes, "a machine file, as `concertina bench links` writes it");
    return machine_from_json(from_toml(toml::parse(text)), path);
  } catch (const toml::parse_error& error) {
    throw_input(
        std::string(error.description()),
        fmt::format("{}:{}:{}", path, error.source().begin.line, error.source().begin.column),
        "a machine file, as `concertina bench links` writes it");
  }
}

std::string machine_toml(const MachineModel& machine) {
  std::string text, tables;
  const auto line = [](const std::string& key, const Json& value) {
    return fmt::format("{} = {}\n", key, value.dump());
  };
  const Json all = to_json(machine);
  for (const auto& [key, value] : all.items()) {
    if (value.is_array()) {
      for (const Json& pair : value) {
        tables += fmt::format("\n[[{}]]\n", key);
        for (const auto& [name, number] : pair.items()) tables += line(name, number);
      }
    } else if (value.is_object()) {
      tables += fmt::format("\n[{}]\n", key);
      if (!value.contains("bytes_per_s") && value.value("receive_cpu_s_per_byte", 0.0) > 0)
        tables += "# In shared memory there is no bytes_per_s: a message is its receiver's copy.\n";
      for (const auto& [name, number] : value.items()) tables += line(name, number);
    } else {
      if (key == "flops_per_s" && value == 0)
        text += "# 0 is not known: write the rate of products here, or give --rate.\n";
      text += line(key, value);
    }
  }
  return text + tables;
}

}  // namespace concertina
