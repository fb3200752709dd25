#include "experiments/study/sampler.h"

#include <deque>

namespace concertina {
namespace {

class ListSampler : public Sampler {
 public:
  template <class Wanted>
  ListSampler(const StudySpec& spec, const Wanted& wanted) {
    for (Trial& trial : trials_of(spec))
      if (wanted(trial.number)) left_.push_back({std::move(trial)});
  }
  std::optional<TrialTask> next(bool) override {
    if (left_.empty()) return std::nullopt;
    TrialTask task = std::move(left_.front());
    left_.pop_front();
    return task;
  }
  void tell(const StoredTrial&) override {}
  std::optional<int> left() const override { return static_cast<int>(left_.size()); }

 private:
  std::deque<TrialTask> left_;
};

}  // namespace

std::unique_ptr<Sampler> list_sampler(const StudySpec& spec,
                                      const std::map<int, StoredTrial>& before) {
  return std::make_unique<ListSampler>(spec, [&](int number) {
    const auto found = before.find(number);
    return found == before.end() || found->second.record.state == TrialState::open;
  });
}

std::unique_ptr<Sampler> one_trial_sampler(const StudySpec& spec, int wanted) {
  return std::make_unique<ListSampler>(spec, [&](int number) { return number == wanted; });
}

std::unique_ptr<Sampler> make_sampler(const StudySpec& spec,
                                      const std::map<int, StoredTrial>& before) {
  if (spec.search.method == "asha") return asha_sampler(spec, before);
  if (spec.search.method == "sampler") return command_sampler(spec, before);
  return list_sampler(spec, before);
}

}  // namespace concertina
