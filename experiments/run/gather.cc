#include "experiments/run/gather.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

namespace concertina {
namespace {

/// Equal parts, one a rank: part r of `all` is rank r's `mine`.
void gather_equal(Communicator& world, ConstBytes mine, Bytes all) {
  std::vector<Bytes> parts;
  for (int rank = 0; rank < world.size(); ++rank)
    parts.push_back(all.subspan(static_cast<std::size_t>(rank) * mine.size(), mine.size()));
  std::copy(mine.begin(), mine.end(), parts[static_cast<std::size_t>(world.rank())].begin());
  world.all_gather(parts[static_cast<std::size_t>(world.rank())], parts).wait();
}

}  // namespace

std::vector<nlohmann::json> gather_json(Communicator& world, const nlohmann::json& mine) {
  std::string text = mine.dump();
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

std::vector<double> gather_values(Communicator& world, std::span<const double> mine) {
  std::vector<double> all(mine.size() * static_cast<std::size_t>(world.size()));
  gather_equal(world, std::as_bytes(mine), std::as_writable_bytes(std::span(all)));
  return all;
}

std::vector<std::vector<double>> gather_on_first(Communicator& world,
                                                 const std::vector<double>& mine) {
  const auto count = static_cast<double>(mine.size());
  const std::vector<double> counts = gather_values(world, std::span(&count, 1));
  if (world.rank() > 0) {
    if (!mine.empty()) world.isend(std::as_bytes(std::span(mine)), 0).wait();
    return {};
  }
  std::vector<std::vector<double>> all{mine};
  for (int rank = 1; rank < world.size(); ++rank) {
    std::vector<double>& values = all.emplace_back();
    values.resize(static_cast<std::size_t>(counts[static_cast<std::size_t>(rank)]));
    if (!values.empty()) world.irecv(std::as_writable_bytes(std::span(values)), rank).wait();
  }
  return all;
}

}  // namespace concertina
