// The oracle's gradients against central finite differences of its own forward, all in double.
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "tests/buffer.h"
#include "tests/oracle_families.h"
#include "tests/oracle_kernels.h"

namespace concertina::oracle {
namespace {

using Values = std::vector<double>;

std::mt19937 engine(11);

Values draw(Index count) {
  std::normal_distribution<double> normal;
  Values values(static_cast<std::size_t>(count));
  for (double& value : values) value = normal(engine);
  return values;
}

double dot(const Values& a, const Values& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// d loss / d x by central differences; x is as before when it returns.
Values differences(Values& x, const std::function<double()>& loss) {
  constexpr double kStep = 1e-5;
  Values grad;
  for (double& value : x) {
    const double kept = value;
    value = kept + kStep;
    const double up = loss();
    value = kept - kStep;
    const double down = loss();
    value = kept;
    grad.push_back((up - down) / (2 * kStep));
  }
  return grad;
}

constexpr double kTolerance = 1e-8;

TEST(OracleTest, GeluSlope) {
  Values u = draw(50);
  Values slopes;
  for (const double value : u) slopes.push_back(gelu_slope(value));
  const Values expected = differences(u, [&] {
    double sum = 0;
    for (const double value : u) sum += gelu(value);
    return sum;
  });
  EXPECT_LE(relative_error(slopes, expected), kTolerance);
}

TEST(OracleTest, GeluErfSlope) {
  Values u = draw(50);
  Values slopes;
  for (const double value : u) slopes.push_back(gelu_erf_slope(value));
  const Values expected = differences(u, [&] {
    double sum = 0;
    for (const double value : u) sum += gelu_erf(value);
    return sum;
  });
  EXPECT_LE(relative_error(slopes, expected), kTolerance);
}

TEST(OracleTest, RmsNormGradients) {
  const Index rows = 3, width = 7;
  Values x = draw(21), gamma = draw(7), y(21), rstd(3);
  const Values dy = draw(21), skip = draw(21);
  const auto loss = [&] {
    rms_norm(rows, width, x.data(), gamma.data(), 1e-5, y.data(), rstd.data());
    return dot(y, dy) + dot(x, skip);
  };
  loss();
  Values dx(21), dgamma(7);
  rms_norm_backward_input(rows, width, dy.data(), x.data(), gamma.data(), rstd.data(), skip.data(),
                          dx.data());
  rms_norm_backward_weight(rows, width, dy.data(), x.data(), rstd.data(), dgamma.data(), false);
  EXPECT_LE(relative_error(dx, differences(x, loss)), kTolerance);
  EXPECT_LE(relative_error(dgamma, differences(gamma, loss)), kTolerance);
}

/// The inverse is the gradient; scores depend on the distance of two positions alone.
TEST(OracleTest, RotaryEmbedding) {
  const Index tokens = 5, head_dim = 6, stride = 15;
  Values table(30), x = draw(2 * tokens * stride);
  rotary_table(100.0, tokens, head_dim, table.data());
  const Values dy = draw(2 * tokens * stride);
  const auto turned = [&](Values values, bool inverse) {
    rotate(2 * tokens, stride, 2, head_dim, tokens, table.data(), inverse, values.data());
    return values;
  };
  const auto loss = [&] { return dot(turned(x, false), dy); };
  EXPECT_LE(relative_error(turned(dy, true), differences(x, loss)), kTolerance);

  Values same(static_cast<std::size_t>(tokens * stride), 0);
  const Values q = draw(head_dim), k = draw(head_dim);
  for (Index t = 0; t < tokens; ++t) {
    std::copy(q.begin(), q.end(), same.begin() + t * stride);
    std::copy(k.begin(), k.end(), same.begin() + t * stride + head_dim);
  }
  rotate(tokens, stride, 2, head_dim, tokens, table.data(), false, same.data());
  const auto score = [&](Index of_q, Index of_k) {
    double sum = 0;
    for (Index d = 0; d < head_dim; ++d)
      sum += same[static_cast<std::size_t>(of_q * stride + d)] *
             same[static_cast<std::size_t>(of_k * stride + head_dim + d)];
    return sum;
  };
  EXPECT_NEAR(score(3, 1), score(4, 2), 1e-12);
  EXPECT_GT(std::abs(score(3, 1) - score(4, 1)), 1e-3);
}

TEST(OracleTest, GatedSiluGradients) {
  Values u = draw(24), y(12), du(24);
  const Values dy = draw(12);
  gated_silu_backward(3, 4, dy.data(), u.data(), du.data());
  const auto loss = [&] {
    gated_silu(3, 4, u.data(), y.data());
    return dot(y, dy);
  };
  EXPECT_LE(relative_error(du, differences(u, loss)), kTolerance);
}

TEST(OracleTest, JoinClassGradients) {
  Values x = draw(12), cls = draw(3), wpe = draw(9), y(18), dcls(3), dwpe(9);
  const Values dy = draw(18);
  const auto loss = [&] {
    join_class(2, 3, 3, x.data(), cls.data(), wpe.data(), y.data());
    return dot(y, dy);
  };
  join_class_weight(2, 3, 3, dy.data(), dcls.data(), dwpe.data(), false);
  EXPECT_LE(relative_error(dcls, differences(cls, loss)), kTolerance);
  EXPECT_LE(relative_error(dwpe, differences(wpe, loss)), kTolerance);
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

TEST(OracleTest, LinearGradients) {
  for (const bool transposed : {false, true}) {
    const LinearShape s{4, 5, 3, transposed, DType::f32};
    Values x = draw(20), w = draw(15), b = draw(3), u(12);
    const Values dy = draw(12);
    const auto loss = [&] {
      linear(s, x.data(), w.data(), b.data(), u.data());
      return dot(u, dy);
    };
    Values dx(20), dw(15), db(3);
    linear_backward_input(s, dy.data(), w.data(), dx.data());
    linear_backward_weight(s, x.data(), dy.data(), dw.data(), db.data(), false);
    EXPECT_LE(relative_error(dx, differences(x, loss)), kTolerance);
    EXPECT_LE(relative_error(dw, differences(w, loss)), kTolerance);
    EXPECT_LE(relative_error(db, differences(b, loss)), kTolerance);

    Values twice = dw;
    linear_backward_weight(s, x.data(), dy.data(), twice.data(), db.data(), true);
    for (double& value : dw) value *= 2;
    EXPECT_LE(relative_error(twice, dw), 1e-15);
  }
}

/// Padding, the last 2 of 4 tokens in the second of two samples, is hidden only as keys.
TEST(OracleTest, AttentionGradients) {
  const std::int32_t lengths[] = {4, 2};
  for (const bool causal : {true, false})
    for (const bool padded : {true, false})
      for (const Index kv_heads : {0, 1, 2, 4}) {
        const AttentionShape s{2, 4, 4, 3, DType::f32, kv_heads, causal, padded};
        const auto size = [](Index n) { return static_cast<std::size_t>(8 * n); };
        Values qkv = draw(8 * s.qkv_width()), y(size(12)), lse(size(4)), dqkv(qkv.size());
        const Values dy = draw(8 * 12);
        const std::int32_t* seen = padded ? lengths : nullptr;
        attention_backward(s, dy.data(), qkv.data(), seen, dqkv.data());
        const Values expected = differences(qkv, [&] {
          attention(s, qkv.data(), seen, y.data(), lse.data());
          return dot(y, dy);
        });
        EXPECT_LE(relative_error(dqkv, expected), kTolerance)
            << causal << padded << " heads of keys: " << kv_heads;
      }
}

/// Query heads that share keys and values give what they give with a copy for each.
TEST(OracleTest, GroupsOfHeadsShareKeysAndValues) {
  const AttentionShape shared{1, 3, 4, 1, DType::f32, 2}, copied{1, 3, 4, 1, DType::f32};
  const Values in = draw(3 * 8);
  Values copies, y(12), expected(12), lse(12);
  for (std::size_t t = 0; t < 3; ++t)
    for (const std::size_t column : {0, 1, 2, 3, 4, 4, 5, 5, 6, 6, 7, 7})
      copies.push_back(in[8 * t + column]);
  attention(shared, in.data(), nullptr, y.data(), lse.data());
  attention(copied, copies.data(), nullptr, expected.data(), lse.data());
  EXPECT_EQ(y, expected);
}

/// What comes after a token has no effect on it, or on the first of three with a length of three.
TEST(OracleTest, AttentionSeesNoHiddenKey) {
  const std::int32_t three = 3;
  for (const bool causal : {true, false}) {
    const AttentionShape s{1, 4, 2, 3, DType::f32, 0, causal, !causal};
    const std::int32_t* lengths = causal ? nullptr : &three;
    Values qkv = draw(4 * 18), y(24), changed(24), lse(8);
    attention(s, qkv.data(), lengths, y.data(), lse.data());
    for (std::size_t i = 3 * 18; i < qkv.size(); ++i) qkv[i] += 1;
    attention(s, qkv.data(), lengths, changed.data(), lse.data());
    EXPECT_TRUE(std::equal(y.begin(), y.begin() + 18, changed.begin()));
    EXPECT_FALSE(std::equal(y.begin(), y.end(), changed.begin()));
    if (causal) continue;
    attention({1, 4, 2, 3, DType::f32, 0, false}, qkv.data(), nullptr, y.data(), lse.data());
    EXPECT_NE(y[0], changed[0]) << "the first token sees the last";
  }
}

TEST(OracleTest, LayerNormGradients) {
  const Index rows = 3, width = 7;
  Values x = draw(21), gamma = draw(7), beta = draw(7), y(21), mean(3), rstd(3);
  const Values dy = draw(21), skip = draw(21);
  const auto loss = [&] {
    layer_norm(rows, width, x.data(), gamma.data(), beta.data(), 1e-5, y.data(), mean.data(),
               rstd.data());
    return dot(y, dy) + dot(x, skip);
  };
  loss();
  Values dx(21), dgamma(7), dbeta(7);
  layer_norm_backward_input(rows, width, dy.data(), x.data(), gamma.data(), mean.data(),
                            rstd.data(), skip.data(), dx.data());
  layer_norm_backward_weight(rows, width, dy.data(), x.data(), mean.data(), rstd.data(),
                             dgamma.data(), dbeta.data(), false);
  EXPECT_LE(relative_error(dx, differences(x, loss)), kTolerance);
  EXPECT_LE(relative_error(dgamma, differences(gamma, loss)), kTolerance);
  EXPECT_LE(relative_error(dbeta, differences(beta, loss)), kTolerance);
}

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
  cross_entropy(3, 4, grad.data(), targets.data(), 0.3, true, row_loss.data());
  const Values expected = differences(logits, [&] {
    cross_entropy(3, 4, logits.data(), targets.data(), 0.3, false, row_loss.data());
    return 0.3 * (row_loss[0] + row_loss[1] + row_loss[2]);
  });
  EXPECT_LE(relative_error(grad, expected), kTolerance);
  EXPECT_EQ(row_loss[1], 0);
}

/// Adam's first step has length lr whatever the gradient's size; decay pulls towards zero.
TEST(OracleTest, AdamWFirstStep) {
  Values w{2, 2}, m{0, 0}, v{0, 0};
  const Values g{1e3, -1e-3};
  oracle::adamw(AdamW{.lr = 0.5F, .eps = 1e-12F, .weight_decay = 0.5F}, 2, w.data(), m.data(),
                v.data(), g.data());
  EXPECT_NEAR(w[0], 2 * (1 - 0.25) - 0.5, 1e-6);
  EXPECT_NEAR(w[1], 2 * (1 - 0.25) + 0.5, 1e-6);
}

}  // namespace
}  // namespace concertina::oracle
