// The teacher of a run that distills a model ([distill]): a frozen model that adds its logits to
// each training sample. Invariant: the logits of a sample are a pure function of the sample, so
// they do not depend on the layout.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "experiments/config/config.h"
#include "experiments/run/trainer.h"
#include "io/datasets/dataset.h"

namespace concertina {

class Teacher {
 public:
  /// Loads distill.teacher on this rank, which computes alone. `data` and `tokenizer` are the
  /// student's; `threads` are for this rank. Throws Error{bad_input} if the teacher cannot read the
  /// data, has different classes or tokens, or differs between ranks. Collective over `world`.
  void start(const RunConfig& student, const Dataset& data, const Tokenizer& tokenizer, int threads,
             Communicator& world);
  /// Writes the logits for a sample of `data`, or zeros unless it is a training sample.
  /// Thread-safe.
  void answer(const Dataset& data, const SampleAt& at, View logits);
  /// The hash of the weights.
  const std::string& sha256() const { return sha256_; }

 private:
  /// The sample that is being answered, as a batch.
  class Question final : public BatchSource {
   public:
    std::span<const Field> fields() const override { return fields_; }
    void load(std::int64_t, std::int64_t, std::int64_t, std::span<const View> views) override;
    std::int64_t valid_targets(std::int64_t, std::int64_t) const override { return 1; }

    std::vector<Field> fields_;
    std::vector<int> places_;  // of the fields in the data
    const Dataset* data_ = nullptr;
    SampleAt at_;
  };

  std::mutex mutex_;
  RunConfig config_;
  std::unique_ptr<Communicator> alone_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Trainer> model_;
  std::vector<std::byte> scratch_;
  Question question_;
  std::string sha256_;
};

/// Adds the field of the teacher's logits, as the model of `config` reads it, to the samples of
/// `dataset`. `teacher` must be started before a sample with this field is written.
std::shared_ptr<const Dataset> taught(std::shared_ptr<const Dataset> dataset,
                                      const RunConfig& config, std::shared_ptr<Teacher> teacher);

}  // namespace concertina
