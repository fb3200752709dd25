#include "io/datasets/views.h"

#include <utility>

namespace concertina {
namespace {

class Views final : public DatasetAround {
 public:
  Views(std::shared_ptr<const Dataset> dataset, std::uint64_t views)
      : DatasetAround(std::move(dataset)), views_(views) {}

  std::uint64_t samples_of_epoch(std::uint64_t seed, std::uint64_t epoch) const override {
    return inner().samples_of_epoch(seed, epoch % views_);
  }
  void write(const SampleAt& at, std::span<const View> views) const override {
    SampleAt seen = at;
    seen.epoch %= views_;
    inner().write(seen, views);
  }
  bool repeats() const override { return true; }
  std::uint64_t views() const override { return views_; }

 private:
  std::uint64_t views_;
};

}  // namespace

std::shared_ptr<const Dataset> with_views(std::shared_ptr<const Dataset> dataset,
                                          std::uint64_t views) {
  if (views == 0 || dataset->repeats()) return dataset;
  return std::make_shared<const Views>(std::move(dataset), views);
}

}  // namespace concertina
