#include "parallel/comm/mpi_local_ranks.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <new>
#include <utility>

namespace concertina {
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
  own_ = new (base) Slot{rank, static_cast<std::int32_t>(::getpid()), process_numbering(), {0}};
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
    if (of_rank->processes == own_->processes && ::kill(of_rank->process, 0) == 0)
      slots_.push_back(of_rank);
  }
}

LocalRanks::~LocalRanks() {
  if (window_ != MPI_WIN_NULL) MPI_Win_free(&window_);
}

void LocalRanks::leave() noexcept {
  if (own_ != nullptr) own_->leaves.store(1);
}

LocalState LocalRanks::state() const {
  LocalState state;
  bool first_alive = true;
  for (const Slot* slot : slots_) {
    if (slot->leaves.load() != 0) state.somebody_leaves = true;
    if (::kill(slot->process, 0) != 0 && errno == ESRCH)
      state.dead.push_back(slot->rank);
    else if (std::exchange(first_alive, false))
      state.speaks = slot == own_;
  }
  return state;
}

}  // namespace concertina
