#include "parallel/runtime/gradient_exchange.h"

#include <algorithm>
#include <set>

#include "core/error.h"
#include "core/index.h"
#include "core/model/exchange_order.h"

namespace concertina {
namespace {

/// Returns, by unit, the microbatches whose weight gradient the rank computes, in row order.
std::vector<std::vector<int>> weight_orders(const Assignment& assignment, int rank) {
  const std::vector<StagePlacement> stages = assignment.layout.stages();
  std::vector<std::vector<int>> orders(at(assignment.layout.unit_count()));
  for (const Action& action : assignment.plan.rows[at(rank)]) {
    if (!makes_weight_gradient(action.kind)) continue;
    const StagePlacement& stage = stages[at(action.stage)];
    for (int unit = stage.first_unit; unit < stage.last_unit; ++unit)
      orders[at(unit)].push_back(action.microbatch);
  }
  return orders;
}

}  // namespace

GradientExchange::GradientExchange(const Job& job, const Assignment& assignment, int rank)
    : microbatches_(assignment.microbatches(job)),
      leaves_(assignment.leaves(job)),
      buckets_(assignment.buckets),
      index_(assignment.buckets.size(), -1) {
  const auto orders = weight_orders(assignment, rank);
  LocalShares shares(job, assignment);
  for (const std::size_t b : exchange_order(buckets_))
    if (assignment.owners[b].index_of(rank) >= 0 && !buckets_[b].frozen)
      make_item(assignment, static_cast<int>(b), orders, rank, shares);
  std::map<std::vector<int>, std::size_t> queues;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    Item& item = items_[i];
    item.queue = queues.try_emplace(item.ranks, members_.size()).first->second;
    if (item.queue == members_.size()) members_.emplace_back();
    members_[item.queue].push_back(static_cast<int>(i));
  }
}

void GradientExchange::make_item(const Assignment& assignment, int index,
                                 const std::vector<std::vector<int>>& orders, int rank,
                                 LocalShares& shares) {
  const Bucket& bucket = buckets_[at(index)];
  const BucketOwners& owners = assignment.owners[at(index)];
  Item item;
  item.bucket = index;
  item.me = owners.index_of(rank);
  item.elements = bucket.elements;
  item.ranks = owners.ranks;
  item.parts = owners.parts;
  for (int use = 0; use < static_cast<int>(bucket.uses.size()); ++use)
    if (const std::vector<int>& order = orders[at(bucket.uses[at(use)])]; !order.empty())
      item.uses.push_back({bucket.uses[at(use)], use, GradientTree(order, microbatches_, leaves_)});
  const std::vector<Share> own = shares.of(bucket, owners.ranks);
  const ExchangeShape shape = assignment.exchange.shape(owners.ranks);
  ShareFlow flow(assignment.exchange.find(), shape, own, leaves_);
  item.row = flow.row(item.me);
  add_arrivals(item, flow);
  item.open_uses = static_cast<int>(item.uses.size());
  index_[at(index)] = static_cast<int>(items_.size());
  items_.push_back(std::move(item));
}

void GradientExchange::add_arrivals(Item& item, ShareFlow& flow) {
  for (int phase = 0; phase < static_cast<int>(item.row.size()); ++phase)
    for (const auto& [step, peer, chunk] : item.row[at(phase)].receives) {
      const View memory{nullptr, item.parts[at(chunk)].count(), DType::f32};
      if (memory.count == 0) continue;
      for (const Piece& piece : flow.share(peer, chunk, phase))
        item.arrivals.push_back({phase, chunk, piece, {{}, peer, step}, memory});
    }
}

std::size_t GradientExchange::sum_bytes() const {
  std::size_t bytes = 0;
  for (const Item& item : items_)
    for (const Use& use : item.uses)
      bytes +=
          static_cast<std::size_t>(use.tree.buffers()) * align_up(item.elements * sizeof(float));
  return bytes;
}

std::size_t GradientExchange::staging_bytes() const {
  std::size_t bytes = 0;
  for (const Item& item : items_)
    for (const Arrival& one : item.arrivals) bytes += align_up(one.memory.bytes());
  return bytes;
}

void GradientExchange::attach(Arena& arena) {
  for (Item& item : items_) {
    for (Use& use : item.uses) {
      std::vector<View> buffers;
      for (int i = 0; i < use.tree.buffers(); ++i)
        buffers.push_back(arena.take(item.elements, DType::f32, "gradient"));
      use.tree.attach(std::move(buffers));
    }
    for (Arrival& one : item.arrivals) {
      one.memory = arena.take(one.memory.count, DType::f32, "gradient of another replica");
      one.message.data = bytes_of(one.memory);
    }
    compile(item);
  }
}

/// Compiles the messages and additions of each phase; those of the last phase include the sum of
/// this rank's part over all uses, in order.
void GradientExchange::compile(Item& item) {
  std::map<int, Held> held;  // by chunk
  for (int chunk = 0; chunk < static_cast<int>(item.parts.size()); ++chunk)
    if (const Part& part = item.parts[at(chunk)]; part.count() > 0)
      for (const Use& use : item.uses)
        for (std::size_t n = 0; n < use.tree.nodes().size(); ++n)
          held[chunk][{use.index, use.tree.nodes()[n]}] =
              use.tree.node_memory(n).slice(part.begin, part.count());
  item.messages.resize(item.row.size());
  item.additions.resize(item.row.size());
  auto arrival = item.arrivals.begin();
  for (int phase = 0; phase < static_cast<int>(item.row.size()); ++phase) {
    auto& [sends, receives] = item.messages[at(phase)];
    for (const auto& [step, peer, chunk] : item.row[at(phase)].sends)
      for (const auto& [piece, view] : held[chunk]) sends.push_back({bytes_of(view), peer, step});
    std::set<int> chunks;
    for (; arrival != item.arrivals.end() && arrival->phase == phase; ++arrival) {
      receives.push_back(arrival->message);
      held[arrival->chunk][arrival->piece] = arrival->memory;
      chunks.insert(arrival->chunk);
    }
    for (const int chunk : chunks) add_up(held[chunk], item.additions[at(phase)]);
  }
  if (item.parts[at(item.me)].count() == 0) return;
  std::vector<View> roots;
  for (const auto& [piece, view] : held[item.me]) {
    CONCERTINA_CHECK(piece.node == (TreeNode{0, leaves_}), "bucket {} has only the leaves [{}, {})",
                     item.bucket, piece.node.first, piece.node.last);
    roots.push_back(view);
  }
  item.reduced = roots.at(0);
  for (std::size_t use = 1; use < roots.size(); ++use)
    item.additions.back().push_back({item.reduced, roots[use]});
}

void GradientExchange::add_up(Held& held, std::vector<Addition>& additions) const {
  Share share;
  for (const auto& [piece, view] : held) share.push_back(piece);
  for (const auto& [left, right] : concertina::add_up(share, leaves_)) {
    const View sum = held.at(left);
    additions.push_back({sum, held.at(right)});
    held.erase(left);
    held.erase(right);
    held[{left.use, {left.node.first, right.node.last}}] = sum;
  }
}

void GradientExchange::connect(const Groups& groups, Backend& backend) {
  backend_ = &backend;
  for (const std::vector<int>& members : members_) {
    const Item& first = items_[at(members[0])];
    const std::vector<Communicator*> phases = groups.find(first.ranks);
    CONCERTINA_CHECK(first.ranks.size() == 1 || phases.size() == first.row.size(),
                     "bucket {} has {} groups", first.bucket, phases.size());
    PhasedExchange& queue = queues_.emplace_back(phases, [this, &members](int place, int phase) {
      for (const Addition& add : items_[at(members[at(place)])].additions[at(phase)])
        backend_->run(Axpby{1.0F, add.right, 1.0F, add.left});
    });
    for (const int i : members) items_[at(i)].place = queue.add(std::move(items_[at(i)].messages));
    queue.reserve();
  }
}

void GradientExchange::skip(SkippedBuckets skipped) {
  for (Item& item : items_) {
    item.skipped = skipped[at(item.bucket)];
    item.open_uses = item.skipped ? 0 : static_cast<int>(item.uses.size());
    queues_[item.queue].skip(item.place, item.skipped);
  }
}

GradientTarget GradientExchange::begin(int bucket, int use, int microbatch) {
  const Item& item = item_of(bucket);
  CONCERTINA_CHECK(!item.skipped, "a gradient of bucket {}, which the step skips", bucket);
  for (const Use& one : item.uses)
    if (one.unit == use) return one.tree.begin(microbatch);
  CONCERTINA_CHECK(false, "bucket {} has no use by unit {} on this rank", bucket, use);
}

void GradientExchange::end(int bucket, int use, int microbatch) {
  Item& item = item_of(bucket);
  for (const Use& one : item.uses)
    if (one.unit == use && one.tree.end(microbatch, *backend_)) --item.open_uses;
  if (item.open_uses == 0) queues_[item.queue].begin(item.place);
  progress();
}

void GradientExchange::finish() {
  for (Item& item : items_) {
    if (item.skipped) continue;
    CONCERTINA_CHECK(item.open_uses == 0, "bucket {} was never complete", item.bucket);
    queues_[item.queue].wait(item.place);
    item.open_uses = static_cast<int>(item.uses.size());
  }
  for (PhasedExchange& queue : queues_) queue.reset();
}

View GradientExchange::reduced(int bucket) const {
  const int item = index_[static_cast<std::size_t>(bucket)];
  CONCERTINA_CHECK(item >= 0, "bucket {} is not held here", bucket);
  return items_[static_cast<std::size_t>(item)].reduced;
}

}  // namespace concertina
