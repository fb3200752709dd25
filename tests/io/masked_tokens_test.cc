// Masked tokens of windows of text: what a model of sentences reads beside them.
#include "io/datasets/masked_tokens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "tests/buffer.h"
#include "tests/io/io_test.h"

namespace concertina {
namespace {

class MaskedTokensTest : public testing::Test {
 protected:
  static constexpr std::int64_t kTokens = 40;

  std::shared_ptr<const Dataset> dataset(const std::string& format) {
    std::string text = format == "tsv" ? "sentence\tlabel\n" : "";
    for (int i = 0; i < 200; ++i)
      text += "words of line " + std::to_string(i * i) + (format == "tsv" ? "\t0\n" : "\n");
    spill(directory_.path() + "/data", text);
    return open_dataset({.format = format,
                         .files = {directory_.path() + "/data"},
                         .validation = 0.2,
                         .tokens_per_sample = kTokens});
  }

  TemporaryDirectory directory_;

  struct Masked {
    std::vector<std::int32_t> tokens, targets, types;
    std::int32_t length = 0;
    bool operator==(const Masked&) const = default;
  };
  static Masked masked(const Dataset& dataset, const SampleAt& at) {
    Masked sample;
    std::vector<Buffer> buffers;
    std::vector<View> views;
    for (const Field& field : dataset.fields())
      buffers.emplace_back(static_cast<std::size_t>(field.elements()), field.type);
    for (Buffer& buffer : buffers) views.push_back(buffer.view());
    dataset.write(at, views);
    const auto values = [&](std::string_view name) {
      const View view = views[static_cast<std::size_t>(field_index(dataset, name))];
      return std::vector<std::int32_t>(view.i32(), view.i32() + view.count);
    };
    return {values("tokens"), values("targets"), values("types"), values("lengths")[0]};
  }
};

/// What is not a target reads as it was, and the targets say what the others were.
TEST_F(MaskedTokensTest, NothingElseChanges) {
  const auto plain = dataset("text"), made = masked_tokens(plain, nullptr);
  for (std::uint64_t i = 0; i < made->samples(Split::train); ++i) {
    const SampleAt at{.split = Split::train, .sample = i, .seed = 3};
    const Buffer tokens(kTokens, DType::i32), targets(kTokens, DType::i32);
    plain->write(at, std::array{tokens.view(), targets.view()});
    const Masked sample = masked(*made, at);
    for (std::size_t t = 0; t < sample.tokens.size(); ++t)
      EXPECT_EQ(sample.targets[t] < 0 ? sample.tokens[t] : sample.targets[t],
                tokens.view().i32()[t]);
    EXPECT_EQ(sample.length, kTokens);
    EXPECT_EQ(std::ranges::count(sample.types, 0), kTokens);
  }
}

TEST_F(MaskedTokensTest, ImagesAreRefused) {
  const auto plain = dataset("text");
  class Pictures final : public FileDataset {
   public:
    explicit Pictures(std::shared_ptr<const Dataset> text) : text_(std::move(text)) {}
    std::span<const Field> fields() const override { return fields_; }
    std::uint64_t samples(Split) const override { return 1; }
    std::int64_t targets_before(Split, std::uint64_t sample) const override {
      return static_cast<std::int64_t>(sample);
    }
    void write(const SampleAt&, std::span<const View>) const override {}
    bool repeats() const override { return true; }
    void verify(const std::function<void()>&) const override {}
    const Corpus& corpus() const override { return text_->corpus(); }
    std::string summary() const override { return ""; }

   private:
    std::shared_ptr<const Dataset> text_;
    std::vector<Field> fields_{image_field(1, 2, 2)};
  };
  EXPECT_THROW(masked_tokens(std::make_shared<const Pictures>(plain), nullptr), Error);
}

}  // namespace
}  // namespace concertina
