// Gradients of one rank: summed over its microbatches (GradientTree), exchanged with the other
// holders of each bucket during the backward pass using the assignment's scheme
// (parallel/plan/exchange_scheme.h), and combined in canonical order wherever shares meet.
// Invariants: sums are bit-identical for any layout and scheme; a bucket's exchange starts with
// this rank's last gradient for it, in the same order on all ranks of a group, as untagged FIFO
// channels require; no call after attach() and connect() allocates.
#pragma once

#include <map>
#include <vector>

#include "core/arena.h"
#include "core/model/stage.h"
#include "parallel/comm/communicator.h"
#include "parallel/plan/assignment.h"
#include "parallel/plan/local_shares.h"
#include "parallel/runtime/gradient_tree.h"
#include "parallel/runtime/groups.h"
#include "parallel/runtime/phased_exchange.h"

namespace concertina {

class GradientExchange final : public GradientSink {
 public:
  /// Pure: allocates and sends nothing. Skips frozen buckets. `assignment` must outlive it.
  GradientExchange(const Job& job, const Assignment& assignment, int rank);

  /// Size of the buffers for gradient sums and for received pieces, in bytes.
  std::size_t sum_bytes() const;
  std::size_t staging_bytes() const;
  void attach(Arena& arena);
  void connect(const Groups& groups, Backend& backend);

  /// Skips the gradients and exchange of these buckets (the same on all ranks) in the next step.
  void skip(SkippedBuckets skipped);

  GradientTarget begin(int bucket, int use, int microbatch) override;
  void end(int bucket, int use, int microbatch) override;

  /// Polls pending exchanges and combines complete ones; never waits.
  void progress() {
    for (PhasedExchange& queue : queues_) queue.progress();
  }
  /// Waits until this rank's part of every bucket is reduced and nothing is pending, then resets.
  void finish();

  /// The gradient of this rank's part of `bucket` (possibly empty), after finish(). Unspecified if
  /// the bucket is skipped.
  View reduced(int bucket) const;

 private:
  /// One use of a bucket on one holder, with its final nodes.
  struct Use {
    int unit = 0, index = 0;  // index in the bucket's uses
    GradientTree tree;
  };
  /// A piece of a chunk received from a peer.
  struct Arrival {
    int phase = 0, chunk = 0;
    Piece piece;
    Receive message;
    View memory;
  };
  struct Addition {
    View left, right;
  };
  using Held = std::map<Piece, View>;  // pieces of one chunk
  struct Item {
    int bucket = 0, me = 0;
    std::size_t elements = 0;
    std::vector<int> ranks;   // holders
    std::vector<Part> parts;  // by holder
    std::vector<Use> uses;    // on this rank, by ascending unit
    ExchangeRow row;
    std::vector<Arrival> arrivals;                   // in receive order
    std::vector<PhasedExchange::Messages> messages;  // by phase
    std::vector<std::vector<Addition>> additions;    // by phase, performed at its end
    View reduced;
    std::size_t queue = 0;
    int place = 0;  // position in its queue
    int open_uses = 0;
    bool skipped = false;
  };

  void make_item(const Assignment& assignment, int index,
                 const std::vector<std::vector<int>>& orders, int rank, LocalShares& shares);
  void add_arrivals(Item& item, ShareFlow& flow);
  void compile(Item& item);
  void add_up(Held& held, std::vector<Addition>& additions) const;
  Item& item_of(int bucket) {
    return items_[static_cast<std::size_t>(index_[static_cast<std::size_t>(bucket)])];
  }

  int microbatches_, leaves_;
  const std::vector<Bucket>& buckets_;
  std::vector<int> index_;  // bucket -> item, or -1 if not held
  std::vector<Item> items_;
  std::vector<std::vector<int>> members_;  // by group: items in start order
  std::vector<PhasedExchange> queues_;     // by group
  Backend* backend_ = nullptr;
};

}  // namespace concertina
