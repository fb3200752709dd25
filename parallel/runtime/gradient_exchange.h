// Gradients of one rank: summed over its microbatches (GradientTree), exchanged with the other
// holders of each bucket while the backward pass goes on, as the assignment's scheme says
// (parallel/plan/exchange_scheme.h), and combined in the canonical order wherever shares meet.
// Invariants: the same bits for any layout and scheme; a bucket's exchange starts when this rank's
// last gradient of it is done, in one order a group, as FIFO channels without tags demand; no call
// after attach() and connect() allocates.
#pragma once

#include <map>
#include <vector>

#include "core/arena.h"
#include "core/model/stage.h"
#include "parallel/comm/communicator.h"
#include "parallel/plan/assignment.h"
#include "parallel/runtime/gradient_tree.h"
#include "parallel/runtime/groups.h"
#include "parallel/runtime/phased_exchange.h"

namespace concertina {

struct OwnShares;

class GradientExchange final : public GradientSink {
 public:
  /// Pure: nothing is allocated or sent. Frozen buckets take no part. `assignment` outlives it.
  GradientExchange(const Job& job, const Assignment& assignment, int rank);

  /// Bytes of the buffers that gradients are summed in, and of the pieces that arrive.
  std::size_t sum_bytes() const;
  std::size_t staging_bytes() const;
  void attach(Arena& arena);
  void connect(const Groups& groups, Backend& backend);

  /// In the next step these buckets have no gradient and no exchange. The same on all ranks.
  void skip(SkippedBuckets skipped);

  GradientTarget begin(int bucket, int use, int microbatch) override;
  void end(int bucket, int use, int microbatch) override;

  /// Tests what is under way and combines what is complete; never waits.
  void progress() {
    for (PhasedExchange& queue : queues_) queue.progress();
  }
  /// Waits until every bucket's own part is reduced and nothing is under way. It is then ready for
  /// the next step.
  void finish();

  /// The gradient, after finish(), of this rank's part of `bucket` (owners' part, maybe empty); of
  /// no use where the bucket is skipped.
  View reduced(int bucket) const;

 private:
  /// One use of a bucket on one holder: the nodes it ends with.
  struct Use {
    int unit = 0;
    GradientTree tree;
  };
  /// A piece of a chunk that arrives from a peer.
  struct Arrival {
    int phase = 0, chunk = 0;
    Piece piece;
    Receive message;
    View memory;
  };
  struct Addition {
    View left, right;
  };
  using Held = std::map<Piece, View>;  // of a chunk
  struct Item {
    int bucket = 0, me = 0;
    std::size_t elements = 0;
    std::vector<int> ranks;   // the holders
    std::vector<Part> parts;  // of each holder
    std::vector<Use> uses;    // of this rank, ascending unit
    ExchangeRow row;
    std::vector<Arrival> arrivals;                   // in the order of receiving
    std::vector<PhasedExchange::Messages> messages;  // of each phase
    std::vector<std::vector<Addition>> additions;    // once a phase is over
    View reduced;
    std::size_t queue = 0;
    int place = 0;  // in its queue
    int open_uses = 0;
    bool skipped = false;
  };

  using Orders = std::vector<std::vector<std::vector<int>>>;  // see weight_orders()
  void make_item(const Assignment& assignment, int index, const Orders& orders, int rank,
                 OwnShares& own);
  void add_arrivals(Item& item, ShareFlow& flow);
  void compile(Item& item);
  void add_up(Held& held, std::vector<Addition>& additions) const;
  Item& item_of(int bucket) {
    return items_[static_cast<std::size_t>(index_[static_cast<std::size_t>(bucket)])];
  }

  int microbatches_, leaves_;
  const std::vector<Bucket>& buckets_;
  std::vector<int> index_;  // bucket -> item, -1 where not held
  std::vector<Item> items_;
  std::vector<std::vector<int>> members_;  // items of one group in the order of their start
  std::vector<PhasedExchange> queues_;     // of the same groups
  Backend* backend_ = nullptr;
};

}  // namespace concertina
