#include "parallel/comm/mpi_environment.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <mpi.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <exception>

#include "core/error.h"
#include "core/log.h"
#include "core/text/number_text.h"
#include "parallel/comm/mpi_communicator.h"
#include "parallel/comm/mpi_local_ranks.h"
#include "parallel/comm/mpi_loss.h"
#include "parallel/comm/mpi_ulfm.h"
#include "parallel/comm/mpi_work.h"
#include "parallel/comm/watchdog.h"
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

namespace concertina {
namespace {

/// Time limit for MPI_Abort, after which the process exits without it.
constexpr unsigned kAbortSeconds = 10;

/// Size up to which Open MPI sends messages over TCP without waiting for the receiver's reply. A
/// reply queues after the pending messages of its rank, so pipelines with traffic in both
/// directions would otherwise rarely use both at once. MPI keeps some buffers of each
/// size.
constexpr const char* kEagerBytes = "1048576";

/// Time limit for MPI_Init and MPI_Finalize: launchers start thousands of ranks in minutes.
constexpr Watchdog::Seconds kMpiSeconds{480};

/// Watches MPI before the launch has a watchdog, and after that watchdog has been destroyed.
Watchdog mpi_deadline(int rank) {
  return Watchdog(rank, kMpiSeconds, [](const std::string& report) {
    log::error("{}: a rank has not reached this call; aborting the launch", report);
    abort_job(static_cast<int>(Exit::failure));
  });
}

/// Used by abort_job(), which any thread may call.
std::atomic<LocalRanks*> the_local_ranks = nullptr;

/// Acts like mpirun's option --quiet, but in this process only and only at exit: MPI_Abort would
/// otherwise print a paragraph after our message. Open MPI 5 has no such variable.
void silence_mpi() {
  if (void* quiet = ::dlsym(RTLD_DEFAULT, "orte_execute_quiet")) *static_cast<bool*>(quiet) = true;
}

bool mpi_running() {
  int started = 0, ended = 0;
  MPI_Initialized(&started);
  MPI_Finalized(&ended);
  return started != 0 && ended == 0;
}

std::optional<int> positive_number(const char* text) {
  const auto value = text == nullptr ? std::nullopt : parse_number<int>(text);
  return value && *value >= 1 ? value : std::nullopt;
}

/// Returns the ranks of `all` on this host. Collective.
MPI_Comm local_ranks_of(MPI_Comm all) {
  MPI_Comm local = MPI_COMM_NULL;
  if (const int error = MPI_Comm_split_type(all, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &local);
      error != MPI_SUCCESS)
    throw_failure("MPI_Comm_split_type failed: " + mpi_text(error), "starting MPI");
  return local;
}

void check_started(int thread_level) {
  if (thread_level < MPI_THREAD_FUNNELED)
    throw_failure("this MPI library does not support threads", mpi_library(),
                  "an MPI library with at least MPI_THREAD_FUNNELED");
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_launch(launch_request(), size);
}

}  // namespace

std::optional<LaunchRequest> launch_request() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "PMI_SIZE"})
    if (const auto ranks = positive_number(std::getenv(name))) return LaunchRequest{*ranks, name};
  return std::nullopt;
}

int expected_world_size() {
  const auto request = launch_request();
  return request ? request->ranks : 0;
}

int launcher_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"})
    if (const char* value = std::getenv(name)) return std::atoi(value);
  return 0;
}

void check_launch(const std::optional<LaunchRequest>& request, int ranks) {
  if (!request || request->ranks == ranks) return;
  const std::string where =
      fmt::format("environment variable {}={}", request->variable, request->ranks);
  if (ranks == 1)
    throw_input(fmt::format("this process runs alone, but the launcher was asked for {} ranks",
                            request->ranks),
                where,
                fmt::format("start with the mpirun of {} or, under Slurm, with `srun --mpi=pmix`; "
                            "to run a single rank: `env -u {} ...`",
                            mpi_library(), request->variable));
  throw_input(
      fmt::format("MPI has {} ranks, but the launcher was asked for {}", ranks, request->ranks),
      where,
      fmt::format("`env -u {} ...` if the variable was set by another job", request->variable));
}

void abort_job(int code) {
  std::signal(SIGALRM, SIG_DFL);
  ::alarm(kAbortSeconds);
  if (LocalRanks* ranks = the_local_ranks.load()) ranks->leave();
  log::flush();
  std::fflush(nullptr);
  silence_mpi();
  if (mpi_running()) MPI_Abort(MPI_COMM_WORLD, code);
  std::_Exit(code);
}

std::string mpi_library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string all(text, length);
  const std::string first = all.substr(0, all.find_first_of(",\n"));  // drops the build's origin
  constexpr std::string_view kMpich = "MPICH Version:";
  if (!first.starts_with(kMpich)) return first;
  return "MPICH " + first.substr(first.find_first_not_of(" \t", kMpich.size()));
}

std::string mpi_library_file() {
  Dl_info place{};
  const void* const function = ::dlsym(RTLD_DEFAULT, "MPI_Get_library_version");
  return ::dladdr(function, &place) != 0 ? place.dli_fname : "unknown";
}

std::string mpi_cuda_aware() {
#if defined(MPIX_CUDA_AWARE_SUPPORT)
  return MPIX_Query_cuda_support() != 0 ? "yes" : "no";
#else
  return "unknown";
#endif
}

MpiEnvironment::MpiEnvironment() = default;

OperationLog* MpiEnvironment::operations() const {
  return local_ranks_ == nullptr ? nullptr : local_ranks_->operations();
}

std::vector<const OperationLog*> MpiEnvironment::operations_of_host() const {
  if (local_ranks_ == nullptr) return {};
  return local_ranks_->all_operations(world_->size());
}

LocalState MpiEnvironment::local_state() const {
  return local_ranks_ == nullptr ? LocalState{} : local_ranks_->state();
}

void MpiEnvironment::end_host() const {
  log::flush();
  if (local_ranks_ != nullptr) local_ranks_->kill_others();
  std::_Exit(static_cast<int>(Exit::failure));
}

/// Whether a process may read another's memory through system calls: some containers forbid it, and
/// Open MPI 4 would fail in the middle of a message.
static bool may_copy_from_processes() {
  char from = 1, to = 0;
  const iovec source{&from, 1}, target{&to, 1};
  return ::process_vm_readv(::getpid(), &target, 1, &source, 1, 0) == 1;
}

void MpiEnvironment::start() {
  int ended = 0;
  if (MPI_Finalized(&ended); ended != 0)
    throw_failure("MPI has already been finalized", "starting MPI");
  // Ranks may outnumber cores: MPI must not spin in calls that block.
  for (const char* variable : {"OMPI_MCA_mpi_yield_when_idle", "MPIR_CVAR_POLLS_BEFORE_YIELD"})
    ::setenv(variable, "1", 0);
  ::setenv("MPIR_CVAR_SUPPRESS_ABORT_MESSAGE", "1", 0);  // as silence_mpi()
  ::setenv("OMPI_MCA_osc", "^ucx", 0);  // Open MPI 5.0 prints a warning at each start otherwise
  for (const char* limit : {"eager_limit", "rndv_eager_limit", "max_send_size"})
    ::setenv(fmt::format("OMPI_MCA_btl_tcp_{}", limit).c_str(), kEagerBytes, 0);
  if (!launch_request()) {
    // A single process: Open MPI 4 would start a daemon, which needs ssh and a home directory.
    ::setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
    // Otherwise Open MPI mistakes a Slurm job for a launch by srun.
    if (const char* job = std::getenv("SLURM_JOB_ID")) ::setenv("SLURM_JOBID", job, 0);
  }
  if (!may_copy_from_processes()) {
    ::setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);
    ::setenv("OMPI_MCA_smsc", "^cma", 0);  // the same for Open MPI 5, then for MPICH
    ::setenv("MPIR_CVAR_CH4_CMA_ENABLE", "0", 0);
  }
  int provided = 0;
  Watchdog deadline = mpi_deadline(launcher_rank());
  deadline.at("MPI_Init");
  if (const int error = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
      error != MPI_SUCCESS)
    throw_failure("MPI_Init_thread failed: " + mpi_text(error), "starting MPI");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  try {
    check_started(provided);
  } catch (...) {  // reached by every rank, so finalizing cannot hang
    MPI_Finalize();
    throw;
  }
  owns_mpi_ = true;

  deadline.at("the first MPI collectives");
  MPI_Comm local = local_ranks_of(MPI_COMM_WORLD);
  MPI_Comm_rank(local, &local_rank_);
  MPI_Comm_size(local, &local_size_);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  local_ranks_ = std::make_unique<LocalRanks>(local, rank);
  the_local_ranks = local_ranks_.get();
  MPI_Comm_free(&local);
  loss_ = std::make_shared<MpiLoss>();
  world_ = make_mpi_world(MPI_COMM_WORLD, loss_);
}

bool MpiEnvironment::expect_loss() {
  if (world().size() > 1 && ulfm_active()) loss_->expect();
  return loss_->expected();
}

void MpiEnvironment::report_loss() noexcept {
  loss_->report();
}

int MpiEnvironment::go_on() {
  constexpr const char* kWhere = "continuing without dead ranks";
  const MPI_Comm living = loss_->is_calm() ? ulfm_living(loss_->all()) : MPI_COMM_NULL;
  if (living == MPI_COMM_NULL) throw_failure("MPI did not complete the pending operations", kWhere);
  const int before = world_->size();
  int size = 0;
  MPI_Comm_size(living, &size);
  // At most one of two disconnected parts has a majority.
  if (2 * size <= before)
    throw_failure(fmt::format("{} of {} ranks are left", size, before), kWhere);
  local_ranks_->renumber(loss_->all(), living);
  MPI_Comm local = local_ranks_of(living);
  MPI_Comm_rank(local, &local_rank_);
  MPI_Comm_size(local, &local_size_);
  MPI_Comm_free(&local);
  static_cast<void>(world_.release());  // freeing a revoked communicator would need the dead ranks
  loss_ = std::make_shared<MpiLoss>();
  world_ = make_mpi_world(living, loss_);
  lost_ += before - size;
  return before - size;
}

void MpiEnvironment::leave(int code) {
  if (lost_ == 0) return;
  try {
    world_->barrier();  // launchers kill the other ranks once a rank exits like this
  } catch (const Error&) {
  }
  log::flush();
  std::fflush(nullptr);
  std::_Exit(code);
}

Communicator& MpiEnvironment::world() {
  if (!started()) start();
  return *world_;
}

MpiEnvironment::~MpiEnvironment() {
  if (!owns_mpi_ || !mpi_running()) return;
  if (std::uncaught_exceptions() > 0) {
    log::error("an uncaught exception left the MPI scope");
    abort_job(static_cast<int>(Exit::failure));
  }
  Watchdog deadline = mpi_deadline(world_ == nullptr ? launcher_rank() : world_->rank());
  deadline.at("MPI_Finalize");
  world_.reset();
  the_local_ranks = nullptr;
  local_ranks_.reset();
  if (const int error = MPI_Finalize(); error != MPI_SUCCESS)
    log::error("MPI_Finalize failed: {}", mpi_text(error));
}

}  // namespace concertina
