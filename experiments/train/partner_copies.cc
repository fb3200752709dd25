#include "experiments/train/partner_copies.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <span>
#include <thread>

#include "core/error.h"

namespace concertina {
namespace {

/// The ranks of each host, by host.
std::vector<std::vector<int>> ranks_by_host(const std::vector<int>& hosts) {
  std::vector<std::vector<int>> ranks(
      static_cast<std::size_t>(1 + *std::ranges::max_element(hosts)));
  for (std::size_t rank = 0; rank < hosts.size(); ++rank)
    ranks[static_cast<std::size_t>(hosts[rank])].push_back(static_cast<int>(rank));
  return ranks;
}

/// By rank, the one that keeps its copies: as far down the list of the next host's ranks.
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

template <class Value>
Bytes bytes_of_value(Value& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

}  // namespace

PartnerCopies::PartnerCopies(Communicator& world, const std::vector<int>& hosts,
                             const std::string& prefix) {
  const std::vector<int> all = partners(hosts);
  if (std::ranges::count(all, -1) == std::ssize(all)) return;
  comm_ = world.split(0, world.rank());
  partner_ = all[static_cast<std::size_t>(world.rank())];
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
  comm_->reserve(2 + 2 * sources_.size(), 0);
}

PartnerCopies::~PartnerCopies() {
  if (std::uncaught_exceptions() == 0) finish();
}

/// A few bytes each way: the ranks have just met in the status of the step.
void PartnerCopies::begin(const SnapshotFile* file) {
  if (!comm_) return;
  finish();
  Header header;
  if (file != nullptr) header = {file->last().size(), file->generation()};
  std::vector<Work> headers;
  for (Source& source : sources_)
    headers.push_back(comm_->irecv(bytes_of_value(source.header), source.rank));
  char accepted = 0;
  Work answer = comm_->irecv(bytes_of_value(accepted), partner_);
  comm_->isend(bytes_of_value(header), partner_).wait();
  for (std::size_t s = 0; s < sources_.size(); ++s) {
    headers[s].wait();
    accept(sources_[s]);
  }
  answer.wait();
  if (accepted != 0) file_ = file;
  advance();
}

void PartnerCopies::accept(Source& source) {
  source.accepted = 0;
  SnapshotSlot& slot = *source.slots[source.header.generation % 2];
  if (source.header.bytes > 0 && problem_.empty()) try {
      slot.open(source.header.bytes);
      source.accepted = 1;
    } catch (const Error& error) {
      problem_ = error.message() + " (" + error.where() + ")";
    }
  comm_->isend(bytes_of_value(source.accepted), source.rank).wait();
  if (source.accepted != 0) source.payload = comm_->irecv(slot.bytes(), source.rank);
}

void PartnerCopies::advance() {
  if (file_ != nullptr && file_->whole()) {
    payload_ = comm_->isend(file_->last(), partner_);
    file_ = nullptr;
  }
  if (payload_.pending()) payload_.test();
  for (Source& source : sources_)
    if (source.payload.pending() && source.payload.test())
      source.slots[source.header.generation % 2]->publish();
}

bool PartnerCopies::busy() const {
  return file_ != nullptr || payload_.pending() ||
         std::ranges::any_of(sources_, [](const Source& one) { return one.payload.pending(); });
}

void PartnerCopies::finish() {
  while (file_ != nullptr && !file_->whole())
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  advance();
  if (payload_.pending()) payload_.wait();
  for (Source& source : sources_) {
    if (!source.payload.pending()) continue;
    source.payload.wait();
    source.slots[source.header.generation % 2]->publish();
  }
}

}  // namespace concertina
