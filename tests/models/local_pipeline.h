// Runs a model without parallel/: stages one after the other in one thread, each with poisoned
// memory of exactly the sizes that it requests.
// Invariant: provides only what the executor must; a stage that reads unwritten memory yields NaN.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/model/model_spec.h"
#include "models/model_stage.h"
#include "tests/buffer.h"

namespace concertina {

inline std::vector<View> views_of(const std::vector<Buffer>& buffers) {
  std::vector<View> views;
  for (const Buffer& buffer : buffers) views.push_back(buffer.view());
  return views;
}

/// One gradient buffer for each use of a bucket that is trained. Microbatch 0 overwrites it, later
/// ones accumulate.
class GradientStore final : public GradientSink {
 public:
  explicit GradientStore(const std::vector<Bucket>& buckets);

  GradientTarget begin(int bucket, int use, int microbatch) override;
  void end(int bucket, int use, int microbatch) override;
  /// Returns the sum over a bucket's uses in unit order.
  std::vector<float> total(int bucket) const;
  /// Returns the totals of all buckets; empty for a frozen one.
  std::vector<std::vector<float>> totals() const;
  /// Checks that begin and end were called in pairs, once for each use and microbatch.
  void expect_complete(int microbatches) const;

 private:
  int buckets_;
  std::map<std::pair<int, int>, Buffer> gradients_;
  std::map<std::pair<int, int>, int> begun_, ended_;
};

class LocalPipeline {
 public:
  /// Stages begin at the cuts, and the last one ends with the model; units [0, frozen) only run
  /// forward.
  LocalPipeline(Backend& backend, const Model& model, std::vector<int> cuts = {0}, int frozen = 0);

  const std::vector<Bucket>& buckets() const { return buckets_; }
  std::vector<Buffer>& weights() { return weights_; }
  const std::vector<std::unique_ptr<ModelStage>>& stages() const { return stages_; }
  /// Returns the elements of the tensor with this full name.
  View weight(const std::string& name);
  void initialize(std::uint64_t seed);
  void refresh();

  /// Sets what the random numbers of train() depend on, besides the microbatch.
  void set_random(std::uint64_t seed, std::int64_t step) { seed_ = seed, step_ = step; }

  enum class Backward { joint, separate };  // B, or I of all stages and then W of all
  /// Returns the summed loss of one microbatch; its gradients go to `sink`.
  /// `fields` are those of the microbatch, in the order of the model's fields_of().
  double train(const std::vector<View>& fields, float loss_scale, int microbatch,
               GradientSink& sink, Backward backward = Backward::joint);
  double train(View tokens, View targets, float loss_scale, int microbatch, GradientSink& sink,
               Backward backward = Backward::joint) {
    return train({tokens, targets}, loss_scale, microbatch, sink, backward);
  }
  /// Computes the summed loss and the logits [R,V], without gradients.
  double evaluate(const std::vector<View>& fields, std::vector<float>& logits);
  double evaluate(View tokens, View targets, std::vector<float>& logits) {
    return evaluate({tokens, targets}, logits);
  }

 private:
  struct Memory {
    Buffer saved, grads, output, output_grad;
  };
  /// Returns whether a unit of the stage is trained.
  bool trains(std::size_t stage) const {
    return stages_[stage]->first_trained() < stages_[stage]->last_unit();
  }
  double forward(const std::vector<View>& fields, float loss_scale, int microbatch, bool training);

  Backend& backend_;
  std::uint64_t seed_ = 0;
  std::int64_t step_ = 1;
  std::vector<Bucket> buckets_;
  std::vector<Buffer> weights_, packed_;
  std::vector<std::unique_ptr<ModelStage>> stages_;
  Buffer workspace_, frozen_scratch_, backend_workspace_;
  std::vector<Memory> memory_;
  std::vector<MicrobatchIo> io_;
  std::vector<View> fields_;
};

}  // namespace concertina
