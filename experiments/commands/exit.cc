#include "experiments/commands/exit.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <new>
#include <thread>

#include "experiments/commands/command.h"
#include "experiments/run/signals.h"

namespace concertina {
namespace {

/// Rank 0's head start, and the others' stagger, so that one rank speaks even without rank 0.
std::chrono::milliseconds grace(int rank) {
  return rank == 0 ? std::chrono::milliseconds(0)
                   : std::chrono::milliseconds(3000 + std::min(50 * rank, 2000));
}

int fail(const Error& error, MpiEnvironment& mpi) {
  const int rank = mpi.started() ? mpi.world().rank() : launcher_rank();
  const int size = mpi.started() ? mpi.world().size() : std::max(1, expected_world_size());
  const int code = static_cast<int>(error.code());
  if (rank > 0) release_sigterm();  // that is how a launcher ends us while rank 0 speaks
  std::this_thread::sleep_for(grace(rank));
  std::fflush(stdout);
  const std::string text = error_text(error, size > 1 && rank > 0 ? rank : -1);
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
  // Before MPI has started the launcher ends the others: this process exits with an error.
  if (mpi.started() && size > 1) abort_job(code);
  return code;
}

/// Bytes of a broken input must not steer the terminal.
std::string printable(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n') || byte == 0x7f)
      result += fmt::format("\\x{:02x}", byte);
    else
      result += c;
  }
  return result;
}

}  // namespace

std::string error_text(const Error& error, int rank) {
  const std::string who = rank < 0 ? std::string() : fmt::format(" on rank {}", rank);
  // Not what(): that ends at the first NUL of a broken input.
  std::string text = fmt::format("concertina: error{}: {}\n", who, printable(error.message()));
  if (!error.where().empty()) text += fmt::format("  at: {}\n", printable(error.where()));
  if (!error.fix().empty()) text += fmt::format("  try: {}\n", printable(error.fix()));
  return text;
}

int run_to_exit(MpiEnvironment& mpi, const std::function<int()>& body) {
  try {
    const int code = body();
    flush_output();
    return code;
  } catch (const Error& error) {
    return fail(error, mpi);
  } catch (const std::bad_alloc&) {
    return fail(Error(Exit::failure, "out of memory", "host memory of this machine",
                      "a smaller model or microbatch; `concertina plan` says what is needed"),
                mpi);
  } catch (const std::exception& error) {
    if (std::ferror(stdout) != 0) return fail(lost_output(), mpi);  // fmt::print throws its own
    return fail(Error(Exit::failure, error.what(), "outside of concertina's own checks",
                      "this is a bug in concertina: please report it"),
                mpi);
  }
}

}  // namespace concertina
