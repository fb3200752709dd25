#include "experiments/train/partner_copies.h"

#include <algorithm>
#include <exception>
#include <span>

#include "core/error.h"
#include "core/index.h"
#include "core/log.h"
#include "experiments/machine/gather.h"

namespace concertina {
namespace {

/// The ranks on each host, by host.
std::vector<std::vector<int>> ranks_by_host(const std::vector<int>& hosts) {
  std::vector<std::vector<int>> ranks(
      static_cast<std::size_t>(1 + *std::ranges::max_element(hosts)));
  for (std::size_t rank = 0; rank < hosts.size(); ++rank)
    ranks[static_cast<std::size_t>(hosts[rank])].push_back(static_cast<int>(rank));
  return ranks;
}

/// The partner of each rank, which keeps its copies: the rank in the same place on the next host.
std::vector<int> partners(const std::vector<int>& hosts) {
  const std::vector<std::vector<int>> ranks = ranks_by_host(hosts);
  std::vector<int> partners(hosts.size(), -1);
  if (ranks.size() < 2) return partners;
  for (std::size_t host = 0; host < ranks.size(); ++host) {
    const std::vector<int>& next = ranks[(host + 1) % ranks.size()];
    for (std::size_t i = 0; i < ranks[host].size(); ++i)
      partners[static_cast<std::size_t>(ranks[host][i])] = next[i % next.size()];
  }
  return partners;
}

}  // namespace

PartnerCopies::PartnerCopies(Communicator& world, const std::vector<int>& hosts,
                             const std::string& prefix) {
  const std::vector<int> all = partners(hosts);
  if (std::ranges::count(all, -1) == std::ssize(all)) return;
  comm_ = world.split(0, world.rank());
  partner_ = all[at(world.rank())];
  std::vector<int> peers{partner_};
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] != world.rank()) continue;
    peers.push_back(static_cast<int>(rank));
    Source& source = sources_.emplace_back();
    source.rank = static_cast<int>(rank);
    for (std::size_t g = 0; g < 2; ++g)
      source.slots[g] =
          std::make_unique<SnapshotSlot>(snapshot_path(prefix, static_cast<int>(rank), g));
  }
  comm_->connect(peers);
  comm_->reserve(1 + sources_.size(), 1);
}

PartnerCopies::~PartnerCopies() {
  if (std::uncaught_exceptions() == 0) finish();
}

/// The ranks have just exchanged the step's status, so a few more numbers cause no delay.
bool PartnerCopies::begin(const SnapshotFile& file) {
  if (!comm_) return false;
  finish();  // a spare rank may still be busy with the last copy
  const double mine[] = {static_cast<double>(file.last().size()),
                         static_cast<double>(file.generation())};
  const double room = make_room(gather_values(*comm_, mine)) ? 1 : 0;
  const bool accepted = gather_values(*comm_, std::span(&room, 1))[at(partner_)] != 0;
  if (room != 0)
    for (Source& source : sources_)
      source.payload = comm_->irecv(source.slots[source.generation]->bytes(), source.rank);
  if (accepted) payload_ = comm_->isend(file.last(), partner_);
  return true;
}

/// Allocates the files for the snapshots to be kept here; returns false if that is impossible, or
/// if one is missing. `sizes`: by rank, the bytes (0 without a snapshot) and the generation.
bool PartnerCopies::make_room(std::span<const double> sizes) {
  for (Source& source : sources_) try {
      if (off_ || sizes[2 * at(source.rank)] == 0) return false;
      source.generation = static_cast<std::size_t>(sizes[2 * at(source.rank) + 1]);
      source.slots[source.generation]->open(static_cast<std::uint64_t>(sizes[2 * at(source.rank)]));
    } catch (const Error& error) {
      log::warn("cannot keep copies of another host's snapshots: {} ({})", error.message(),
                error.where());
      off_ = true;
      return false;
    }
  return true;
}

void PartnerCopies::advance() {
  if (payload_.pending()) payload_.test();
  for (Source& source : sources_)
    if (source.payload.pending() && source.payload.test())
      source.slots[source.generation]->publish();
}

bool PartnerCopies::busy() const {
  return payload_.pending() ||
         std::ranges::any_of(sources_, [](const Source& one) { return one.payload.pending(); });
}

void PartnerCopies::finish() {
  if (payload_.pending()) payload_.wait();
  for (Source& source : sources_) {
    if (!source.payload.pending()) continue;
    source.payload.wait();
    source.slots[source.generation]->publish();
  }
}

}  // namespace concertina
