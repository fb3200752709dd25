#include "experiments/run/shared_snapshot.h"

#include <algorithm>
#include <exception>
#include <map>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/index.h"
#include "experiments/machine/gather.h"
#include "io/file.h"

namespace concertina {
namespace {

/// The lowest rank on each host.
std::map<int, int> speakers(const std::vector<int>& hosts) {
  std::map<int, int> lowest;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank)
    lowest.emplace(hosts[rank], static_cast<int>(rank));
  return lowest;
}

struct Transfer {
  std::size_t shard;
  int to, from;  // ranks
  auto operator<=>(const Transfer&) const = default;
};

/// The transfers, in an order that is the same on all ranks.
std::vector<Transfer> transfers(Communicator& world, const std::vector<int>& hosts,
                                const SharedSnapshot& snapshot,
                                const std::vector<std::size_t>& wanted) {
  const int own = hosts[static_cast<std::size_t>(world.rank())];
  nlohmann::json lacking = nlohmann::json::array();
  for (const std::size_t shard : wanted)
    if (!std::ranges::binary_search(snapshot.holders[shard], own)) lacking.push_back(shard);
  const std::vector<nlohmann::json> all = gather_json(world, lacking);
  const std::map<int, int> speaks = speakers(hosts);
  std::set<std::pair<std::size_t, int>> planned;  // shard and host
  std::vector<Transfer> transfers;
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    for (const nlohmann::json& shard : all[rank])
      if (planned.insert({shard.get<std::size_t>(), hosts[rank]}).second)
        transfers.push_back({shard.get<std::size_t>(), static_cast<int>(rank),
                             speaks.at(snapshot.holders[shard.get<std::size_t>()].front())});
  std::ranges::sort(transfers);
  return transfers;
}

void send_shard(Communicator& world, const std::string& path, std::uint64_t bytes, int to) {
  std::vector<std::byte> content(bytes);
  try {
    open_regular(path, FilePlace::shared).read_at(0, content);
  } catch (const Error&) {
    std::ranges::fill(content, std::byte{});
  }
  world.isend(content, to).wait();
}

void receive_shard(Communicator& world, const std::string& path, std::uint64_t bytes, int from) {
  SnapshotSlot slot(path);
  try {
    slot.open(bytes);
  } catch (const Error&) {  // sent anyway
    std::vector<std::byte> nowhere(bytes);
    world.irecv(nowhere, from).wait();
    throw;
  }
  world.irecv(slot.bytes(), from).wait();
  slot.publish();
}

}  // namespace

std::optional<SharedSnapshot> find_snapshot(Communicator& world, const std::vector<int>& hosts,
                                            const SnapshotRun& run, std::int64_t most) {
  const int own = hosts[static_cast<std::size_t>(world.rank())];
  nlohmann::json here = nlohmann::json::array();
  if (speakers(hosts).at(own) == world.rank())
    for (const SnapshotPart& part : snapshot_parts(run))
      if (part.of.step <= most) here.push_back(to_json(part));
  std::vector<SnapshotPart> parts;
  std::map<std::pair<std::string, SnapshotOf>, std::set<int>> holders;
  const std::vector<nlohmann::json> all = gather_json(world, here);
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    for (const nlohmann::json& json : all[rank]) {
      parts.push_back(parse_snapshot_part(json));
      holders[{parts.back().file, parts.back().of}].insert(hosts[rank]);
    }
  std::optional<WholeSnapshot> whole = newest_whole(std::move(parts));
  if (!whole) return std::nullopt;
  SharedSnapshot snapshot{std::move(whole->commit)};
  const auto& [step, metadata, shards, view] = snapshot.commit.manifest;
  const auto world_then = static_cast<int>(shards.size());
  for (int rank = 0; rank < world_then; ++rank) {
    const std::set<int>& of =
        holders.at({shards[at(rank)].file, {whole->launch, rank, world_then, step}});
    snapshot.holders.emplace_back(of.begin(), of.end());
  }
  return snapshot;
}

void fetch_shards(Communicator& world, const std::vector<int>& hosts,
                  const SharedSnapshot& snapshot, const std::vector<std::size_t>& wanted) {
  std::exception_ptr failed;
  for (const Transfer& one : transfers(world, hosts, snapshot, wanted)) {
    const ShardRecord& shard = snapshot.commit.manifest.shards[one.shard];
    const std::string path = snapshot.commit.path + "/" + shard.file;
    if (one.from == world.rank()) send_shard(world, path, shard.bytes, one.to);
    if (one.to == world.rank()) try {
        receive_shard(world, path, shard.bytes, one.from);
      } catch (const Error&) {
        failed = std::current_exception();
      }
  }
  together(world, [&] {
    if (failed) std::rethrow_exception(failed);
  });
}

}  // namespace concertina
