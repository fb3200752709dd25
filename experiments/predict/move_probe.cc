#include "experiments/predict/link_probe.h"

#include <algorithm>
#include <array>

#include "core/arena.h"
#include "core/clock.h"
#include "core/index.h"
#include "core/step_history.h"
#include "experiments/machine/gather.h"
#include "parallel/plan/moves.h"
#include "parallel/runtime/redistribute.h"

namespace concertina {
namespace {

constexpr std::size_t kLeastBytes = std::size_t{1} << 20;
constexpr std::size_t kMostProbed = std::size_t{32} << 20;  // more than a core's share of a cache
constexpr std::size_t kLeastBlock = std::size_t{1} << 16;
constexpr int kTimes = 3;

/// The rank on the same host that is paired with `rank`, symmetrically; -1 if there is none.
int partner_of(int rank, const std::vector<int>& hosts) {
  std::vector<int> here;
  for (int other = 0; other < std::ssize(hosts); ++other)
    if (hosts[at(other)] == hosts[at(rank)]) here.push_back(other);
  const auto place = std::ranges::find(here, rank) - here.begin();
  const auto other = static_cast<std::size_t>(place ^ 1);
  return other < here.size() ? here[other] : -1;
}

class MoveProbe {
 public:
  MoveProbe(Communicator& tensors, Memory& memory, int partner, const Assignment& assignment)
      : tensors_(tensors), memory_(memory), partner_(partner) {
    std::size_t weights = 0;
    for (const Bucket& bucket : assignment.buckets) weights += block_bytes(bucket.elements, 1);
    bytes_ = std::clamp(weights, kLeastBytes, kMostProbed);
    block_ = std::clamp(weights / std::max<std::size_t>(1, assignment.buckets.size()), kLeastBlock,
                        bytes_);
    source_.reserve(bytes_, memory);
    target_.reserve(bytes_, memory);
    memory_.copy(source_.data(), target_.data(), bytes_);
  }

  double bytes() const { return static_cast<double>(bytes_); }
  /// Seconds to exchange bytes() with the partner, into memory that has been written before.
  double exchange() {
    return timed([&] { fill({&target_, 1}, bytes_, true); });
  }
  /// Seconds to copy bytes() within this rank.
  double copy() {
    return timed([&] { fill({&target_, 1}, bytes_, false); });
  }
  /// Seconds to allocate and fill new_bytes() of blocks, which are kept until give_back(), because
  /// the memory of a freed block would be reused while still in the caches.
  double fill_new() {
    const std::size_t first = blocks_.size(), count = bytes_ / block_;
    return timed([&] {
      for (std::size_t i = 0; i < count; ++i) blocks_.emplace_back(block_, memory_);
      fill(std::span(blocks_).subspan(first), block_, partner_ >= 0);
    });
  }
  double give_back() {
    return timed([&] { blocks_.clear(); });
  }
  /// The total size of the blocks that fit into bytes().
  double new_bytes() const { return static_cast<double>(bytes_ - bytes_ % block_); }

 private:
  template <class Body>
  double timed(const Body& body) {
    tensors_.barrier();
    const double start = now();
    body();
    return now() - start;
  }
  /// Copies `bytes` into each block; collective.
  void fill(std::span<const Arena> blocks, std::size_t bytes, bool from_partner) {
    sends_.clear();
    receives_.clear();
    const auto* source = static_cast<const std::byte*>(source_.data());
    for (const Arena& block : blocks) {
      if (from_partner && partner_ >= 0) {
        add_pieces(std::span(source, bytes), partner_, sends_);
        add_pieces(std::span(static_cast<std::byte*>(block.data()), bytes), partner_, receives_);
      } else {
        memory_.copy(source, block.data(), bytes);
      }
      source += bytes;
    }
    tensors_.exchange(sends_, receives_).wait();
  }

  Communicator& tensors_;
  Memory& memory_;
  const int partner_;
  std::size_t bytes_ = 0, block_ = 0;
  Arena source_, target_;
  std::vector<Arena> blocks_;
  std::vector<Send> sends_;
  std::vector<Receive> receives_;
};

}  // namespace

void probe_move(Communicator& world, Communicator& tensors, Memory& memory,
                const std::vector<int>& hosts, const Assignment& assignment, MoveRates& moves) {
  const int partner = partner_of(world.rank(), hosts);
  MoveProbe probe(tensors, memory, partner, assignment);
  probe.exchange();  // the first exchange opens connections
  // A change frees its temporary memory before it allocates blocks, so the blocks reuse its pages.
  for (int i = 0; i < kTimes; ++i) probe.fill_new();
  probe.give_back();
  std::vector<double> exchange, copy, fill_new;
  for (int i = 0; i < kTimes; ++i) {
    exchange.push_back(probe.exchange());
    copy.push_back(probe.copy());
    fill_new.push_back(probe.fill_new());
  }
  const double give_back = probe.give_back() / kTimes;
  const double of_exchange = median(exchange) / probe.bytes(),
               of_copy = median(copy) / probe.bytes(),
               of_new = (median(fill_new) + give_back) / probe.new_bytes();
  const std::vector<double> all = largest_values(
      world, std::array{of_exchange, of_copy, of_new - (partner >= 0 ? of_exchange : of_copy)});
  moves.exchange_s_per_byte = all[0];
  moves.copy_s_per_byte = all[1];
  moves.block_s_per_byte = std::max(0.0, all[2]);
}

}  // namespace concertina
