#include "experiments/evaluate/generate.h"

#include <algorithm>
#include <optional>

#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"
#include "core/rng.h"
#include "experiments/evaluate/sampling.h"
#include "experiments/machine/gather.h"

namespace concertina {
namespace {

constexpr int kTokensBetweenStops = 16;

/// Whether the model reads only tokens, a target for each of them, and document starts.
bool writes_text(const ModelSpec& model) {
  std::vector<Field> reads = fields_of(model);
  std::erase(reads, starts_field(model.tokens_per_sample));
  std::erase_if(reads, [](const Field& field) { return field.name == "teacher"; });
  return reads == text_fields(model.tokens_per_sample);
}

/// A text that is being continued.
struct Writing {
  Tokens tokens;
  std::size_t prompt = 0;  // number of its tokens
  Rng random;
  bool done = false;
  Continuation result{};
};

class Generation {
 public:
  Generation(const DecodedModel& model, Backend& backend, const Tokenizer& tokenizer,
             std::size_t texts)
      : model_(model), options_(model.config.generate), tokenizer_(tokenizer) {
    together(model.world, [&] { decoder_.emplace(model, texts, backend); });
  }

  void run(std::span<Writing> texts, const std::function<bool()>& stop) {
    write(texts, stop);
    for (Writing& text : texts)
      if (text.result.end != kStopped) text.result.text = text_of(text);
  }

 private:
  static constexpr std::string_view kStopped = "stop";

  std::string text_of(const Writing& text) const {
    return tokenizer_.decode(std::span(text.tokens).subspan(text.prompt));
  }

  void write(std::span<Writing> texts, const std::function<bool()>& stop) {
    std::vector<Tokens> tokens;
    for (const Writing& text : texts) tokens.push_back(text.tokens);
    decoder_->start(std::move(tokens));
    for (int i = 0; i < options_.tokens; ++i) {
      if (std::ranges::all_of(texts, &Writing::done)) return;
      if (stop && i % kTokensBetweenStops == 0 && stop()) {
        for (Writing& text : texts)
          if (!text.done) text.result.end = "interrupted";
        return;
      }
      decoder_->read();
      choose(texts, i);
      for (std::size_t t = 0; t < texts.size(); ++t)
        if (!texts[t].done) add(texts[t], t);
    }
  }

  /// Chooses the next tokens on the rank of the last stage and sends them to the others.
  void choose(std::span<Writing> texts, int i) {
    next_.resize(texts.size());
    const auto known = static_cast<std::size_t>(tokenizer_.vocabulary());  // others are unused
    for (std::size_t t = 0; decoder_->last_rank() == model_.world.rank() && t < texts.size(); ++t) {
      if (texts[t].done) continue;
      const std::vector<float> logits = decoder_->logits(t);
      next_[t] = sample_token(
          std::span(logits).first(known), texts[t].tokens, options_,
          static_cast<double>(texts[t].random.uniform(static_cast<std::uint32_t>(i), 0, 0, 0)));
    }
    if (model_.watchdog != nullptr) model_.watchdog->at("broadcast of a token");
    model_.world.broadcast(std::as_writable_bytes(std::span(next_)), decoder_->last_rank()).wait();
  }

  void add(Writing& text, std::size_t index) {
    const auto [token, log_probability] = next_[index];
    text.result.log_probabilities.push_back(log_probability);
    if (token == tokenizer_.special(SpecialToken::end)) {
      text.done = true, text.result.end = "end of text";
      return;
    }
    text.tokens.push_back(token);
    decoder_->append(index, token);
    if (options_.stop.empty()) return;  // the text is decoded once, at its end
    text.result.text = text_of(text);
    for (const std::string& one : options_.stop)
      if (const std::size_t found = text.result.text.find(one); found != std::string::npos) {
        text.done = true, text.result.end = kStopped;
        text.result.text.resize(found);
      }
  }

  const DecodedModel& model_;
  const GenerateSection& options_;
  const Tokenizer& tokenizer_;
  std::optional<Decoder> decoder_;
  std::vector<SampledToken> next_;  // by text
};

}  // namespace

Tokens prompt_tokens(const ModelSpec& model, const Tokenizer& tokenizer,
                     const std::string& prompt) {
  if (!writes_text(model))
    throw_input("this model does not predict next tokens and cannot generate text", "model.task",
                "\"causal-lm\" in a model family with a causal mask, such as gpt; or "
                "generate.tokens = 0 for training");
  Tokens text = tokenizer.tokens(prompt);
  if (text.empty())
    throw_input("the prompt is empty", "generate.prompt", "at least one byte, e.g. \"\\n\"");
  if (model.vocabulary < tokenizer.vocabulary())
    throw_input(fmt::format("the model has {} tokens, but the tokenizer has {}", model.vocabulary,
                            tokenizer.vocabulary()),
                "data.tokenizer", "the tokenizer that the model was trained with");
  return text;
}

std::vector<Continuation> generate(const DecodedModel& model, const ModelSpec& spec,
                                   Backend& backend, const Tokenizer& tokenizer,
                                   std::span<const Prompt> prompts,
                                   const std::function<bool()>& stop, const SeeContinuation& see) {
  std::vector<Writing> texts;
  for (const Prompt& prompt : prompts) {
    Tokens tokens = prompt_tokens(spec, tokenizer, prompt.text);
    const std::size_t size = tokens.size();
    texts.push_back(
        {std::move(tokens), size, Rng(static_cast<std::uint64_t>(prompt.seed), Purpose::sample)});
  }
  const std::size_t most =
      std::min(texts.size(), static_cast<std::size_t>(model.config.generate.batch));
  Generation generation(model, backend, tokenizer, most);
  const double start = now();
  for (std::size_t begin = 0; begin < texts.size(); begin += most) {
    const std::size_t count = std::min(most, texts.size() - begin);
    generation.run(std::span(texts).subspan(begin, count), stop);
    for (std::size_t t = begin; see && t < begin + count; ++t) see(t, texts[t].result);
  }
  const double seconds = now() - start;
  std::vector<Continuation> results;
  std::size_t tokens = 0;
  for (Writing& text : texts) {
    tokens += text.result.log_probabilities.size();
    results.push_back(std::move(text.result));
  }
  if (model.world.rank() == 0)
    log::info("generated {} tokens in {:.3g} s ({:.3g} tokens/s)", tokens, seconds,
              static_cast<double>(tokens) / seconds);
  return results;
}

}  // namespace concertina
