// The oracle's gradients against central finite differences of its own forward, all in double.
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "tests/buffer.h"
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

TEST(OracleTest, AttentionGradients) {
  const AttentionShape s{2, 5, 2, 3, DType::f32};
  Values qkv = draw(2 * 5 * 18), y(60), lse(20), dqkv(qkv.size());
  const Values dy = draw(60);
  attention_backward(s, dy.data(), qkv.data(), dqkv.data());
  const Values expected = differences(qkv, [&] {
    attention(s, qkv.data(), y.data(), lse.data());
    return dot(y, dy);
  });
  EXPECT_LE(relative_error(dqkv, expected), kTolerance);
}

/// What comes after a token has no effect on it.
TEST(OracleTest, AttentionIsCausal) {
  const AttentionShape s{1, 4, 2, 3, DType::f32};
  Values qkv = draw(4 * 18), y(24), changed(24), lse(8);
  attention(s, qkv.data(), y.data(), lse.data());
  for (std::size_t i = 3 * 18; i < qkv.size(); ++i) qkv[i] += 1;
  attention(s, qkv.data(), changed.data(), lse.data());
  EXPECT_TRUE(std::equal(y.begin(), y.begin() + 18, changed.begin()));
  EXPECT_FALSE(std::equal(y.begin(), y.end(), changed.begin()));
}

TEST(OracleTest, LayerNormGradients) {
  const Index rows = 3, width = 7;
  Values x = draw(21), gamma = draw(7), beta = draw(7), y(21), mean(3), rstd(3);
  const Values dy = draw(21), skip = draw(21);
  const auto loss = [&] {
    layer_norm(rows, width, x.data(), gamma.data(), beta.data(), y.data(), mean.data(),
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
  Values wte = draw(5 * 3), wpe = draw(2 * 3), x(18), dwte(15), dwpe(6);
  const Values dx = draw(18);
  const auto loss = [&] {
    embedding(6, 2, 3, tokens.data(), wte.data(), wpe.data(), x.data());
    return dot(x, dx);
  };
  embedding_backward(6, 2, 3, 5, tokens.data(), dx.data(), dwte.data(), dwpe.data(), false);
  EXPECT_LE(relative_error(dwte, differences(wte, loss)), kTolerance);
  EXPECT_LE(relative_error(dwpe, differences(wpe, loss)), kTolerance);
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
