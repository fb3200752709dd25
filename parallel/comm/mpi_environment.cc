#include "parallel/comm/mpi_environment.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <mpi.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "core/process_state.h"
#include "parallel/comm/mpi_communicator.h"
#include "parallel/comm/mpi_work.h"
#include "parallel/comm/watchdog.h"
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

namespace concertina {

// The processes of this host's ranks, and which of them have died.
// Invariants: no call waits for another rank once the object is made; a rank that ends the job on
// purpose says so first, and is never taken for dead.
class LocalRanks {
 public:
  /// Collective over `local`, the ranks of this host. `rank`: of this process in the world. Where
  /// MPI gives no shared memory, nobody is known and nobody dies; a rank in a container whose
  /// processes have numbers of their own is not watched.
  LocalRanks(MPI_Comm local, int rank);
  /// Collective.
  ~LocalRanks();
  LocalRanks(const LocalRanks&) = delete;
  LocalRanks& operator=(const LocalRanks&) = delete;

  /// From any thread: this rank is about to end the job, and has said why.
  void leave() noexcept;
  LocalState state() const;
  /// SIGKILL to the others.
  void kill_others() const;
  OperationLog* operations() const { return own_ == nullptr ? nullptr : &own_->operations; }
  /// By rank of the world, null of other hosts.
  std::vector<const OperationLog*> all_operations(int ranks) const;

 private:
  struct Slot {  // in memory that all ranks of the host share, one per rank
    std::int32_t rank, process;
    std::uint64_t processes;  // which numbering of processes `process` is of
    std::atomic<std::int32_t> leaves;
    OperationLog operations;
  };

  MPI_Win window_ = MPI_WIN_NULL;
  Slot* own_ = nullptr;
  std::vector<const Slot*> slots_;  // by rank
  std::vector<const Slot*> all_;    // also of processes that have numbers of their own
};

namespace {

/// The number of this process' PID namespace; 0 where the system does not say.
std::uint64_t process_numbering() {
  struct stat status {};
  return ::stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

}  // namespace

LocalRanks::LocalRanks(MPI_Comm local, int rank) {
  void* base = nullptr;
  if (MPI_Win_allocate_shared(sizeof(Slot), 1, MPI_INFO_NULL, local, static_cast<void*>(&base),
                              &window_) != MPI_SUCCESS) {
    window_ = MPI_WIN_NULL;
    return;
  }
  own_ = new (base) Slot{rank, static_cast<std::int32_t>(::getpid()), process_numbering(), {0}, {}};
  MPI_Barrier(local);  // every slot is filled
  int size = 0;
  MPI_Comm_size(local, &size);
  for (int i = 0; i < size; ++i) {
    MPI_Aint bytes = 0;
    int unit = 0;
    void* slot = nullptr;
    if (MPI_Win_shared_query(window_, i, &bytes, &unit, static_cast<void*>(&slot)) != MPI_SUCCESS)
      continue;
    const auto* of_rank = static_cast<const Slot*>(slot);
    all_.push_back(of_rank);
    if (of_rank->processes == own_->processes && ::kill(of_rank->process, 0) == 0)
      slots_.push_back(of_rank);
  }
}

LocalRanks::~LocalRanks() {
  if (window_ != MPI_WIN_NULL) MPI_Win_free(&window_);
}

std::vector<const OperationLog*> LocalRanks::all_operations(int ranks) const {
  std::vector<const OperationLog*> logs(static_cast<std::size_t>(ranks));
  for (const Slot* slot : all_) logs[static_cast<std::size_t>(slot->rank)] = &slot->operations;
  return logs;
}

void LocalRanks::leave() noexcept {
  if (own_ != nullptr) own_->leaves.store(1);
}

void LocalRanks::kill_others() const {
  for (const Slot* slot : slots_)
    if (slot != own_) ::kill(slot->process, SIGKILL);
}

LocalState LocalRanks::state() const {
  LocalState state;
  for (const Slot* slot : slots_)
    if (slot->leaves.load() != 0) state.somebody_leaves = true;
  for (const Slot* slot : slots_) {
    if (slot == own_) {
      state.speaks = true;
    } else if (::kill(slot->process, 0) != 0 && errno == ESRCH) {
      state.dead.push_back(slot->rank);
    } else if (stands_still(slot->process)) {
      state.stopped.push_back(slot->rank);
    } else if (!state.speaks) {
      return state;  // that one looks after the others: the cost per host is linear in its ranks
    }
  }
  return state;
}

namespace {

/// How long MPI_Abort may take before the process ends without it.
constexpr unsigned kAbortSeconds = 10;

/// Messages of Open MPI over TCP that leave without an answer of their receiver. An answer stands
/// in line after all that its rank has under way, so pipelines whose two directions are in use
/// would hardly use one at a time. For each of these sizes MPI keeps some buffers.
constexpr const char* kEagerBytes = "1048576";

/// How long MPI may take to start, and to end: launchers start thousands of ranks in minutes.
constexpr Watchdog::Seconds kMpiSeconds{480};

/// Watches what MPI does before a launch has a watchdog of its own, and after that.
class MpiDeadline {
 public:
  explicit MpiDeadline(int rank)
      : watchdog_(rank, kMpiSeconds, [](const std::string& report) {
          log::error("{}: a rank has not come to it; this ends the launch", report);
          abort_job(static_cast<int>(Exit::failure));
        }) {}
  void at(const char* call) { watchdog_.at(call); }

 private:
  Watchdog watchdog_;
};

/// For abort_job(), which anybody may call.
std::atomic<LocalRanks*> the_local_ranks = nullptr;

/// Sets what mpirun's option --quiet sets in mpirun, here in this process alone and only at its
/// end: MPI_Abort would bury our message under a paragraph of its own. Open MPI 5 has no such
/// variable.
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
  if (text == nullptr) return std::nullopt;
  int value = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  if (error != std::errc() || stop != end || value < 1) return std::nullopt;
  return value;
}

void check_started(int thread_level) {
  if (thread_level < MPI_THREAD_FUNNELED)
    throw_failure("this MPI allows no threads at all", mpi_library(),
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
    throw_input(
        fmt::format("this process is alone, but the launcher asked for {} ranks", request->ranks),
        where,
        fmt::format("start with the mpirun of {} or, under Slurm, with `srun --mpi=pmix`; "
                    "for one rank on purpose: `env -u {} ...`",
                    mpi_library(), request->variable));
  throw_input(fmt::format("MPI has {} ranks, but the launcher asked for {}", ranks, request->ranks),
              where,
              fmt::format("`env -u {} ...` if the variable is left over from another job",
                          request->variable));
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
  const std::string first = all.substr(0, all.find_first_of(",\n"));  // then comes its origin
  constexpr std::string_view kMpich = "MPICH Version:";
  if (!first.starts_with(kMpich)) return first;
  return "MPICH " + first.substr(first.find_first_not_of(" \t", kMpich.size()));
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

/// Whether a process here may read another's memory by system calls: some containers refuse them,
/// and Open MPI 4 would meet that in the middle of a message.
static bool may_copy_from_processes() {
  char from = 1, to = 0;
  const iovec source{&from, 1}, target{&to, 1};
  return ::process_vm_readv(::getpid(), &target, 1, &source, 1, 0) == 1;
}

void MpiEnvironment::start() {
  int ended = 0;
  if (MPI_Finalized(&ended); ended != 0) throw_failure("MPI has ended", "starting MPI");
  // Ranks may outnumber cores: MPI must not spin in the calls that we do not wait for ourselves.
  for (const char* variable : {"OMPI_MCA_mpi_yield_when_idle", "MPIR_CVAR_POLLS_BEFORE_YIELD"})
    ::setenv(variable, "1", 0);
  ::setenv("MPIR_CVAR_SUPPRESS_ABORT_MESSAGE", "1", 0);  // as silence_mpi()
  ::setenv("OMPI_MCA_osc", "^ucx", 0);  // in Open MPI 5.0 it complains at each start
  for (const char* limit : {"eager_limit", "rndv_eager_limit", "max_send_size"})
    ::setenv(fmt::format("OMPI_MCA_btl_tcp_{}", limit).c_str(), kEagerBytes, 0);
  if (!may_copy_from_processes()) {
    ::setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);
    ::setenv("OMPI_MCA_smsc", "^cma", 0);  // the same for Open MPI 5, and for MPICH
    ::setenv("MPIR_CVAR_CH4_CMA_ENABLE", "0", 0);
  }
  int provided = 0;
  MpiDeadline deadline(launcher_rank());
  deadline.at("MPI_Init");
  if (const int error = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
      error != MPI_SUCCESS)
    throw_failure("MPI_Init_thread failed: " + mpi_text(error), "starting MPI");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  try {
    check_started(provided);
  } catch (...) {  // every rank comes here, so finalising cannot hang
    MPI_Finalize();
    throw;
  }
  owns_mpi_ = true;

  deadline.at("the first collectives of MPI");
  MPI_Comm local = MPI_COMM_NULL;
  if (const int error =
          MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &local);
      error != MPI_SUCCESS)
    throw_failure("MPI_Comm_split_type failed: " + mpi_text(error), "starting MPI");
  MPI_Comm_rank(local, &local_rank_);
  MPI_Comm_size(local, &local_size_);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  local_ranks_ = std::make_unique<LocalRanks>(local, rank);
  the_local_ranks = local_ranks_.get();
  MPI_Comm_free(&local);
  world_ = make_mpi_world();
}

Communicator& MpiEnvironment::world() {
  if (!started()) start();
  return *world_;
}

int MpiEnvironment::local_rank() {
  return world(), local_rank_;
}

int MpiEnvironment::local_size() {
  return world(), local_size_;
}

MpiEnvironment::~MpiEnvironment() {
  if (!owns_mpi_ || !mpi_running()) return;
  if (std::uncaught_exceptions() > 0) {
    log::error("an exception left the scope of MPI");
    abort_job(static_cast<int>(Exit::failure));
  }
  MpiDeadline deadline(world_ == nullptr ? launcher_rank() : world_->rank());
  deadline.at("MPI_Finalize");
  world_.reset();
  the_local_ranks = nullptr;
  local_ranks_.reset();
  if (const int error = MPI_Finalize(); error != MPI_SUCCESS)
    log::error("MPI_Finalize failed: {}", mpi_text(error));
}

}  // namespace concertina
