#include "tests/models/local_pipeline.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "models/model.h"

namespace concertina {
namespace {

Buffer boundary(const StageMemory& needs) {
  return Buffer(needs.boundary_bytes / size_of(needs.activation), needs.activation);
}

}  // namespace

GradientStore::GradientStore(const std::vector<Bucket>& buckets)
    : buckets_(static_cast<int>(buckets.size())) {
  for (int b = 0; b < std::ssize(buckets); ++b) {
    const Bucket& bucket = buckets[static_cast<std::size_t>(b)];
    if (bucket.frozen) continue;
    for (const int use : bucket.uses) {
      Buffer gradient(bucket.elements);
      // The padding is written by the sink and stays zero.
      std::vector<bool> padding(bucket.elements, true);
      for (const BucketTensor& tensor : bucket.tensors)
        std::fill_n(padding.begin() + static_cast<std::ptrdiff_t>(tensor.offset), tensor.count,
                    false);
      for (std::size_t i = 0; i < bucket.elements; ++i)
        if (padding[i]) gradient.data()[i] = 0;
      gradients_.emplace(std::pair(b, use), std::move(gradient));
    }
  }
}

GradientTarget GradientStore::begin(int bucket, int use, int microbatch) {
  ++begun_[{bucket, use}];
  return {gradients_.at({bucket, use}).view(), microbatch > 0};
}

void GradientStore::end(int bucket, int use, int) {
  ++ended_[{bucket, use}];
}

std::vector<float> GradientStore::total(int bucket) const {
  std::vector<float> sum;
  for (const auto& [key, gradient] : gradients_) {
    if (key.first != bucket) continue;
    if (sum.empty()) {
      sum = gradient.values();
    } else {
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += gradient.data()[i];
    }
  }
  return sum;
}

std::vector<std::vector<float>> GradientStore::totals() const {
  std::vector<std::vector<float>> all;
  for (int bucket = 0; bucket < buckets_; ++bucket) all.push_back(total(bucket));
  return all;
}

void GradientStore::expect_complete(int microbatches) const {
  for (const auto& [key, gradient] : gradients_) {
    EXPECT_EQ(begun_.at(key), microbatches) << "bucket " << key.first << " use " << key.second;
    EXPECT_EQ(ended_.at(key), microbatches) << "bucket " << key.first << " use " << key.second;
  }
}

LocalPipeline::LocalPipeline(Backend& backend, const Model& model, std::vector<int> cuts,
                             int frozen)
    : backend_(backend), buckets_(make_buckets(model.spec(), frozen)) {
  const int units = static_cast<int>(model.spec().units.size());
  if (cuts.back() < units) cuts.push_back(units);
  std::vector<View> views;
  for (const Bucket& bucket : buckets_) {
    weights_.emplace_back(bucket.elements);
    views.push_back(weights_.back().view());
  }
  std::size_t workspace = 0, scratch = 0;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    stages_.push_back(
        std::make_unique<ModelStage>(backend, model, buckets_, cuts[i], cuts[i + 1], frozen));
    const StageMemory needs = stages_.back()->memory();
    workspace = std::max(workspace, needs.workspace_bytes);
    scratch = std::max(scratch, needs.forward_bytes);
    memory_.push_back({buffer_of_bytes(needs.saved_bytes), buffer_of_bytes(needs.grad_bytes),
                       boundary(needs), boundary(needs)});
    packed_.push_back(buffer_of_bytes(stages_.back()->packed_bytes()));
    std::vector<View> held(buckets_.size());
    for (const int b : stages_.back()->buckets())
      held[static_cast<std::size_t>(b)] = views[static_cast<std::size_t>(b)];
    stages_.back()->attach(held, packed_.back().data());
  }
  workspace_ = buffer_of_bytes(workspace);
  frozen_scratch_ = buffer_of_bytes(scratch);
  for (const auto& stage : stages_) stage->set_workspace(workspace_.data(), frozen_scratch_.data());
  backend_workspace_ = buffer_of_bytes(backend.workspace_bytes());
  backend.set_workspace(backend_workspace_.data());
}

View LocalPipeline::weight(const std::string& name) {
  for (std::size_t b = 0; b < buckets_.size(); ++b)
    for (const BucketTensor& tensor : buckets_[b].tensors)
      if (tensor.name == name) return weights_[b].view().slice(tensor.offset, tensor.count);
  throw_input("no tensor " + name, "test", "");
}

void LocalPipeline::initialize(std::uint64_t seed) {
  for (std::size_t b = 0; b < buckets_.size(); ++b)
    concertina::initialize(buckets_[b], seed, 0, {weights_[b].data(), weights_[b].size()});
  refresh();
}

void LocalPipeline::refresh() {
  for (const auto& stage : stages_) stage->refresh();
}

double LocalPipeline::forward(const std::vector<View>& fields, float loss_scale, int microbatch,
                              bool training) {
  io_.assign(stages_.size(), {});
  fields_ = fields;
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    const bool first = s == 0, last = s + 1 == stages_.size();
    MicrobatchIo& io = io_[s];
    io.microbatch = microbatch;
    io.fields = fields_;
    if (!first) io.input = memory_[s - 1].output.view();
    if (!first && trains(s - 1)) io.input_grad = memory_[s - 1].output_grad.view();
    if (!last) io.output = memory_[s].output.view();
    if (!last) io.output_grad = memory_[s].output_grad.view();
    io.saved = memory_[s].saved.data();
    io.grads = memory_[s].grads.data();
    io.loss_scale = loss_scale;
    io.training = training;
    io.seed = seed_;
    io.step = step_;
    stages_[s]->forward(io);
    // Discards what no gradient needs.
    if (!first && stages_[s]->first_trained() > stages_[s]->first_unit()) {
      std::memset(io.input.data, 0xFF, io.input.bytes());
      io.input = {};
    }
  }
  backend_.synchronize();
  double sum = 0;
  const View rows = stages_.back()->row_loss(io_.back());
  for (const float loss : std::span(rows.f32(), rows.count)) sum += static_cast<double>(loss);
  return sum;
}

double LocalPipeline::train(const std::vector<View>& fields, float loss_scale, int microbatch,
                            GradientSink& sink, Backward backward) {
  const double loss = forward(fields, loss_scale, microbatch, true);
  for (std::size_t s = stages_.size(); s-- > 0 && trains(s);) {
    if (backward == Backward::joint) {
      io_[s].grads = nullptr;  // B needs none
      stages_[s]->backward(io_[s], sink);
    } else {
      stages_[s]->backward_input(io_[s]);
    }
  }
  for (std::size_t s = 0; backward == Backward::separate && s < stages_.size(); ++s)
    if (trains(s)) stages_[s]->backward_weight(io_[s], sink);
  backend_.synchronize();
  return loss;
}

double LocalPipeline::evaluate(const std::vector<View>& fields, std::vector<float>& logits) {
  const double loss = forward(fields, 1, 0, false);
  const View view = stages_.back()->logits(io_.back());
  logits = to_floats(view);
  return loss;
}

}  // namespace concertina
