#include "experiments/predict/machine_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>

#include "core/error.h"
#include "core/text/nearest.h"
#include "experiments/config/byte_size.h"
#include "experiments/machine/program.h"
#include "io/file.h"
#include "io/toml_reader.h"

namespace concertina {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kMostMachineBytes = 64 << 20;  // size of a machine file
constexpr int kMostMachineRanks = 1 << 16;             // ranks in a machine file
constexpr const char* kMachineHint = "a machine file, as `concertina bench links` writes it";

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
    Number<DeviceSpecs>{"memory", &DeviceSpecs::memory},
    Number<DeviceSpecs>{"reserved_bytes", &DeviceSpecs::reserved_bytes},
    Number<DeviceSpecs>{"peak_flops_per_s", &DeviceSpecs::peak_flops_per_s},
    Number<DeviceSpecs>{"memory_bytes_per_s", &DeviceSpecs::memory_bytes_per_s},
    Number<DeviceSpecs>{"layer_s", &DeviceSpecs::layer_s}};
constexpr std::array kLink = {Number<LinkCosts>{"latency_s", &LinkCosts::latency},
                              Number<LinkCosts>{"bytes_per_s", &LinkCosts::bandwidth},
                              Number<LinkCosts>{"send_cpu_s_per_byte", &LinkCosts::send_cpu},
                              Number<LinkCosts>{"receive_cpu_s_per_byte", &LinkCosts::receive_cpu},
                              Number<LinkCosts>{"eager_bytes", &LinkCosts::eager_bytes}};

/// The numbers in one table of a machine file.
class MachineTable : public TomlTable {
 public:
  MachineTable(const TomlSource& source, const toml::node& node, std::string path)
      : TomlTable(source, node, std::move(path)), source_(source) {}

  template <class Owner, std::size_t N>
  void numbers(const std::array<Number<Owner>, N>& fields, Owner& owner) {
    for (const auto& field : fields)
      take(field.key, [&](const toml::node& node, const std::string& name) {
        owner.*field.value = value(node, name, field.key);
      });
  }
  std::optional<int> count(std::string_view key) {
    int value = -1;
    whole(key, 0, kMostMachineRanks - 1, value);
    return value < 0 ? std::nullopt : std::optional(value);
  }
  /// A number or, for bytes, a string with a unit as in config keys: "80 GiB".
  double value(const toml::node& node, const std::string& name, std::string_view key) const {
    const std::string fix = fmt::format("{}, or omit it", kValueRange);
    if (node.is_string() && (key == "memory" || key == "reserved_bytes")) {
      const auto size = parse_byte_size(node.as_string()->get());
      if (!size) source_.out_of_range(node, name, fix);
      return static_cast<double>(size->bytes);
    }
    const double value = source_.number(node, name, fix);
    if (!is_valid_value(value)) source_.out_of_range(node, name, fix);
    return value;
  }

 private:
  const TomlSource& source_;
};

LinkCosts read_link(MachineTable& values) {
  LinkCosts link;
  values.numbers(kLink, link);
  if (!(link.bandwidth > 0))
    values.refuse(fmt::format("{} = 0", values.name("bytes_per_s")),
                  "a positive bandwidth, or omit it for an unlimited one");
  return link;
}

std::pair<int, int> read_ends(MachineTable& values) {
  const std::optional<int> from = values.count("from"), to = values.count("to");
  if (!from || !to)
    values.refuse(fmt::format("a pair has no '{}'", from ? "to" : "from"),
                  "from = RANK and to = RANK");
  if (*from == *to)
    values.refuse(fmt::format("a pair is from rank {} to itself", *from), "two different ranks");
  return {*from, *to};
}

void read_pair(const TomlSource& source, const toml::node& node, MachineModel& machine) {
  MachineTable values(source, node, "pair");
  const std::pair<int, int> ends = read_ends(values);
  if (!machine.pairs.emplace(ends, read_link(values)).second)
    values.refuse(fmt::format("duplicate pair from {} to {}", ends.first, ends.second),
                  "one [[pair]] per pair of ranks");
  values.finish();
}

MachineModel read_machine_table(const TomlSource& source, const toml::table& root) {
  MachineModel machine;
  MachineTable values(source, root, "");
  values.numbers(kRates, machine);
  values.numbers(kMoves, machine.moves);
  values.numbers(kDevice, machine.device);
  machine.ranks_per_host = values.count("ranks_per_host").value_or(0);
  machine.nics_per_host = values.count("nics_per_host").value_or(0);
  for (const auto& [key, link] : {std::pair{"local", &machine.local}, {"remote", &machine.remote}})
    values.take(key, [&](const toml::node& node, const std::string& name) {
      MachineTable of_link(source, node, name);
      *link = read_link(of_link);
      of_link.finish();
    });
  values.take("compared", [&](const toml::node& node, const std::string& name) {
    for (const toml::node& one : source.list(node, name, "sentences in quotes"))
      machine.compared.push_back(source.text(one, name));
  });
  values.take("factors", [&](const toml::node& node, const std::string& name) {
    for (const toml::node& factor : source.list(node, name, "a factor for each rank"))
      machine.factors.push_back(values.value(factor, name, ""));
  });
  values.take("pair", [&](const toml::node& node, const std::string& name) {
    for (const toml::node& pair : source.list(node, name, "[[pair]] tables"))
      read_pair(source, pair, machine);
  });
  values.finish();
  return machine;
}

Json link_json(const LinkCosts& link) {
  Json json = Json::object();
  for (const auto& field : kLink)
    if (std::isfinite(link.*field.value)) json[field.key] = link.*field.value;
  return json;
}

/// Converts JSON to TOML. Null, which TOML lacks, becomes a string.
std::string toml_value(const nlohmann::json& json) {
  if (json.is_null()) return "\"null\"";
  if (!json.is_structured()) return json.dump();
  std::vector<std::string> values;
  for (const auto& [key, value] : json.items())
    values.push_back((json.is_object() ? nlohmann::json(key).dump() + " = " : "") +
                     toml_value(value));
  const std::string list = fmt::format("{}", fmt::join(values, ", "));
  return json.is_object() ? "{" + list + "}" : "[" + list + "]";
}

}  // namespace

MachineModel machine_from_json(const nlohmann::json& json, const std::string& source) {
  if (!json.is_object()) throw_input("the machine is not an object", source, "keys and values");
  const TomlSource toml(source, false);
  const toml::table root = parse_toml("machine = " + toml_value(json), toml, kMachineHint);
  return read_machine_table(toml, *root["machine"].as_table());
}

Json to_json(const MachineModel& machine) {
  Json json = Json::object();
  for (const auto& field : kRates) json[field.key] = machine.*field.value;
  for (const auto& field : kMoves) json[field.key] = machine.moves.*field.value;
  for (const auto& field : kDevice)
    if (machine.device.*field.value != 0) json[field.key] = machine.device.*field.value;
  json["ranks_per_host"] = machine.ranks_per_host;
  if (machine.nics_per_host != 0) json["nics_per_host"] = machine.nics_per_host;
  if (!machine.compared.empty()) json["compared"] = machine.compared;
  if (!machine.factors.empty()) json["factors"] = machine.factors;
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
  const TomlSource source(path);
  return read_machine_table(
      source,
      parse_toml(read_input_file(path, kMostMachineBytes, kMachineHint), source, kMachineHint));
}

std::string machine_toml(const MachineModel& machine) {
  std::string text, tables;
  const auto line = [](const std::string& key, const Json& value) {
    return fmt::format("{} = {}\n", key, value.dump());
  };
  const Json all = to_json(machine);
  for (const auto& [key, value] : all.items()) {
    if (value.is_array() && value[0].is_object()) {
      for (const Json& pair : value) {
        tables += fmt::format("\n[[{}]]\n", key);
        for (const auto& [name, number] : pair.items()) tables += line(name, number);
      }
    } else if (value.is_object()) {
      tables += fmt::format("\n[{}]\n", key);
      if (!value.contains("bytes_per_s") && value.value("receive_cpu_s_per_byte", 0.0) > 0)
        tables += "# Shared memory has no bytes_per_s: the receiver copies the message.\n";
      for (const auto& [name, number] : value.items()) tables += line(name, number);
    } else {
      if (key == "flops_per_s" && value == 0)
        text += "# 0: unknown; set the rate of matrix products here, or use --rate.\n";
      text += line(key, value);
    }
  }
  return text + tables;
}

const std::vector<std::string_view>& machine_presets() {
  static const std::set<std::string> names = [] {
    std::set<std::string> all;
    std::error_code ignored;
    for (const auto& entry :
         std::filesystem::directory_iterator(shipped_folder("machines"), ignored))
      if (entry.path().extension() == ".toml") all.insert(entry.path().stem().string());
    return all;
  }();
  static const std::vector<std::string_view> views(names.begin(), names.end());
  return views;
}

std::string machine_path(const std::string& name) {
  if (name.ends_with(".toml") || name.find('/') != std::string::npos) return name;
  const auto& presets = machine_presets();
  if (std::find(presets.begin(), presets.end(), name) == presets.end())
    throw_input(fmt::format("unknown machine '{}'", name), "--machine",
                presets.empty() ? "a machine file, FILE.toml"
                                : one_of(nearest_word(name, presets), presets) +
                                      ", or a machine file, FILE.toml");
  return shipped_folder("machines") / (name + ".toml");
}

MachineModel read_machine(const std::string& name) {
  return read_machine_file(machine_path(name));
}

}  // namespace concertina
