#include "parallel/runtime/state.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/error.h"

namespace concertina {
std::vector<std::string> state_kinds(const Job& job, const Optimizer& optimizer) {
  const std::vector<std::string_view> names = optimizer.state_names();
  std::vector<std::string> kinds(names.begin(), names.end());
  if (job.keeps_reference) kinds.emplace_back(kReference);
  return kinds;
}

State::State(const Assignment& assignment, int rank, std::vector<std::string> kinds, Memory& memory)
    : assignment_(&assignment), rank_(rank), kinds_(std::move(kinds)), memory_(&memory) {
  CONCERTINA_CHECK(kinds_.size() <= kMostKinds, "{} tensors of state", kinds_.size());
  use(assignment);
  for (std::size_t b = 0; b < assignment.buckets.size(); ++b) {
    if (assignment.owners[b].index_of(rank) < 0) continue;
    const std::size_t elements = assignment.buckets[b].elements;
    swap_weights(b, make_block(elements, 1), elements);
    if (const Part* part = own_state(assignment, b, rank))
      swap_kinds(b, make_block(part->count(), kinds_.size()), part->count());
  }
}

Arena State::make_block(std::size_t elements, std::size_t count) {
  const std::size_t bytes = block_bytes(elements, count);
  if (bytes == 0) return {};
  Arena block(bytes, *memory_);
  peak_ = std::max(peak_, bytes_ += block.capacity());
  return block;
}

void State::resize(std::size_t buckets) {
  weight_blocks_.resize(buckets);
  kind_blocks_.resize(buckets);
  weights_.resize(buckets);
  part_elements_.resize(buckets);
  missed_.resize(buckets);
}

void State::use(const Assignment& assignment) {
  assignment_ = &assignment;
  resize(assignment.buckets.size());
}

Arena State::swap_weights(std::size_t bucket, Arena block, std::size_t elements) {
  std::swap(weight_blocks_[bucket], block);
  void* data = weight_blocks_[bucket].data();
  weights_[bucket] = data == nullptr ? View{} : View{data, elements, DType::f32};
  return block;
}

Arena State::swap_kinds(std::size_t bucket, Arena block, std::size_t elements) {
  std::swap(kind_blocks_[bucket], block);
  part_elements_[bucket] = kind_blocks_[bucket].data() == nullptr ? 0 : elements;
  return block;
}

View State::part(std::size_t bucket, std::size_t kind) const {
  const std::size_t elements = part_elements_[bucket];
  if (elements == 0) return {};
  auto* data = static_cast<std::byte*>(kind_blocks_[bucket].data());
  return {data + kind * block_bytes(elements, 1), elements, DType::f32};
}

void State::each_owned(const std::function<void(const OwnedRun&)>& see) const {
  std::array<View, kMostKinds> views;
  for (std::size_t b = 0; b < weights_.size(); ++b) {
    const int index = assignment_->owners[b].index_of(rank_);
    if (index < 0) continue;
    const Bucket& bucket = assignment_->buckets[b];
    const Part& part = assignment_->owners[b].parts[static_cast<std::size_t>(index)];
    const std::size_t kinds = own_state(*assignment_, b, rank_) == nullptr ? 0 : kinds_.size();
    for (const TensorRun& run : tensor_runs(bucket, part)) {
      const std::size_t count = run.end - run.begin;
      for (std::size_t k = 0; k < kinds; ++k)
        views[k] = this->part(b, k).slice(run.begin - part.begin, count);
      const BucketTensor& tensor = bucket.tensors[static_cast<std::size_t>(run.tensor)];
      see({b, &tensor, run.begin - tensor.offset, weights_[b].slice(run.begin, count),
           std::span(views).first(kinds)});
    }
  }
}

}  // namespace concertina
