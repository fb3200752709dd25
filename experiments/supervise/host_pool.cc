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
  bool answered = false;
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

}  // namespace

void HostPool::ask() {
  std::vector<Question> questions;
  for (const Host& host : hosts_) {
    File answer = file_without_name();
    ProcessOptions options = question_(host);
    options.out = options.errors = answer.descriptor();
    Process process(options);
    questions.push_back({std::move(answer), std::move(process)});
  }
  const double end = now() + kAnswerSeconds;
  for (std::size_t open = hosts_.size(); open > 0 && now() < end;) {
    std::this_thread::sleep_for(std::chrono::duration<double>(kAnswerPollSeconds));
    for (Question& question : questions) {
      if (question.answered) continue;
      const bool over = question.process.exit_code().has_value();
      question.answered = over || has_answer(question.answer);
      if (question.answered) --open;
    }
  }
  for (std::size_t h = 0; h < hosts_.size(); ++h) {
    const std::string& name = hosts_[h].name;
    if (has_answer(questions[h].answer)) {
      if (lost_.erase(name) > 0) log::info("host {} is there again", name);
    } else if (lost_.insert(name).second) {
      log::warn("host {} does not answer: it is lost until it does", name);
    }
  }
}

std::vector<Host> HostPool::for_ranks(int ranks) const {
  std::vector<Host> there;
  for (const Host& host : hosts_)
    if (!lost_.contains(host.name)) there.push_back(host);
  return first_slots(there, ranks);
}

}  // namespace concertina
