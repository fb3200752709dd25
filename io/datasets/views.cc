#include "io/datasets/views.h"

#include <utility>

namespace concertina {
namespace {

class Views final : public Dataset {
 public:
  Views(std::shared_ptr<const Dataset> dataset, std::uint64_t views)
      : dataset_(std::move(dataset)), views_(views) {}

  std::span<const Field> fields() const override { return dataset_->fields(); }
  std::int64_t vocabulary() const override { return dataset_->vocabulary(); }
  std::span<const std::string> classes() const override { return dataset_->classes(); }
  std::uint64_t samples(Split split) const override { return dataset_->samples(split); }
  std::uint64_t samples_of_epoch(std::uint64_t seed, std::uint64_t epoch) const override {
    return dataset_->samples_of_epoch(seed, epoch % views_);
  }
  std::int64_t targets_before(Split split, std::uint64_t sample) const override {
    return dataset_->targets_before(split, sample);
  }
  void write(const SampleAt& at, std::span<const View> views) const override {
    SampleAt seen = at;
    seen.epoch %= views_;
    dataset_->write(seen, views);
  }
  bool repeats() const override { return true; }
  std::uint64_t views() const override { return views_; }
  const Splits* splits() const override { return dataset_->splits(); }
  const Corpus& corpus() const override { return dataset_->corpus(); }
  void verify(const std::function<void()>& progress) const override { dataset_->verify(progress); }
  SplitContent content(Split split, const std::function<void()>& progress) const override {
    return dataset_->content(split, progress);
  }
  std::string summary() const override { return dataset_->summary(); }
  std::vector<std::string> notes(std::uint64_t samples) const override {
    return dataset_->notes(samples);
  }

 private:
  std::shared_ptr<const Dataset> dataset_;
  std::uint64_t views_;
};

}  // namespace

std::shared_ptr<const Dataset> with_views(std::shared_ptr<const Dataset> dataset,
                                          std::uint64_t views) {
  if (views == 0 || dataset->repeats()) return dataset;
  return std::make_shared<const Views>(std::move(dataset), views);
}

}  // namespace concertina
