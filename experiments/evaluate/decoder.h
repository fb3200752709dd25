// Reads texts token by token and predicts their next tokens, with the stages of one pipeline.
// Invariants: every token is read once, and its keys and values are then in the caches of the
// stages. Predictions do not depend on the layout, and on the other texts only through the rounding
// of products with another number of rows.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/arena.h"
#include "experiments/config/config.h"
#include "models/model_stage.h"
#include "parallel/comm/communicator.h"
#include "parallel/comm/watchdog.h"
#include "parallel/plan/assignment.h"

namespace concertina {

/// A model that has been trained or loaded, and the ranks that have it.
struct DecodedModel {
  const RunConfig& config;
  const Assignment& assignment;
  const std::vector<View>& weights;  // of this rank, by bucket
  Communicator& world;
  Communicator& tensors;
  Watchdog* watchdog = nullptr;
};

using Tokens = std::vector<std::int32_t>;

class Decoder {
 public:
  /// For up to `texts` texts at once. `backend` must have no other operators. All arguments must
  /// outlive this object. Collective.
  Decoder(const DecodedModel& model, std::size_t texts, Backend& backend);
  ~Decoder();
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  /// Replaces the texts, each of which has at least one token.
  void start(std::vector<Tokens> texts);
  /// Appends a token to a text.
  void append(std::size_t text, std::int32_t token) { texts_[text].tokens.push_back(token); }
  /// Reads all tokens that have not been read. A text that exceeds the context is read again,
  /// starting in the middle of its last context. Collective over the pipeline.
  void read();

  /// The rank that has the predictions.
  int last_rank() const { return last_rank_; }
  /// The logits of the token after a text, on last_rank(), until the next read().
  std::vector<float> logits(std::size_t text) const;

 private:
  /// The part of a text that the model sees, tokens [begin, begin + read) of which are in the
  /// cache.
  struct Text {
    Tokens tokens;
    std::size_t begin = 0, read = 0;
    std::size_t unread() const { return tokens.size() - begin - read; }
  };
  /// The stages of this rank for `tokens` tokens of each text, without the cache.
  struct Pass {
    std::size_t tokens = 0;
    std::unique_ptr<Model> model{};
    std::vector<std::unique_ptr<ModelStage>> stages{};  // of the pipeline; null if on another rank
    std::vector<Field> fields{};
    std::vector<View> batch{};  // by field
    View input{}, output{};     // at stage boundaries
    MicrobatchIo io{};
  };

  Pass make_pass(std::size_t tokens) const;
  void attach(Pass& pass);
  void load(Pass& pass);
  void run(Pass& pass);
  void run_stage(Pass& pass, std::size_t stage);

  DecodedModel model_;
  Backend& backend_;
  std::size_t most_;  // texts
  std::size_t context_;
  std::vector<StagePlacement> stages_;  // of the pipeline
  int last_rank_;
  std::vector<void*> caches_;  // by stage
  Pass many_, one_;
  Arena arena_;
  std::vector<Text> texts_;
  const Pass* last_ = nullptr;  // the pass whose logits are valid
};

}  // namespace concertina
