#include "experiments/machine/exit.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <thread>

#include "experiments/machine/fault_log.h"
#include "experiments/machine/output.h"
#include "experiments/machine/signals.h"
#include "parallel/runtime/step_sums.h"

namespace concertina {
namespace {

/// Delay before a rank reports: none for rank 0, staggered for the others in case rank 0 does not.
std::chrono::milliseconds grace(int rank) {
  return rank == 0 ? std::chrono::milliseconds(0)
                   : std::chrono::milliseconds(3000 + std::min(50 * rank, 2000));
}

/// If a rank exits before it starts MPI, mpirun prints two paragraphs about it. So every rank
/// starts MPI and, if that succeeds within 10 s, one rank aborts all of them.
void start_to_end(MpiEnvironment& mpi, int code) {
  std::thread([code] {
    std::this_thread::sleep_for(std::chrono::seconds(10));
    std::_Exit(code);
  }).detach();
  try {
    mpi.world();
  } catch (const Error&) {  // the first error is enough
  }
}

/// The kind of fault to report to the supervisor; nullopt if the fault may be gone in the next
/// launch, such as a full disk, or if other ranks have reported it.
std::optional<FaultKind> fault_of(const Error& error) {
  if (error.code() == Exit::bad_input) return FaultKind::refused;
  if (error.fix().starts_with(kDivergedAdvice)) return FaultKind::diverged;
  if (error.system_error() == 0) return FaultKind::failed;
  return std::nullopt;
}

void say(const Error& error, int rank) {
  print_error(error, rank);
  // A launcher's exit code arrives late, or never.
  if (const auto fault = fault_of(error))
    notify_supervisor({.kind = *fault, .what = error.message() + "; at: " + error.where()});
}

int fail(const Error& error, MpiEnvironment& mpi) {
  const int rank = mpi.started() ? mpi.world().rank() : launcher_rank();
  const int size = mpi.started() ? mpi.world().size() : std::max(1, expected_world_size());
  const int code = static_cast<int>(error.code());
  if (rank == 0) say(error, -1);
  if (size > 1 && !mpi.started()) start_to_end(mpi, code);
  if (rank > 0) {
    release_sigterm();  // lets a launcher kill this rank while rank 0 reports
    std::this_thread::sleep_for(grace(rank));
    say(error, size > 1 ? rank : -1);
  }
  if (mpi.started() && size > 1) abort_job(code);
  return code;
}

}  // namespace

std::string terminal_text(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f)
      result += fmt::format("\\x{:02x}", byte);
    else
      result += c;
  }
  return result;
}

void print_error(const Error& error, int rank) {
  std::fflush(stdout);
  const std::string who = rank < 0 ? std::string() : fmt::format(" on rank {}", rank);
  // Not what(), which ends at the first NUL from a broken input.
  std::string text = fmt::format("concertina: error{}: {}\n", who, terminal_text(error.message()));
  if (!error.where().empty()) text += fmt::format("  at: {}\n", terminal_text(error.where()));
  if (!error.fix().empty()) text += fmt::format("  try: {}\n", terminal_text(error.fix()));
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
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
                      "a smaller model or microbatch; `concertina plan` shows the memory needed"),
                mpi);
  } catch (const std::filesystem::filesystem_error& error) {  // such as a link to itself
    return fail(
        Error(Exit::bad_input, error.code().message(), error.path1().string(), "a readable path"),
        mpi);
  } catch (const std::exception& error) {
    if (std::ferror(stdout) != 0)
      return fail(lost_output(), mpi);  // fmt::print throws its own type of error
    return fail(Error(Exit::failure, error.what(), "outside concertina's checks",
                      "this is a bug in concertina: please report it"),
                mpi);
  }
}

}  // namespace concertina
