#include "parallel/simulate/stage_means.h"

namespace concertina {
namespace {

constexpr std::size_t kKinds = 4;

static_assert(static_cast<std::size_t>(Kind::B) == kKinds - 1, "compute actions come first");

}  // namespace

StageMeans::StageMeans(const Layout& layout)
    : values_(2 * kKinds * static_cast<std::size_t>(layout.stage_count())) {}

void StageMeans::add(const std::vector<Action>& row, const StepRecord& record) {
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (!is_compute(row[i].kind)) continue;
    const ActionTime& time = record.actions[i];
    const std::size_t cell = 2 * (kKinds * static_cast<std::size_t>(row[i].stage) +
                                  static_cast<std::size_t>(row[i].kind));
    values_[cell] += time.busy - waited(record, time);
    values_[cell + 1] += 1;
  }
}

void StageMeans::add(const std::vector<double>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) values_[i % values_.size()] += values[i];
}

std::vector<StageCosts> StageMeans::costs() const {
  std::vector<StageCosts> stages;
  for (std::size_t cell = 0; cell < values_.size(); cell += 2 * kKinds) {
    const auto mean = [&](Kind kind) {
      const std::size_t at = cell + 2 * static_cast<std::size_t>(kind);
      return values_[at + 1] > 0 ? values_[at] / values_[at + 1] : 0;
    };
    stages.push_back(stage_costs(mean(Kind::F), mean(Kind::I), mean(Kind::W), mean(Kind::B)));
  }
  return stages;
}

}  // namespace concertina
