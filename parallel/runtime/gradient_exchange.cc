#include "parallel/runtime/gradient_exchange.h"

#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/exchange_order.h"

namespace concertina {
namespace {

/// order[rank][unit]: the microbatches whose weight gradient the rank computes, in its row's order;
/// of the ranks that share a bucket with `me`. So it takes a rank's replicas, not the world.
std::vector<std::vector<std::vector<int>>> weight_orders(const Assignment& assignment, int me) {
  const Layout& layout = assignment.layout;
  const Plan& plan = assignment.plan;
  std::vector<bool> wanted(plan.rows.size(), false);
  for (const BucketOwners& one : assignment.owners)
    if (one.index_of(me) >= 0)
      for (const int rank : one.ranks) wanted[static_cast<std::size_t>(rank)] = true;
  std::vector<std::vector<std::vector<int>>> orders(plan.rows.size());
  for (std::size_t rank = 0; rank < plan.rows.size(); ++rank) {
    if (!wanted[rank]) continue;
    orders[rank].resize(static_cast<std::size_t>(layout.unit_count()));
    for (const Action& action : plan.rows[rank]) {
      if (!makes_weight_gradient(action.kind)) continue;
      const StagePlacement& stage = layout.stage(action.stage);
      for (int unit = stage.first_unit; unit < stage.last_unit; ++unit)
        orders[rank][static_cast<std::size_t>(unit)].push_back(action.microbatch);
    }
  }
  return orders;
}

}  // namespace

GradientExchange::GradientExchange(const Job& job, const Assignment& assignment, int rank)
    : microbatches_(assignment.microbatches(job)),
      leaves_(assignment.leaves(job)),
      buckets_(assignment.buckets),
      index_(assignment.buckets.size(), -1) {
  const std::vector<Bucket>& buckets = assignment.buckets;
  const std::vector<BucketOwners>& owners = assignment.owners;
  const auto orders = weight_orders(assignment, rank);
  for (const std::size_t b : exchange_order(buckets))
    if (owners[b].index_of(rank) >= 0 && !buckets[b].frozen)
      make_item(buckets[b], static_cast<int>(b), owners[b], orders, rank);
  std::map<std::vector<int>, std::vector<int>> groups;
  for (std::size_t i = 0; i < items_.size(); ++i)
    groups[items_[i].ranks].push_back(static_cast<int>(i));
  queue_of_.resize(items_.size());
  for (auto& [ranks, queue] : groups) {
    for (const int i : queue) queue_of_[static_cast<std::size_t>(i)] = queues_.size();
    queues_.push_back(queue);
  }
  queue_next_.resize(queues_.size(), 0);
}

void GradientExchange::make_item(const Bucket& bucket, int index, const BucketOwners& owners,
                                 const std::vector<std::vector<std::vector<int>>>& orders,
                                 int rank) {
  Item item;
  item.bucket = index;
  item.me = owners.index_of(rank);
  item.elements = bucket.elements;
  item.ranks = owners.ranks;
  item.parts = owners.parts;
  item.arrivals.resize(owners.ranks.size());
  const std::size_t count = item.parts[static_cast<std::size_t>(item.me)].count();
  for (std::size_t peer = 0; peer < owners.ranks.size(); ++peer) {
    for (const int unit : bucket.uses) {
      const auto& order =
          orders[static_cast<std::size_t>(owners.ranks[peer])][static_cast<std::size_t>(unit)];
      if (order.empty()) continue;
      GradientTree tree(order, microbatches_, leaves_);
      if (static_cast<int>(peer) == item.me) {
        item.uses.push_back({unit, std::move(tree)});
      } else if (count > 0) {
        for (const TreeNode& node : tree.nodes())
          item.arrivals[peer].push_back(
              {static_cast<int>(peer), unit, node, View{nullptr, count, DType::f32}});
      }
    }
  }
  item.open_uses = static_cast<int>(item.uses.size());
  index_[static_cast<std::size_t>(index)] = static_cast<int>(items_.size());
  items_.push_back(std::move(item));
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
    for (const auto& pieces : item.arrivals)
      for (const Piece& piece : pieces) bytes += align_up(piece.memory.bytes());
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
    for (auto& pieces : item.arrivals)
      for (Piece& piece : pieces)
        piece.memory = arena.take(piece.memory.count, DType::f32, "gradient of another replica");
    compile(item, buckets_[static_cast<std::size_t>(item.bucket)]);
  }
}

/// The additions that this rank's part needs: each use's tree to its root, then the uses in order.
void GradientExchange::compile(Item& item, const Bucket& bucket) {
  const Part& part = item.parts[static_cast<std::size_t>(item.me)];
  if (part.count() == 0) return;
  for (const int unit : bucket.uses) {
    std::map<std::pair<int, int>, View> at;
    for (const Use& use : item.uses)
      if (use.unit == unit)
        for (std::size_t n = 0; n < use.tree.nodes().size(); ++n)
          at[{use.tree.nodes()[n].first, use.tree.nodes()[n].last}] =
              use.tree.node_memory(n).slice(part.begin, part.count());
    for (const auto& pieces : item.arrivals)
      for (const Piece& piece : pieces)
        if (piece.use == unit) at[{piece.node.first, piece.node.last}] = piece.memory;
    std::vector<TreeNode> nodes;
    for (const auto& [node, view] : at) nodes.push_back({node.first, node.second});
    for (const TreeMerge& merge : merges(nodes, leaves_)) {
      const View left = at.at({merge.left.first, merge.left.last});
      item.additions.push_back({left, at.at({merge.right.first, merge.right.last})});
      at[{merge.left.first, merge.right.last}] = left;
    }
    const View root = at.at({0, leaves_});
    if (item.reduced.empty())
      item.reduced = root;
    else
      item.additions.push_back({item.reduced, root});
  }
}

void GradientExchange::connect(const Groups& groups, Backend& backend) {
  backend_ = &backend;
  std::size_t most = 0;  // messages of a bucket
  std::map<Communicator*, std::size_t> under_way;
  for (Item& item : items_) {
    if (item.ranks.size() == 1) continue;
    std::size_t messages = 0;
    for (const auto& pieces : item.arrivals) messages += pieces.size();
    for (const Use& use : item.uses) messages += use.tree.nodes().size() * item.parts.size();
    most = std::max(most, messages);
    item.group = groups.find(item.ranks);
    CONCERTINA_CHECK(item.group != nullptr, "bucket {} has no group", item.bucket);
    ++under_way[item.group];
  }
  for (const auto& [group, buckets] : under_way) group->reserve(0, buckets, most);
  sends_.reserve(most);
  receives_.reserve(most);
}

void GradientExchange::skip(SkippedBuckets skipped) {
  for (Item& item : items_) {
    item.skipped = skipped[static_cast<std::size_t>(item.bucket)];
    item.open_uses = item.skipped ? 0 : static_cast<int>(item.uses.size());
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
  const auto index = static_cast<std::size_t>(index_[static_cast<std::size_t>(bucket)]);
  if (item.open_uses == 0) start_ready(queue_of_[index]);
  progress();
}

void GradientExchange::start_ready(std::size_t queue) {
  const std::vector<int>& order = queues_[queue];
  for (std::size_t& next = queue_next_[queue]; next < order.size(); ++next) {
    Item& item = items_[static_cast<std::size_t>(order[next])];
    if (item.open_uses > 0) return;
    if (!item.skipped) start(item);
  }
}

void GradientExchange::start(Item& item) {
  item.started = true;
  if (item.group == nullptr) return;
  sends_.clear();
  receives_.clear();
  const int size = static_cast<int>(item.parts.size());
  for (int step = 1; step < size; ++step) {  // of core/exchange_order.h
    const int from = (item.me + size - step) % size, to = (item.me + step) % size;
    for (const Piece& piece : item.arrivals[static_cast<std::size_t>(from)])
      receives_.push_back({bytes_of(piece.memory), from});
    const Part& part = item.parts[static_cast<std::size_t>(to)];
    if (part.count() == 0) continue;
    for (const Use& use : item.uses)
      for (std::size_t n = 0; n < use.tree.nodes().size(); ++n)
        sends_.push_back({bytes_of(use.tree.node_memory(n).slice(part.begin, part.count())), to});
  }
  item.work = item.group->exchange(sends_, receives_);
}

bool GradientExchange::try_complete(Item& item) {
  if (!item.work.test()) return false;
  for (const Addition& add : item.additions) backend_->run(Axpby{1.0F, add.right, 1.0F, add.left});
  return item.done = true;
}

void GradientExchange::progress() {
  for (Item& item : items_)
    if (item.started && !item.done) try_complete(item);
}

void GradientExchange::finish() {
  for (Item& item : items_) {
    if (item.skipped) continue;
    CONCERTINA_CHECK(item.started, "bucket {} was never complete", item.bucket);
    if (!item.done) {
      item.work.wait();
      try_complete(item);
    }
    item.started = item.done = false;
    item.open_uses = static_cast<int>(item.uses.size());
  }
  std::fill(queue_next_.begin(), queue_next_.end(), 0);
}

View GradientExchange::reduced(int bucket) const {
  const int item = index_[static_cast<std::size_t>(bucket)];
  CONCERTINA_CHECK(item >= 0, "bucket {} is not held here", bucket);
  return items_[static_cast<std::size_t>(item)].reduced;
}

}  // namespace concertina
