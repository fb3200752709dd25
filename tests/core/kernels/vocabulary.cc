// Token tables and losses.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/model/batch.h"
#include "tests/core/kernels/cases.h"
#include "tests/core/kernels/rates.h"

namespace concertina {
namespace {

/// The tables of an embedding: GPT-2 has two, Llama one, BERT three.
struct Tables {
  bool positions;
  std::int64_t types;
};

Outputs run_embedding(Backend& backend, Data& data, std::int64_t samples, std::int64_t tokens,
                      std::int64_t width, std::int64_t vocabulary, Tables tables, DType compute) {
  const auto ids = [&](std::int64_t below) {
    return data.integers(samples * tokens, 0, static_cast<std::int32_t>(below - 1));
  };
  const Buffer token = ids(vocabulary), type = ids(std::max<std::int64_t>(tables.types, 1));
  const auto of = [](const Buffer& buffer, bool there) { return there ? buffer.view() : View{}; };
  const View types = of(type, tables.types > 1);
  const Buffer wte = data.normal(vocabulary * width), wpe = data.normal(tokens * width),
               wtt = data.normal(std::max<std::int64_t>(tables.types, 1) * width);
  const Buffer dx = data.normal(samples * tokens * width, 1, 0, compute);
  const Buffer x(dx.size(), compute);
  backend.run(Embed{token.view(), wte.view(), of(wpe, tables.positions),
                    tables.positions ? tokens : 0, x.view(), types, of(wtt, tables.types > 0)});
  Outputs outputs;
  for (const bool accumulate : {false, true}) {
    const Buffer dwte = data.normal(vocabulary * width), dwpe = data.normal(tokens * width),
                 dwtt = data.normal(static_cast<std::int64_t>(wtt.size()));
    backend.run(EmbedWeight{token.view(), dx.view(), tables.positions ? tokens : 0, dwte.view(),
                            of(dwpe, tables.positions), accumulate, types,
                            of(dwtt, tables.types > 0)});
    backend.synchronize();
    const std::string how = accumulate ? " accumulated" : "";
    for (const auto& [name, table] : {std::pair("dwte", &dwte), {"dwpe", &dwpe}, {"dwtt", &dwtt}})
      outputs.push_back(output(name + how, *table));
  }
  outputs.push_back(output("x", x));
  return outputs;
}

/// Returns the loss of each row and the gradient, from run(logits, training, row_loss). Errors are
/// relative to at least `least`.
template <class Run>
Outputs run_loss(Backend& backend, const Buffer& logits, std::int64_t rows, double least,
                 const Run& run) {
  const DType compute = logits.view().dtype;
  const Buffer kept(logits.values(), compute), grad(logits.values(), compute);
  const Buffer loss(static_cast<std::size_t>(rows)), same_loss(loss.size());
  run(kept.view(), false, loss.view());
  run(grad.view(), true, same_loss.view());
  backend.synchronize();
  EXPECT_EQ(kept.values(), logits.values()) << "logits are unchanged without training";
  EXPECT_EQ(loss.values(), same_loss.values());
  return {output("row_loss", loss, least), output("dlogits", grad, 0.37 * least)};
}

Outputs run_cross_entropy(Backend& backend, Data& data, std::int64_t rows, std::int64_t vocabulary,
                          float spread, float smoothing, DType compute) {
  const Buffer logits = data.normal(rows * vocabulary, spread, 3, compute);
  const Buffer targets = data.integers(rows, -1, static_cast<std::int32_t>(vocabulary - 1));
  return run_loss(backend, logits, rows, 0, [&](View to, bool training, View row_loss) {
    backend.run(CrossEntropy{to, targets.view(), 0.37F, training, row_loss, smoothing});
  });
}

/// The loss of similar logits is a small difference of logarithms, which may be rounded to fp32.
Outputs run_distillation(Backend& backend, Data& data, std::int64_t rows, std::int64_t vocabulary,
                         float spread, float share, float temperature, DType compute) {
  const Buffer logits = data.normal(rows * vocabulary, spread, 3, compute),
               teacher = data.normal(rows * vocabulary, spread, 1);
  const Buffer targets = data.integers(rows, -1, static_cast<std::int32_t>(vocabulary - 1));
  const Buffer loss(static_cast<std::size_t>(rows));
  backend.run(Distillation{logits.view(), targets.view(), teacher.view(), 0.37F, loss.view(), 0.1F,
                           share, temperature});
  backend.synchronize();
  return {output("row_loss", loss, 0.5), output("dlogits", logits, 0.37e-2)};
}

/// Targets include positions before and after the sample.
Outputs run_span(Backend& backend, Data& data, std::int64_t samples, std::int64_t tokens,
                 float spread, float smoothing, DType compute) {
  const Buffer logits = data.normal(samples * tokens * 2, spread, 3, compute);
  const auto last = static_cast<std::int32_t>(tokens);
  const Buffer starts = data.integers(samples, -1, last), ends = data.integers(samples, -1, last);
  // The loss of one token is 0.
  return run_loss(backend, logits, samples, 1e-3, [&](View to, bool training, View row_loss) {
    backend.run(SpanCrossEntropy{to, starts.view(), ends.view(), tokens, 0.37F, training, row_loss,
                                 smoothing});
  });
}

/// Scores from 0 to 1, some of them missing.
Outputs run_scores(Backend& backend, Data& data, std::int64_t rows, std::int64_t columns,
                   float spread, ScoreLoss::Kind kind, DType compute) {
  const Buffer logits = data.normal(rows * columns, spread, 0, compute);
  const Buffer kinds = data.integers(rows * columns, -1, 4);
  const Buffer scores(logits.size());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const auto kind_of_it = kinds.view().i32()[i];
    scores.view().f32()[i] = kind_of_it < 0 ? kNoScore : static_cast<float>(kind_of_it) / 4;
  }
  return run_loss(backend, logits, rows, 1e-3, [&](View to, bool training, View row_loss) {
    backend.run(ScoreLoss{to, scores.view(), kind, 0.37F, training, row_loss});
  });
}

}  // namespace

void add_vocabulary_cases(CaseRound& round) {
  Data& data = round.data;
  const std::int64_t samples = data.size(1, 4), tokens = odd_size(data, 60);
  const std::int64_t width = odd_size(data, 300), vocabulary = odd_size(data, 300);
  for (const Tables tables : {Tables{true, 0}, {false, 0}, {true, 1}, {true, 2}, {false, 3}})
    round.add(fmt::format("embedding {}x{}x{} vocabulary {} positions {} types {}", samples, tokens,
                          width, vocabulary, tables.positions, tables.types),
              run_embedding, samples, tokens, width, vocabulary, tables);
  const std::int64_t rows = odd_size(data, 200);
  const auto spread = data.pick<float>({1e-3F, 1, 30});
  for (const float smoothing : {0.0F, 0.1F, 0.7F}) {
    round.add(fmt::format("cross_entropy {}x{} spread {} smoothing {}", rows, vocabulary, spread,
                          smoothing),
              run_cross_entropy, rows, vocabulary, spread, smoothing);
    round.add(fmt::format("distillation {}x{} spread {} share {}", rows, vocabulary, spread,
                          0.3F + smoothing),
              run_distillation, rows, vocabulary, spread, 0.3F + smoothing, 1 + smoothing);
    round.add(fmt::format("span {}x{} spread {} smoothing {}", samples, rows, spread, smoothing),
              run_span, samples, rows, spread, smoothing);
  }
  for (const auto& [columns, name] : {std::pair(samples, "few"), {vocabulary, "many"}})
    for (const auto kind : {ScoreLoss::Kind::squares, ScoreLoss::Kind::binary})
      round.add(fmt::format("scores {}x{} ({}) spread {} {}", rows, columns, name, spread,
                            kind == ScoreLoss::Kind::binary ? "binary" : "squares"),
                run_scores, rows, columns, spread, kind);
}

void vocabulary_rates(KernelRates& rates, DType compute) {
  const RateSizes& sizes = rates.sizes();
  RateMemory& memory = rates.memory();
  const std::int64_t r = sizes.rows(), c = sizes.width, v = sizes.vocabulary, t = sizes.tokens;
  const View x = memory.take(r * c, compute), dy = memory.take(r * c, compute);
  const View tokens = memory.integers(r, static_cast<std::int32_t>(v)),
             types = memory.integers(r, 2);
  const View wte = memory.take(v * c, DType::f32), wpe = memory.take(t * c, DType::f32),
             wtt = memory.take(2 * c, DType::f32);
  const auto bytes = static_cast<double>(x.bytes()), gathered = static_cast<double>(r * c) * 4;
  rates.fused("embedding", bytes + gathered, Embed{tokens, wte, wpe, t, x});
  rates.fused("embedding with types", bytes + gathered, Embed{tokens, wte, wpe, t, x, types, wtt});
  rates.fused("embedding backward", bytes + 2 * gathered,
              EmbedWeight{tokens, dy, t, wte, wpe, true});
  rates.fused("embedding backward, types", bytes + 2 * gathered,
              EmbedWeight{tokens, dy, t, wte, wpe, true, types, wtt});
  const View logits = memory.take(r * v, compute), loss = memory.take(r, DType::f32);
  rates.fused("cross entropy", 3 * static_cast<double>(logits.bytes()),
              CrossEntropy{logits, tokens, 1e-4F, true, loss});
  const View scores = memory.take(r * v, DType::f32);
  rates.fused("distillation", 2 * static_cast<double>(logits.bytes() + scores.bytes() / 2),
              Distillation{logits, tokens, scores, 1e-4F, loss, 0, 0.5F, 2});
  rates.fused("score loss", 2 * static_cast<double>(logits.bytes() + scores.bytes() / 2),
              ScoreLoss{logits, scores, ScoreLoss::Kind::binary, 1e-4F, true, loss});
  const std::int64_t spans = r * c / (2 * t);
  const View starts = memory.integers(spans, static_cast<std::int32_t>(t));
  rates.fused("span cross entropy", 2 * bytes,
              SpanCrossEntropy{x, starts, starts, t, 1e-4F, true, loss});
}

}  // namespace concertina
