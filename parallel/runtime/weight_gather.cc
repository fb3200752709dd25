#include "parallel/runtime/weight_gather.h"

#include <algorithm>

#include "core/index.h"

namespace concertina {

WeightGather::WeightGather(const Assignment& assignment, int rank, const std::vector<View>& weights,
                           const Groups& groups)
    : buckets_(assignment.buckets.size()) {
  std::map<Communicator*, std::size_t> under_way;
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    const BucketOwners& owners = assignment.owners[b];
    std::vector<Communicator*> phases;
    if (!assignment.buckets[b].frozen) phases = groups.find(owners.ranks);
    if (phases.empty()) continue;
    Gather& bucket = buckets_[b];
    bucket.me = owners.index_of(rank);
    for (const Part& part : owners.parts)
      bucket.parts.push_back(bytes_of(weights[b].slice(part.begin, part.count())));
    if (phases.size() == 1) {
      ++under_way[bucket.group = phases[0]];
      continue;
    }
    std::ranges::reverse(phases);
    const auto ended = [](int, int) {};
    bucket.phases = &phased_.try_emplace(owners.ranks, std::move(phases), ended).first->second;
    const ExchangeShape shape = assignment.exchange.shape(owners.ranks);
    add_phases(backwards(assignment.exchange.find().row(shape, bucket.me)), bucket);
  }
  works_.reserve(buckets_.size());
  for (const auto& [group, count] : under_way) group->reserve(0, count);
  for (auto& [ranks, phased] : phased_) phased.reserve();
}

void WeightGather::add_phases(const ExchangeRow& row, Gather& bucket) {
  std::vector<PhasedExchange::Messages> messages;
  for (const auto& [sends, receives] : row) {
    auto& [out, in] = messages.emplace_back();
    for (const auto& [step, peer, chunk] : sends)
      if (const Bytes part = bucket.parts[at(chunk)]; !part.empty())
        out.push_back({part, peer, step});
    for (const auto& [step, peer, chunk] : receives)
      if (const Bytes part = bucket.parts[at(chunk)]; !part.empty())
        in.push_back({part, peer, step});
  }
  bucket.number = bucket.phases->add(std::move(messages));
}

void WeightGather::skip(SkippedBuckets skipped) {
  for (std::size_t b = 0; b < buckets_.size(); ++b)
    if (buckets_[b].phases != nullptr) buckets_[b].phases->skip(buckets_[b].number, skipped[b]);
}

void WeightGather::start(std::size_t bucket) {
  const Gather& one = buckets_[bucket];
  if (one.group != nullptr)
    works_.push_back(one.group->all_gather(one.parts[at(one.me)], one.parts));
  if (one.phases == nullptr) return;
  one.phases->begin(one.number);
  one.phases->progress();
}

void WeightGather::wait() {
  for (Work& work : works_) work.wait();
  works_.clear();
  for (const Gather& one : buckets_)
    if (one.phases != nullptr) one.phases->wait(one.number);
  for (auto& [ranks, phased] : phased_) phased.reset();
}

}  // namespace concertina
