// Tables of tokens, and the losses.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/core/kernels/cases.h"
#include "tests/core/kernels/differences.h"
#include "tests/core/kernels/rates.h"
#include "tests/oracle/vocabulary.h"

namespace concertina {
namespace {

/// Which tables there are: GPT-2's two, Llama's one, BERT's three.
struct Tables {
  bool positions;
  std::int64_t types;
};

Outputs run_embedding(Backend& backend, unsigned seed, std::int64_t samples, std::int64_t tokens,
                      std::int64_t width, std::int64_t vocabulary, Tables tables, DType compute) {
  Data data(seed);
  const Workspace workspace(backend);
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
    keep(outputs, "dwte" + how, dwte);
    keep(outputs, "dwpe" + how, dwpe);
    keep(outputs, "dwtt" + how, dwtt);
  }
  keep(outputs, "x", x);
  return outputs;
}

Outputs run_cross_entropy(Backend& backend, unsigned seed, std::int64_t rows,
                          std::int64_t vocabulary, float spread, float smoothing, DType compute) {
  Data data(seed);
  const Workspace workspace(backend);
  const Buffer logits = data.normal(rows * vocabulary, spread, 3, compute);
  const Buffer targets = data.integers(rows, -1, static_cast<std::int32_t>(vocabulary - 1));
  const Buffer kept(logits.values(), compute), grad(logits.values(), compute);
  const Buffer loss(static_cast<std::size_t>(rows)), same_loss(loss.size());
  backend.run(CrossEntropy{kept.view(), targets.view(), 0.37F, false, loss.view(), smoothing});
  backend.run(CrossEntropy{grad.view(), targets.view(), 0.37F, true, same_loss.view(), smoothing});
  backend.synchronize();
  EXPECT_EQ(kept.values(), logits.values()) << "logits stay where nothing is trained";
  EXPECT_EQ(loss.values(), same_loss.values());
  Outputs outputs;
  keep(outputs, "row_loss", loss);
  keep(outputs, "dlogits", grad);
  return outputs;
}

/// Targets before, in and after the sample.
Outputs run_span(Backend& backend, unsigned seed, std::int64_t samples, std::int64_t tokens,
                 float spread, float smoothing, DType compute) {
  Data data(seed);
  const Workspace workspace(backend);
  const Buffer logits = data.normal(samples * tokens * 2, spread, 3, compute);
  const auto last = static_cast<std::int32_t>(tokens);
  const Buffer starts = data.integers(samples, -1, last), ends = data.integers(samples, -1, last);
  const Buffer kept(logits.values(), compute), grad(logits.values(), compute);
  const Buffer loss(static_cast<std::size_t>(samples)), same_loss(loss.size());
  const auto run = [&](const Buffer& to, bool training, const Buffer& row_loss) {
    backend.run(SpanCrossEntropy{to.view(), starts.view(), ends.view(), tokens, 0.37F, training,
                                 row_loss.view(), smoothing});
  };
  run(kept, false, loss);
  run(grad, true, same_loss);
  backend.synchronize();
  EXPECT_EQ(kept.values(), logits.values()) << "logits stay where nothing is trained";
  EXPECT_EQ(loss.values(), same_loss.values());
  Outputs outputs;
  keep(outputs, "row_loss", loss, 1e-3);  // of one token it is 0
  keep(outputs, "dlogits", grad, 0.37 * 1e-3);
  return outputs;
}

/// Scores from 0 to 1, some of them not there.
Outputs run_scores(Backend& backend, unsigned seed, std::int64_t rows, std::int64_t columns,
                   float spread, ScoreLoss::Kind kind, DType compute) {
  Data data(seed);
  const Workspace workspace(backend);
  const Buffer logits = data.normal(rows * columns, spread, 0, compute);
  const Buffer kinds = data.integers(rows * columns, -1, 4);
  const Buffer scores(logits.size());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const auto kind_of_it = kinds.view().i32()[i];
    scores.view().f32()[i] = kind_of_it < 0 ? kNoScore : static_cast<float>(kind_of_it) / 4;
  }
  const Buffer kept(logits.values(), compute), grad(logits.values(), compute);
  const Buffer loss(static_cast<std::size_t>(rows)), same_loss(loss.size());
  backend.run(ScoreLoss{kept.view(), scores.view(), kind, 0.37F, false, loss.view()});
  backend.run(ScoreLoss{grad.view(), scores.view(), kind, 0.37F, true, same_loss.view()});
  backend.synchronize();
  EXPECT_EQ(kept.values(), logits.values()) << "logits stay where nothing is trained";
  EXPECT_EQ(loss.values(), same_loss.values());
  Outputs outputs;
  keep(outputs, "row_loss", loss);
  keep(outputs, "dlogits", grad, 0.37 * 1e-3);
  return outputs;
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
  rates.fused("score loss", 2 * static_cast<double>(logits.bytes() + scores.bytes() / 2),
              ScoreLoss{logits, scores, ScoreLoss::Kind::binary, 1e-4F, true, loss});
  const std::int64_t spans = r * c / (2 * t);
  const View starts = memory.integers(spans, static_cast<std::int32_t>(t));
  rates.fused("span cross entropy", 2 * bytes,
              SpanCrossEntropy{x, starts, starts, t, 1e-4F, true, loss});
}

namespace oracle {
namespace {

TEST(OracleTest, EmbeddingGradients) {
  const std::vector<std::int32_t> tokens{1, 4, 4, 0, 1, 1};
  const auto row_of = [&](Index r) { return Index{tokens[static_cast<std::size_t>(r)]}; };
  Values table = draw(5 * 3), x, dtable(15);
  const Values dx = draw(18);
  const auto loss = [&] {
    x.assign(18, 0);
    add_table_rows(6, 3, table.data(), row_of, x.data());
    return dot(x, dx);
  };
  sum_table_rows(6, 3, 5, dx.data(), row_of, dtable.data(), false);
  EXPECT_LE(relative_error(dtable, differences(table, loss)), kTolerance);
}

TEST(OracleTest, CrossEntropyGradient) {
  const std::vector<std::int32_t> targets{2, -1, 0};
  Values logits = draw(12), row_loss(3);
  Values grad = logits;
  cross_entropy(3, 4, grad.data(), targets.data(), 0.3, true, row_loss.data(), 0.2);
  const Values expected = differences(logits, [&] {
    cross_entropy(3, 4, logits.data(), targets.data(), 0.3, false, row_loss.data(), 0.2);
    return 0.3 * (row_loss[0] + row_loss[1] + row_loss[2]);
  });
  EXPECT_LE(relative_error(grad, expected), kTolerance);
  EXPECT_EQ(row_loss[1], 0);
}

TEST(OracleTest, ScoreLossGradient) {
  const std::vector<float> scores{0.5F, 0, kNoScore, 1, 1, 0.25F};
  for (const bool binary : {false, true}) {
    Values logits = draw(6), row_loss(2);
    Values grad = logits;
    score_loss(2, 3, grad.data(), scores.data(), binary, 0.3, true, row_loss.data());
    const Values expected = differences(logits, [&] {
      score_loss(2, 3, logits.data(), scores.data(), binary, 0.3, false, row_loss.data());
      return 0.3 * (row_loss[0] + row_loss[1]);
    });
    EXPECT_LE(relative_error(grad, expected), kTolerance);
    EXPECT_EQ(grad[2], 0);
  }
}

TEST(OracleTest, SpanCrossEntropyGradient) {
  const std::vector<std::int32_t> starts{2, -1, 0}, ends{3, 1, 4};
  Values logits = draw(3 * 4 * 2), row_loss(3);
  Values grad = logits;
  span_cross_entropy(3, 4, grad.data(), starts.data(), ends.data(), 0.3, true, row_loss.data());
  const Values expected = differences(logits, [&] {
    span_cross_entropy(3, 4, logits.data(), starts.data(), ends.data(), 0.3, false,
                       row_loss.data());
    return 0.3 * (row_loss[0] + row_loss[1] + row_loss[2]);
  });
  EXPECT_LE(relative_error(grad, expected), kTolerance);
}

}  // namespace
}  // namespace oracle
}  // namespace concertina
