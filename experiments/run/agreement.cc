#include "experiments/run/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "core/cpu/isa.h"
#include "core/error.h"
#include "core/index.h"
#include "experiments/config/config_environment.h"
#include "experiments/config/config_keys.h"
#include "experiments/config/schedule_file.h"
#include "experiments/machine/gather.h"
#include "experiments/machine/machine.h"
#include "experiments/machine/program.h"
#include "io/file.h"
#include "io/sha256.h"

namespace concertina {
namespace {

constexpr std::string_view kFloatingPoint = "floating-point arithmetic";
constexpr std::size_t kMostText = 100;  // maximum length of a value in the message

/// Whether ranks may have different values for the key: hosts have separate directories and cores;
/// the contents of files are compared separately.
bool may_differ(KeyRole role) {
  return role == KeyRole::run_place || role == KeyRole::host_place || role == KeyRole::host ||
         role == KeyRole::files;
}

/// Describes this thread's arithmetic: "rounds to nearest" and other settings that change results.
std::string floating_point() {
  using Limits = std::numeric_limits<float>;
  const volatile float one = 1, part = Limits::epsilon() / 8, least = Limits::min();
  const volatile float up = one + part, down = -one - part, most = one + 7 * part;
  const volatile float denormal = Limits::denorm_min(), half = least / 2;
  std::string text = up > one      ? "rounds up"
                     : down < -one ? "rounds down"
                     : most > one  ? "rounds to nearest"
                                   : "rounds toward zero";
  if (std::bit_cast<std::uint32_t>(float{half}) == 0) text += ", flushes denormal results to 0";
  if (denormal * 0x1p30F == 0) text += ", treats denormal operands as 0";
  return text;
}

std::string digest_of(const std::vector<RankClaim>& claims) {
  Sha256 hash;
  for (const RankClaim& claim : claims)
    hash.update(fmt::format("{}\n{} {}\n", claim.key, claim.value.size(), claim.value));
  return hash.hex();
}

const std::string* find_claim(const std::vector<RankClaim>& claims, const std::string& key) {
  const auto found = std::find_if(claims.begin(), claims.end(),
                                  [&](const RankClaim& claim) { return claim.key == key; });
  return found == claims.end() ? nullptr : &found->value;
}

/// Errors in the file are reported where it is parsed.
std::string file_digest(const std::string& path) try {
  return sha256_hex(read_file(path, kMostScheduleBytes));
} catch (const Error&) {
  return "unreadable";
}

std::string shortened(const std::string& text) {
  return text.size() <= kMostText ? text : text.substr(0, kMostText) + "...";
}

nlohmann::json refusal_of(std::string what, std::string where, std::string fix) {
  return {std::move(what), std::move(where), std::move(fix)};
}

/// The first claim of rank 0 that differs on another rank, or the first claim that rank 0 lacks.
nlohmann::json difference(const std::vector<std::vector<RankClaim>>& all, const RunConfig& config) {
  std::vector<std::string> keys;
  for (const std::vector<RankClaim>& claims : all)
    for (const RankClaim& claim : claims)
      if (&claims == &all[0] || find_claim(all[0], claim.key) == nullptr) keys.push_back(claim.key);
  // A variable that rank 0 lacks explains more than the key that it sets.
  std::ranges::stable_partition(keys, names_key);
  for (const std::string& key : keys) {
    std::map<std::string, std::vector<int>> ranks_with;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      const std::string* value = find_claim(all[rank], key);
      ranks_with[value == nullptr ? "nothing" : *value].push_back(static_cast<int>(rank));
    }
    if (ranks_with.size() == 1) continue;
    std::vector<std::pair<std::vector<int>, std::string>> values;
    for (const auto& [value, ranks] : ranks_with) values.emplace_back(ranks, shortened(value));
    std::sort(values.begin(), values.end());
    std::vector<std::string> texts;
    for (const auto& [ranks, value] : values)
      texts.push_back(fmt::format("{} on {}", value, ranks_text(ranks)));
    return refusal_of(fmt::format("the ranks do not agree on {}: {}", key, fmt::join(texts, ", ")),
                      find_key(key) != nullptr ? config.where(key) + " (rank 0)" : key,
                      names_key(key) ? fmt::format("mpirun -x {}, to set it on all ranks", key)
                      : key == kFloatingPoint
                          ? "remove the library that changes it (LD_PRELOAD; -ffast-math)"
                          : "the same program, options and files for all ranks");
  }
  return refusal_of("the ranks do not agree", "start of the run", "one program for all ranks");
}

/// The refusal of an instruction set that some ranks' processors lack; null if all have it. `isas`:
/// the number of instruction sets that each rank supports.
nlohmann::json missing_isa(const std::vector<int>& isas, const RunConfig& config) {
  if (config.numerics.isa == "auto" || config.run.device != "cpu") return nullptr;
  const std::vector<std::string_view> names = cpu::isa_names();
  const auto wanted = std::ranges::find(names, config.numerics.isa) - names.begin();
  std::vector<int> without;
  for (std::size_t rank = 0; rank < isas.size(); ++rank)
    if (isas[rank] <= wanted) without.push_back(static_cast<int>(rank));
  if (without.empty()) return nullptr;
  return refusal_of(
      fmt::format("not on {}: {}", ranks_text(without), config.numerics.isa),
      config.where("numerics.isa"),
      fmt::format("numerics.isa = \"auto\", or \"{}\"", names[at(std::ranges::min(isas) - 1)]));
}

/// The claims of all ranks, on rank 0.
std::vector<std::vector<RankClaim>> gather_claims(Communicator& world,
                                                  const std::vector<RankClaim>& mine) {
  nlohmann::json json = nlohmann::json::array();
  for (const RankClaim& claim : mine) json.push_back({claim.key, claim.value});
  std::vector<std::vector<RankClaim>> all;
  for (const nlohmann::json& one : gather_json_on_first(world, json)) {
    all.emplace_back();
    for (const nlohmann::json& claim : one) all.back().push_back({claim[0], claim[1]});
  }
  return all;
}

}  // namespace

std::vector<RankClaim> claims_of(const RunConfig& config, const std::string& command,
                                 const std::string& data) {
  std::vector<RankClaim> claims{{"the program", program_identity()},
                                {"the command", command},
                                {std::string(kFloatingPoint), floating_point()}};
  for (const auto& [variable, value] : from_environment(config))
    claims.push_back({variable, value});
  for (const Key& key : config_keys()) {
    const bool file = key.name == "parallel.schedule" && is_schedule_file(config.parallel.schedule);
    if (may_differ(key.role)) continue;
    claims.push_back({std::string(key.name), file ? "a file" : value_text(key, config)});
    if (file) claims.push_back({"the schedule file", file_digest(config.parallel.schedule)});
  }
  claims.push_back({config.data.text.empty() ? "data.files" : "data.text", data});
  if (config.run.device == "cpu") claims.push_back({"oneDNN", cpu::onednn_version()});
  return claims;
}

std::string agree(Communicator& world, const RunConfig& config,
                  const std::vector<RankClaim>& mine) {
  const std::vector<nlohmann::json> hellos =
      gather_json(world, {digest_of(mine), cpu::available_isas().size()});
  std::vector<int> isas;
  bool alike = true;
  for (const nlohmann::json& hello : hellos) {
    isas.push_back(hello[1]);
    alike = alike && hello[0] == hellos[0][0];
  }
  std::vector<std::vector<RankClaim>> claims;
  if (!alike) claims = gather_claims(world, mine);
  const nlohmann::json refusal = from_first(
      world, [&] { return alike ? missing_isa(isas, config) : difference(claims, config); });
  if (!refusal.is_null()) throw_input(refusal[0], refusal[1], refusal[2]);
  if (config.run.device != "cpu") return {};
  if (config.numerics.isa != "auto") return config.numerics.isa;
  return std::string(cpu::isa_names()[at(std::ranges::min(isas) - 1)]);
}

}  // namespace concertina
