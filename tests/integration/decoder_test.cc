// Decoders: reading token by token, in any pieces and layout, predicts what a pass over the whole
// text predicts.
#include "experiments/evaluate/decoder.h"

#include <gtest/gtest.h>

#include "tests/buffer.h"
#include "tests/integration/training.h"

namespace concertina {
namespace {

/// A text in each sample of a microbatch, and zeros after it.
class TextsSource final : public BatchSource {
 public:
  TextsSource(const std::vector<Tokens>& texts, std::int64_t tokens)
      : texts_(texts), fields_(text_fields(tokens)) {}
  std::span<const Field> fields() const override { return fields_; }
  void load(std::int64_t /*step*/, std::int64_t /*first*/, std::int64_t count,
            std::span<const View> views) override {
    for (const View& view : views) std::fill_n(view.i32(), view.count, 0);
    if (views[0].empty()) return;
    const std::size_t tokens = views[0].count / static_cast<std::size_t>(count);
    for (std::size_t t = 0; t < texts_.size(); ++t)
      std::ranges::copy(texts_[t], views[0].i32() + t * tokens);
  }
  std::int64_t valid_targets(std::int64_t, std::int64_t) const override { return 1; }

 private:
  const std::vector<Tokens>& texts_;
  std::vector<Field> fields_;
};

using Logits = std::vector<std::vector<float>>;  // by text

/// The logits after each text, on the rank that has them; elsewhere empty.
Logits whole_passes(Trainer& trainer, const std::vector<Tokens>& texts) {
  const ModelSpec& model = trainer.job().model;
  TextsSource source(texts, model.tokens_per_sample);
  Logits all;
  trainer.evaluate(0, 1, source, [&](int, View logits) {
    const auto columns = static_cast<std::size_t>(model.vocabulary);
    const auto tokens = static_cast<std::size_t>(model.tokens_per_sample);
    for (std::size_t t = 0; t < texts.size(); ++t)
      all.push_back(to_floats(logits.slice((t * tokens + texts[t].size() - 1) * columns, columns)));
  });
  return all;
}

Tokens random_text(Data& data, std::size_t tokens) {
  const Buffer drawn = data.integers(static_cast<std::int64_t>(tokens), 0, 60);
  return {drawn.view().i32(), drawn.view().i32() + tokens};
}

RunConfig family_config(const std::string& family, const std::string& compute) {
  RunConfig config = small_config();
  config.model.family = family;
  config.model.context = 100;
  config.numerics.compute = compute;
  return config;
}

DecodedModel decoded(Trainer& trainer) {
  return {trainer.config(), trainer.assignment(), trainer.state().weights(), trainer.world(),
          trainer.tensors()};
}

/// Expects the decoder to predict what passes over the texts predict.
void expect_predictions(Decoder& decoder, Trainer& trainer, const std::vector<Tokens>& texts,
                        double most) {
  decoder.read();
  const Logits expected = whole_passes(trainer, texts);
  EXPECT_EQ(!expected.empty(), decoder.last_rank() == trainer.world().rank());
  for (std::size_t t = 0; t < expected.size(); ++t)
    EXPECT_LE(relative_error(decoder.logits(t), expected[t]), most) << "text " << t;
}

void expect_as_whole(const RunPlace& place, double most) {
  SCOPED_TRACE(place.name);
  with_threads(place.ranks, place.config, [&](Trainer& trainer, BatchSource&) {
    const auto backend = make_cpu_backend(1);
    Decoder decoder(decoded(trainer), 2, *backend);
    Data data(7);
    // Longer than one pass over a prompt; much shorter; then token by token and in between.
    std::vector<Tokens> texts{random_text(data, 80), random_text(data, 3)};
    decoder.start(texts);
    expect_predictions(decoder, trainer, texts, most);
    for (int i = 0; i < 6; ++i) {
      for (std::size_t t = 0; t < texts.size(); ++t) {
        if (i % 3 == 2 && t == 0) continue;  // this text waits
        for (const std::int32_t token : random_text(data, i == 4 ? 5 : 1)) {
          texts[t].push_back(token);
          decoder.append(t, token);
        }
      }
      expect_predictions(decoder, trainer, texts, most);
    }
    decoder.start({texts[1]});
    expect_predictions(decoder, trainer, {texts[1]}, most);
  });
}

TEST(Decoder, PredictsWhatAPassOverTheWholeTextDoes) {
  for (const char* family : {"gpt", "llama", "neox"})
    for (const RunPlace& place : grid_places(family_config(family, "fp32"),
                                             {{1, 1, "1f1b"}, {2, 1, "1f1b"}, {2, 1, "zb-v"}}))
      expect_as_whole({family + place.name, place.ranks, place.config}, 2e-5);
}

TEST(Decoder, PredictsInBf16) {
  for (const RunPlace& place :
       grid_places(family_config("llama", "bf16"), {{1, 1, "1f1b"}, {3, 1, "gpipe"}}))
    expect_as_whole(place, 3e-2);
}

TEST(Decoder, ContinuesATextBeyondTheContextFromItsMiddle) {
  RunConfig config = family_config("gpt", "fp32");
  config.model.context = 20;
  with_rank_alone(config, [&](Trainer& trainer, BatchSource&) {
    const auto backend = make_cpu_backend(1);
    Decoder decoder(decoded(trainer), 1, *backend);
    Data data(8);
    Tokens text = random_text(data, 33);
    decoder.start({text});
    expect_predictions(decoder, trainer, {{text.end() - 20, text.end()}}, 2e-5);
    std::size_t seen = 20;
    for (int i = 0; i < 25; ++i) {
      text.push_back(i);
      decoder.append(0, i);
      seen = seen == 20 ? 10 : seen + 1;
      expect_predictions(decoder, trainer,
                         {{text.end() - static_cast<std::ptrdiff_t>(seen), text.end()}}, 2e-5);
    }
  });
}

}  // namespace
}  // namespace concertina
