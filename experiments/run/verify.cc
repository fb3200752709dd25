#include "experiments/run/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/error.h"
#include "experiments/run/state_hash.h"
#include "parallel/generate/assign.h"

namespace concertina {
namespace {

/// The state of training after each step.
struct Trajectory {
  std::vector<StepResult> results;
  std::vector<std::vector<std::string>> digests;  // by bucket
};

std::string case_name(const Assignment& assignment, const std::string& schedule) {
  const int spare = assignment.world - static_cast<int>(assignment.working.size());
  return fmt::format("{} {}{}", short_form(assignment.layout), schedule,
                     spare > 0 ? fmt::format(", {} spare", spare) : "");
}

bool known(const std::vector<VerifyCase>& cases, const Assignment& assignment) {
  return std::any_of(cases.begin(), cases.end(), [&](const VerifyCase& one) {
    return one.assignment.layout == assignment.layout &&
           one.assignment.plan.rows == assignment.plan.rows;
  });
}

/// Two pipelines under 1f1b, the second on one rank; nullopt with too few ranks, leaves or units.
std::optional<Layout> uneven(const Job& job, int ranks) {
  if (ranks < 3 || job.leaves < 2 || job.units() < ranks - 1) return std::nullopt;
  const int cut = job.microbatches / job.leaves * std::max(1, job.leaves * (ranks - 1) / ranks);
  Pipeline deep{{}, 0, cut}, flat{{{ranks - 1, 0, job.units()}}, cut, job.microbatches};
  for (int s = 0; s < ranks - 1; ++s)
    deep.stages.push_back({s, job.units() * s / (ranks - 1), job.units() * (s + 1) / (ranks - 1)});
  return Layout{{deep, flat}};
}

class CaseFinder {
 public:
  CaseFinder(const Job& job, const Assignment& base, const std::string& schedule) : job_(job) {
    request_.world = base.world;
    request_.frozen_units = base.frozen_units();
    cases_.push_back({case_name(base, schedule), base});
  }

  std::vector<VerifyCase> find() {
    for (int spare = 0; spare < request_.world; ++spare) {
      request_.spare = spare;
      for (const Entry<Schedule>& schedule : schedules()) add_grids(schedule);
      request_.schedule = "1f1b";
      if (const auto layout = uneven(job_, request_.world - spare)) {
        request_.layout = *layout;
        add();
        request_.layout = {};
      }
    }
    return std::move(cases_);
  }

 private:
  void add_grids(const Entry<Schedule>& schedule) {
    request_.schedule = std::string(schedule.name);
    const LayoutLimits limits{.world = request_.world - request_.spare,
                              .units = job_.units(),
                              .microbatches = job_.microbatches,
                              .leaves = job_.leaves};
    for (const Grid& grid : fitting_grids(limits, folding_of(request_))) {
      request_.pp = grid.pp, request_.dp = grid.dp;
      add();
    }
    request_.pp = request_.dp = 0;
  }

  void add() {
    try {
      Assignment assignment = assign(job_, request_);
      if (!known(cases_, assignment))
        cases_.push_back({case_name(assignment, request_.schedule), std::move(assignment)});
    } catch (const Error& error) {
      if (error.code() != Exit::bad_input) throw;
    }  // the schedule does not support these numbers
  }

  const Job& job_;
  Request request_;
  std::vector<VerifyCase> cases_;
};

class Verifier {
 public:
  Verifier(Trainer& trainer, BatchSource& source) : trainer_(trainer), source_(source) {}

  void train_reference(std::int64_t steps) {
    for (std::int64_t step = 1; step <= steps; ++step) {
      expected_.results.push_back(trainer_.step(step, source_));
      expected_.digests.push_back(bucket_sha256(trainer_));
    }
  }

  VerifyResult check(const VerifyCase& one, std::int64_t steps) {
    VerifyResult result{.name = one.name};
    result.moved = move_to(one.assignment);
    trainer_.initialize();
    for (std::int64_t step = 1; step <= steps && result.first_step == 0; ++step)
      train(step, result);
    return result;
  }

  VerifyResult check_moving(const std::vector<VerifyCase>& cases, std::int64_t steps) {
    VerifyResult result{.name = "all layouts in sequence"};
    trainer_.initialize();
    for (std::int64_t step = 1; step <= steps && result.first_step == 0; ++step) {
      result.moved &= move_to(cases[static_cast<std::size_t>(step) % cases.size()].assignment);
      train(step, result);
    }
    return result;
  }

 private:
  bool move_to(const Assignment& assignment) {
    const std::string before = state_sha256(trainer_);
    trainer_.adopt(assignment);
    return state_sha256(trainer_) == before;
  }

  void train(std::int64_t step, VerifyResult& result) {
    const StepResult now = trainer_.step(step, source_);
    const std::vector<std::string> digests = bucket_sha256(trainer_);
    const auto index = static_cast<std::size_t>(step - 1);
    for (std::size_t b = 0; b < digests.size(); ++b)
      if (digests[b] != expected_.digests[index][b])
        result.buckets.push_back(trainer_.assignment().buckets[b].name);
    const StepResult& then = expected_.results[index];
    if (now.loss != then.loss) result.buckets.push_back("loss");
    if (now.grad_norm != then.grad_norm) result.buckets.push_back("gradient norm");
    if (result.buckets.empty()) return;
    result.first_step = step;
    result.bits = fmt::format("{} {} {} {}", fmt::join(digests, ""), now.loss, now.grad_norm, step);
  }

  Trainer& trainer_;
  BatchSource& source_;
  Trajectory expected_;
};

}  // namespace

std::vector<VerifyCase> verify_cases(const Job& job, const Assignment& base,
                                     const std::string& schedule) {
  return CaseFinder(job, base, schedule).find();
}

std::size_t differ_alike(const std::vector<VerifyResult>& results) {
  std::map<std::string, std::size_t> alike;
  std::size_t most = 0;
  for (const VerifyResult& one : results)
    if (!one.bits.empty()) most = std::max(most, ++alike[one.bits]);
  return most;
}

std::vector<VerifyResult> verify(Trainer& trainer, const std::vector<VerifyCase>& cases,
                                 std::int64_t steps, BatchSource& source,
                                 const std::function<void(const VerifyResult&)>& see) {
  const std::int64_t all = std::max(steps, static_cast<std::int64_t>(cases.size()));
  Verifier verifier(trainer, source);
  verifier.train_reference(all);
  std::vector<VerifyResult> results;
  const auto add = [&](VerifyResult result) {
    see(result);
    results.push_back(std::move(result));
  };
  for (std::size_t c = 1; c < cases.size(); ++c) add(verifier.check(cases[c], steps));
  add(verifier.check_moving(cases, all));
  return results;
}

}  // namespace concertina
