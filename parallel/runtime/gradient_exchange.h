// Gradients of one rank: summed over its microbatches (GradientTree), exchanged with the other
// holders of each bucket while the backward pass goes on, and combined in the canonical order on
// the owner of each part. Bytes on the wire are those of a ring reduce-scatter where every holder
// has one tree node; a layout that splits the tree unevenly sends one piece a node.
// Invariants: the same bits for any layout; a bucket's exchange starts when this rank's last
// gradient of it is done, in one order a group, as FIFO channels without tags demand; no call
// after attach() and connect() allocates.
#pragma once

#include <memory>
#include <vector>

#include "core/arena.h"
#include "core/stage.h"
#include "parallel/comm/communicator.h"
#include "parallel/plan/assignment.h"
#include "parallel/runtime/gradient_tree.h"
#include "parallel/runtime/groups.h"

namespace concertina {

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
  void progress();
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
  struct Piece {  // arrives from a peer
    int peer = 0, use = 0;
    TreeNode node;
    View memory;
  };
  struct Addition {
    View left, right;
  };
  struct Item {
    int bucket = 0, me = 0;
    std::size_t elements = 0;
    std::vector<int> ranks;                    // the holders
    std::vector<Part> parts;                   // of each holder
    std::vector<Use> uses;                     // of this rank, ascending unit
    std::vector<std::vector<Piece>> arrivals;  // of each holder, in its order of sending
    std::vector<Addition> additions;
    View reduced;
    Communicator* group = nullptr;
    Work work;
    int open_uses = 0;
    bool started = false, done = false, skipped = false;
  };

  void make_item(const Bucket& bucket, int index, const BucketOwners& owners,
                 const std::vector<std::vector<std::vector<int>>>& orders, int rank);
  void compile(Item& item, const Bucket& bucket);
  void start_ready(std::size_t queue);
  void start(Item& item);
  bool try_complete(Item& item);
  Item& item_of(int bucket) {
    return items_[static_cast<std::size_t>(index_[static_cast<std::size_t>(bucket)])];
  }

  int microbatches_, leaves_;
  const std::vector<Bucket>& buckets_;
  std::vector<int> index_;  // bucket -> item, -1 where not held
  std::vector<Item> items_;
  std::vector<std::vector<int>> queues_;  // items of one group in the order of their start
  std::vector<std::size_t> queue_next_, queue_of_;
  std::vector<Send> sends_;  // of one exchange: kept for their room
  std::vector<Receive> receives_;
  Backend* backend_ = nullptr;
};

}  // namespace concertina
