// Models over packed documents must treat each document as a separate sample.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "tests/models/local_pipeline.h"
#include "tests/oracle_backend.h"

namespace concertina {
namespace {

constexpr std::int64_t kTokens = 24;
/// Lengths of the documents in two samples; the rest is padding.
const std::vector<std::vector<std::int64_t>> kLengths{{5, 1, 11, 4}, {17, 7}};

struct FamilyCase {
  const char* family;
  OptionValues options;
};

ModelConfig config_of(const FamilyCase& one, bool packed) {
  ModelConfig config{.layers = 2, .width = 24, .heads = 4, .context = kTokens, .vocab = 37};
  config.samples = packed ? 2 : 1;
  config.packed = packed;
  config.options = one.options;
  return config;
}

/// Data of one model, divided into documents.
struct Window {
  std::vector<std::int32_t> tokens, targets, starts;
};

Window packed_window() {
  Data data(8);
  Window window;
  for (const auto& lengths : kLengths) {
    std::int64_t used = 0;
    const auto add = [&](std::int64_t length, bool padding) {
      for (std::int64_t i = 0; i < length; ++i) {
        window.tokens.push_back(padding ? 0 : static_cast<std::int32_t>(data.size(0, 36)));
        window.targets.push_back(padding ? -1 : static_cast<std::int32_t>(data.size(0, 36)));
        window.starts.push_back(static_cast<std::int32_t>(used));
      }
      used += length;
    };
    for (const std::int64_t length : lengths) add(length, false);
    add(kTokens - used, true);
  }
  return window;
}

Buffer int_buffer(const std::vector<std::int32_t>& values) {
  Buffer buffer(values.size(), DType::i32);
  std::ranges::copy(values, buffer.view().i32());
  return buffer;
}

/// Returns the fields in the order in which the units read them.
std::vector<Buffer> fields_in(const Window& window, const ModelSpec& spec) {
  std::vector<Buffer> fields;
  for (const Field& field : fields_of(spec))
    fields.push_back(int_buffer(field.name == "tokens"    ? window.tokens
                                : field.name == "targets" ? window.targets
                                                          : window.starts));
  return fields;
}

/// Puts one document in its own sample, followed by padding, which causal queries do not see.
Window alone(const Window& window, std::size_t first, std::int64_t length) {
  Window one{std::vector<std::int32_t>(kTokens), std::vector<std::int32_t>(kTokens, -1), {}};
  std::copy_n(window.tokens.begin() + static_cast<std::ptrdiff_t>(first), length,
              one.tokens.begin());
  std::copy_n(window.targets.begin() + static_cast<std::ptrdiff_t>(first), length,
              one.targets.begin());
  return one;
}

class PackedModel : public testing::TestWithParam<FamilyCase> {};

void PrintTo(const FamilyCase& one, std::ostream* out) {
  *out << one.family;
}

TEST_P(PackedModel, LogitsAndGradientsAreThoseOfEachDocumentAlone) {
  const auto backend = make_cpu_backend(1, "");
  const auto packed = make_model(GetParam().family, config_of(GetParam(), true));
  const auto plain = make_model(GetParam().family, config_of(GetParam(), false));
  LocalPipeline whole(*backend, *packed, {0, 2}), single(*backend, *plain);
  whole.initialize(3);
  single.initialize(3);
  const Window window = packed_window();
  const std::vector<Buffer> buffers = fields_in(window, packed->spec());
  const std::vector<View> fields = views_of(buffers);
  ASSERT_EQ(fields.size(), 3U);
  std::vector<float> logits, own;
  const double loss = whole.evaluate(fields, logits);
  GradientStore sums(whole.buckets()), parts(single.buckets());
  EXPECT_EQ(whole.train(fields, 0.125F, 0, sums), loss);
  double total = 0;
  int microbatch = 0;
  std::size_t differing = 0, compared = 0;
  for (std::size_t s = 0; s < kLengths.size(); ++s) {
    std::size_t first = s * kTokens;
    for (const std::int64_t length : kLengths[s]) {
      const Window one = alone(window, first, length);
      const Buffer t = int_buffer(one.tokens), target = int_buffer(one.targets);
      total += single.evaluate(t.view(), target.view(), own);
      single.train(t.view(), target.view(), 0.125F, microbatch++, parts);
      for (std::size_t i = 0; i < static_cast<std::size_t>(length) * 37; ++i, ++compared) {
        const float found = logits[first * 37 + i];
        differing += found != own[i] ? 1 : 0;
        ASSERT_NEAR(found, own[i], 1e-6F) << "document at " << first;
      }
      first += static_cast<std::size_t>(length);
    }
  }
  EXPECT_EQ(differing, 0U) << "of " << compared << " logits have different bits";
  EXPECT_NEAR(loss, total, 1e-6 * total);
  for (std::size_t b = 0; b < whole.buckets().size(); ++b)
    EXPECT_LE(relative_error(sums.total(static_cast<int>(b)), parts.total(static_cast<int>(b))),
              2e-6)
        << whole.buckets()[b].name;
}

TEST_P(PackedModel, WhatIsInAnotherDocumentChangesNoBit) {
  const auto backend = make_cpu_backend(2, "");
  const auto model = make_model(GetParam().family, config_of(GetParam(), true));
  LocalPipeline pipeline(*backend, *model);
  pipeline.initialize(3);
  Window window = packed_window();
  const auto logits_of = [&] {
    const std::vector<Buffer> fields = fields_in(window, model->spec());
    std::vector<float> logits;
    pipeline.evaluate(views_of(fields), logits);
    return logits;
  };
  const std::vector<float> before = logits_of();
  for (std::size_t i = 6; i < 17; ++i) window.tokens[i] = (window.tokens[i] + 5) % 37;  // the third
  const std::vector<float> after = logits_of();
  const auto same = [&](std::size_t first, std::size_t end) {
    return std::memcmp(before.data() + first * 37, after.data() + first * 37,
                       (end - first) * 37 * sizeof(float)) == 0;
  };
  EXPECT_TRUE(same(0, 6));
  EXPECT_FALSE(same(6, 7));
  EXPECT_TRUE(same(17, 48));
}

INSTANTIATE_TEST_SUITE_P(
    Families, PackedModel,
    testing::Values(FamilyCase{"gpt", {}},
                    FamilyCase{"llama", {{"kv_heads", std::int64_t{2}}, {"head_norms", true}}},
                    FamilyCase{"neox", {}}),
    [](const auto& one) { return std::string(one.param.family); });

}  // namespace
}  // namespace concertina
