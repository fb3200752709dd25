#include "experiments/evaluate/generate.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "core/error.h"
#include "core/rng.h"

namespace concertina {
namespace {

constexpr int kTokensBetweenStops = 16;

/// Provides the same context, the end of the text so far, for every sample of a microbatch.
class ContextSource final : public BatchSource {
 public:
  ContextSource(const std::vector<std::int32_t>& text, std::int64_t tokens)
      : text_(text), tokens_(tokens), fields_(text_fields(tokens)) {
    fields_.push_back(starts_field(tokens));  // for packed documents: the text is one document
  }

  /// The row of a sample whose logits predict the next token.
  std::int64_t last_row() const { return length() - 1; }

  std::span<const Field> fields() const override { return fields_; }
  void load(std::int64_t, std::int64_t, std::int64_t count, std::span<const View> views) override {
    const View tokens = views[0], targets = views[1];
    if (!targets.empty()) std::fill_n(targets.i32(), targets.count, -1);
    if (!views[2].empty()) std::fill_n(views[2].i32(), views[2].count, 0);
    if (tokens.empty()) return;
    std::fill_n(tokens.i32(), tokens.count, 0);
    for (std::int64_t s = 0; s < count; ++s)
      std::copy(text_.end() - length(), text_.end(), tokens.i32() + s * tokens_);
  }
  std::int64_t valid_targets(std::int64_t, std::int64_t) const override { return 0; }

 private:
  std::int64_t length() const { return std::min(tokens_, static_cast<std::int64_t>(text_.size())); }
  const std::vector<std::int32_t>& text_;
  std::int64_t tokens_;
  std::vector<Field> fields_;
};

/// Inverse transform sampling in fp64, in index order.
std::int32_t sample(std::span<const float> logits, double temperature, float uniform) {
  if (!std::all_of(logits.begin(), logits.end(), [](float logit) { return std::isfinite(logit); }))
    throw_failure("the model's predictions are not finite: it has diverged", "generate",
                  kDivergedAdvice);
  const auto top = std::max_element(logits.begin(), logits.end());
  if (temperature <= 0) return static_cast<std::int32_t>(top - logits.begin());
  std::vector<double> weights;
  double sum = 0;
  for (const float logit : logits)
    sum += weights.emplace_back(std::exp((static_cast<double>(logit) - *top) / temperature));
  double left = sum * static_cast<double>(uniform);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    left -= weights[i];
    if (left < 0) return static_cast<std::int32_t>(i);
  }
  return static_cast<std::int32_t>(weights.size()) - 1;
}

/// Whether the model reads only tokens, a target for each of them, and document starts.
bool writes_text(const ModelSpec& model) {
  std::vector<Field> reads = fields_of(model);
  std::erase(reads, starts_field(model.tokens_per_sample));
  return reads == text_fields(model.tokens_per_sample);
}

}  // namespace

std::vector<std::int32_t> prompt_tokens(const ModelSpec& model, const Tokenizer& tokenizer,
                                        const std::string& prompt) {
  if (!writes_text(model))
    throw_input("this model does not predict next tokens and cannot generate text", "model.task",
                "\"causal-lm\" in a model family with a causal mask, such as gpt; or "
                "generate.tokens = 0 for training");
  std::vector<std::int32_t> text = tokenizer.tokens(prompt);
  if (text.empty())
    throw_input("the prompt is empty", "generate.prompt", "at least one byte, e.g. \"\\n\"");
  if (model.vocabulary < tokenizer.vocabulary())
    throw_input(fmt::format("the model has {} tokens, but the tokenizer has {}", model.vocabulary,
                            tokenizer.vocabulary()),
                "data.tokenizer", "the tokenizer that the model was trained with");
  return text;
}

std::string generate(Trainer& trainer, const Tokenizer& tokenizer, const GenerateSection& options,
                     std::int64_t seed, const std::function<bool()>& stop) {
  const ModelSpec& model = trainer.job().model;
  const std::vector<Pipeline>& pipelines = trainer.layout().pipelines;
  std::vector<std::int32_t> text = prompt_tokens(model, tokenizer, options.prompt);
  const std::size_t prompt = text.size();
  const Rng rng(static_cast<std::uint64_t>(seed), Purpose::sample);
  ContextSource source(text, model.tokens_per_sample);
  const auto vocabulary = static_cast<std::size_t>(model.vocabulary);
  const auto known = static_cast<std::size_t>(tokenizer.vocabulary());  // others are unused
  // Microbatch 0 belongs to the pipeline that starts the step.
  const auto pipeline = std::find_if(pipelines.begin(), pipelines.end(),
                                     [](const Pipeline& p) { return p.first_microbatch == 0; });
  const int last = pipeline->stages.back().rank;
  std::vector<std::byte> scratch;
  for (int i = 0; i < options.tokens && !(stop && i % kTokensBetweenStops == 0 && stop()); ++i) {
    std::int32_t token = 0;
    trainer.evaluate(0, 1, source, [&](int, View logits) {
      const auto row = static_cast<std::size_t>(source.last_row());
      const View next = logits.slice(row * vocabulary, known);
      token = sample(to_floats(host_view(trainer.tensor_memory(), next, scratch)),
                     options.temperature, rng.uniform(static_cast<std::uint32_t>(i), 0, 0, 0));
    });
    if (trainer.watchdog() != nullptr) trainer.watchdog()->at("broadcast of a token");
    trainer.world().broadcast(std::as_writable_bytes(std::span(&token, 1)), last).wait();
    text.push_back(token);
  }
  return tokenizer.decode(std::span(text).subspan(prompt));
}

}  // namespace concertina
