// Reads a text as single letters: each sample is a letter, labelled by whether it is a vowel.
#include <array>

#include "io/datasets/dataset.h"
#include "io/datasets/split_files.h"

namespace concertina::dataset_makers {
namespace {

class Letters final : public FileDataset {
 public:
  explicit Letters(const DataOptions& options)
      : files_(split_files(options)), vowels_(options.own<std::string>("vowels")) {
    splits_ = split_items(options, {files_.corpus->size(), 0, 0});
  }

  std::span<const Field> fields() const override { return fields_; }
  std::int64_t vocabulary() const override { return 256; }
  std::span<const std::string> classes() const override { return classes_; }
  std::uint64_t samples(Split split) const override { return splits_.size(split); }
  std::int64_t targets_before(Split /*split*/, std::uint64_t sample) const override {
    return static_cast<std::int64_t>(sample);
  }
  void write(const SampleAt& at, std::span<const View> views) const override {
    std::array<std::byte, 1> letter;
    files_.corpus->read(splits_.item(at.split, at.sample), letter);
    const auto value = std::to_integer<char>(letter[0]);
    if (!views[0].empty()) *views[0].i32() = static_cast<unsigned char>(value);
    if (!views[1].empty()) *views[1].i32() = vowels_.find(value) != std::string::npos;
  }
  bool repeats() const override { return true; }
  void verify(const std::function<void()>&) const override {}
  const Corpus& corpus() const override { return *files_.corpus; }
  std::string summary() const override { return split_summary(corpus(), splits_, "letters"); }

 private:
  SplitFiles files_;
  std::string vowels_;
  Splits splits_;
  std::array<Field, 2> fields_{tokens_field(1), label_field()};
  std::array<std::string, 2> classes_{"consonant", "vowel"};
};

}  // namespace

DatasetFormat letters() {
  return {.make = [](const DataOptions& options) -> std::unique_ptr<Dataset> {
            return std::make_unique<Letters>(options);
          },
          .options = {{"vowels", std::string("aeiou"), "the letters of the class vowel"}}};
}

}  // namespace concertina::dataset_makers
