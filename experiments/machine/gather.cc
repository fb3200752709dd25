#include "experiments/machine/gather.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "core/error.h"
#include "core/host_name.h"
#include "core/log.h"

namespace concertina {
namespace {

/// Replaces invalid UTF-8, for example in a path, with U+FFFD.
std::string dump(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

nlohmann::json error_json(const Error& error) {
  return {{"code", static_cast<int>(error.code())},
          {"what", error.message()},
          {"where", error.where()},
          {"fix", error.fix()},
          {"system", error.system_error()}};
}

void run_cleanup(const std::function<void()>& cleanup) {
  try {
    if (cleanup) cleanup();
  } catch (const Error& error) {
    log::warn("{}", error.what());
  }
}

/// Gathers parts of equal size: part r of `all` is rank r's `mine`.
void gather_equal(Communicator& world, ConstBytes mine, Bytes all) {
  std::vector<Bytes> parts;
  for (int rank = 0; rank < world.size(); ++rank)
    parts.push_back(all.subspan(static_cast<std::size_t>(rank) * mine.size(), mine.size()));
  std::copy(mine.begin(), mine.end(), parts[static_cast<std::size_t>(world.rank())].begin());
  world.all_gather(parts[static_cast<std::size_t>(world.rank())], parts).wait();
}

/// Gathers strings or vectors of any length on rank 0, in rank order; empty on other ranks.
template <class Values>
std::vector<Values> gather_unequal(Communicator& world, const Values& mine) {
  const auto count = static_cast<double>(mine.size());
  const std::vector<double> counts = gather_values(world, std::span(&count, 1));
  if (world.rank() > 0) {
    if (!mine.empty()) world.isend(std::as_bytes(std::span(mine)), 0).wait();
    return {};
  }
  std::vector<Values> all{mine};
  for (int rank = 1; rank < world.size(); ++rank) {
    Values& values = all.emplace_back();
    values.resize(static_cast<std::size_t>(counts[static_cast<std::size_t>(rank)]));
    if (!values.empty()) world.irecv(std::as_writable_bytes(std::span(values)), rank).wait();
  }
  return all;
}

}  // namespace

std::vector<int> host_of_ranks(Communicator& world) {
  std::vector<std::string> names;
  std::vector<int> hosts;
  for (const nlohmann::json& one : gather_json(world, host_name())) {
    const auto found = std::find(names.begin(), names.end(), one.get<std::string>());
    hosts.push_back(static_cast<int>(found - names.begin()));
    if (found == names.end()) names.push_back(one.get<std::string>());
  }
  return hosts;
}

int ranks_per_host(const std::vector<int>& hosts) {
  const int first = static_cast<int>(std::count(hosts.begin(), hosts.end(), 0));
  if (first == static_cast<int>(hosts.size())) return 0;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank)
    if (hosts[rank] != static_cast<int>(rank) / first) return 0;
  return first;
}

std::vector<nlohmann::json> gather_json(Communicator& world, const nlohmann::json& mine) {
  std::string text = dump(mine);
  const std::uint64_t length = text.size();
  std::vector<std::uint64_t> lengths(static_cast<std::size_t>(world.size()));
  gather_equal(world, std::as_bytes(std::span(&length, 1)),
               std::as_writable_bytes(std::span(lengths)));

  const std::size_t longest = *std::max_element(lengths.begin(), lengths.end());
  text.resize(longest, ' ');
  std::string all(longest * lengths.size(), ' ');
  gather_equal(world, std::as_bytes(std::span(text)), std::as_writable_bytes(std::span(all)));
  std::vector<nlohmann::json> values;
  for (std::size_t rank = 0; rank < lengths.size(); ++rank)
    values.push_back(nlohmann::json::parse(all.substr(rank * longest, lengths[rank])));
  return values;
}

std::vector<nlohmann::json> gather_json_on_first(Communicator& world, const nlohmann::json& mine) {
  const std::string text = dump(mine);
  std::vector<nlohmann::json> values;
  for (const std::string& one : gather_unequal(world, text))
    values.push_back(nlohmann::json::parse(one));
  return values;
}

void together(Communicator& world, const std::function<void()>& work,
              const std::function<void()>& cleanup) {
  nlohmann::json mine;
  try {
    work();
  } catch (const Error& error) {
    mine = error_json(error);
  }
  const std::vector<nlohmann::json> all = gather_json(world, mine);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const nlohmann::json& error = all[rank];
    if (error.is_null()) continue;
    run_cleanup(cleanup);
    std::string where = error["where"];
    if (world.size() > 1) where += fmt::format(" (rank {})", rank);
    throw Error(static_cast<Exit>(error["code"].get<int>()), error["what"], where, error["fix"],
                error["system"]);
  }
}

nlohmann::json from_first(Communicator& world, const std::function<nlohmann::json()>& make) {
  nlohmann::json value;
  together(world, [&] {
    if (world.rank() == 0) value = make();
  });
  return gather_json(world, value)[0];
}

std::vector<double> gather_values(Communicator& world, std::span<const double> mine) {
  std::vector<double> all(mine.size() * static_cast<std::size_t>(world.size()));
  gather_equal(world, std::as_bytes(mine), std::as_writable_bytes(std::span(all)));
  return all;
}

std::vector<double> largest_values(Communicator& world, std::span<const double> mine) {
  std::vector<double> most(mine.size());
  const std::vector<double> all = gather_values(world, mine);
  for (std::size_t i = 0; i < all.size(); ++i)
    most[i % most.size()] = std::max(most[i % most.size()], all[i]);
  return most;
}

std::vector<std::vector<double>> gather_on_first(Communicator& world,
                                                 const std::vector<double>& mine) {
  return gather_unequal(world, mine);
}

}  // namespace concertina
