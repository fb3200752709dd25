#include "experiments/supervise/host_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "core/clock.h"
#include "core/log.h"
#include "io/file.h"

namespace concertina {
namespace {

constexpr double kAnswerPollSeconds = 0.01;

/// A host that is asked: the process, and the file that has its answer.
struct Question {
  File answer;
  Process process;
  bool over = false;
};

File file_without_name() {
  const int descriptor = ::memfd_create("answer", MFD_CLOEXEC);
  if (descriptor < 0) throw_io("memfd_create", "memory");
  return {descriptor, "the answer of a host"};
}

/// mpirun's exit code is no proof: that of Open MPI 5 is 0 where it lost the host.
bool has_answer(const File& file) {
  std::string text(std::min<std::uint64_t>(file.size(), 1 << 16), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text)));
  return text.find(HostPool::kAnswer) != std::string::npos;
}

/// Until all have answered or ended, or it takes too long.
void wait_for_answers(std::vector<Question>& questions) {
  const double start = now();
  double limit = HostPool::kLongestSeconds;
  for (std::size_t open = questions.size(); open > 0 && now() < start + limit;) {
    std::this_thread::sleep_for(std::chrono::duration<double>(kAnswerPollSeconds));
    for (Question& question : questions) {
      if (question.over) continue;
      const bool answered = has_answer(question.answer);
      question.over = answered || question.process.exit_code().has_value();
      if (question.over) --open;
      if (answered)
        limit = std::min(
            limit, std::max(HostPool::kAnswerSeconds, HostPool::kTimesFirst * (now() - start)));
    }
  }
}

}  // namespace

std::vector<std::string> HostPool::ask() {
  std::vector<Question> questions;
  for (const Host& host : hosts_) {
    File answer = file_without_name();
    ProcessOptions options = question_(host);
    options.out = options.errors = answer.descriptor();
    Process process(options);
    questions.push_back({std::move(answer), std::move(process)});
  }
  wait_for_answers(questions);
  std::vector<std::string> newly_lost;
  for (std::size_t h = 0; h < hosts_.size(); ++h) {
    const std::string& name = hosts_[h].name;
    if (has_answer(questions[h].answer)) {
      if (lost_.erase(name) > 0) log::info("host {} is there again", name);
    } else if (lost_.insert(name).second) {
      newly_lost.push_back(name);
    }
  }
  return newly_lost;
}

std::vector<Host> HostPool::for_ranks(int ranks) const {
  std::vector<Host> there;
  for (const Host& host : hosts_)
    if (!lost_.contains(host.name)) there.push_back(host);
  return first_slots(there, ranks);
}

}  // namespace concertina
