#include "experiments/study/sampler.h"

#include <deque>

#include "sampler_table.h"

namespace concertina {

namespace samplers {
#define CONCERTINA_DECLARE(name, symbol) SearchMethod symbol();
CONCERTINA_SAMPLERS(CONCERTINA_DECLARE)
#undef CONCERTINA_DECLARE
}  // namespace samplers

std::span<const Entry<SearchMethod>> search_methods() {
#define CONCERTINA_ENTRY(name, symbol) Entry<SearchMethod>{name, samplers::symbol()},
  static const Entry<SearchMethod> methods[] = {CONCERTINA_SAMPLERS(CONCERTINA_ENTRY)};
#undef CONCERTINA_ENTRY
  return methods;
}

const SearchMethod& method_of(const SearchSection& search) {
  return lookup(search_methods(), search.method, "method", "search.method");
}

namespace {

class ListSampler : public Sampler {
 public:
  explicit ListSampler(std::deque<TrialTask> tasks) : left_(std::move(tasks)) {}
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
                                      const std::function<bool(int number)>& wanted) {
  std::deque<TrialTask> tasks;
  for (Trial& trial : trials_of(spec))
    if (wanted(trial.number)) tasks.push_back({std::move(trial)});
  return std::make_unique<ListSampler>(std::move(tasks));
}

}  // namespace concertina
