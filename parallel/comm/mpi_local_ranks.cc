#include "parallel/comm/mpi_local_ranks.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <new>

#include "core/process_state.h"

namespace concertina {
namespace {

/// Returns the number of this process's PID namespace, or 0 if unknown.
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
  MPI_Barrier(local);  // waits until every slot is filled
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

void LocalRanks::kill_others() const {
  for (const Slot* slot : slots_)
    if (slot != own_) ::kill(slot->process, SIGKILL);
}

void LocalRanks::renumber(MPI_Comm before, MPI_Comm now) {
  MPI_Group old_group = MPI_GROUP_NULL, new_group = MPI_GROUP_NULL;
  MPI_Comm_group(before, &old_group);
  MPI_Comm_group(now, &new_group);
  const auto rank_now = [&](const Slot* slot) {
    int old_rank = slot->rank.load(), rank = MPI_UNDEFINED;
    MPI_Group_translate_ranks(old_group, 1, &old_rank, new_group, &rank);
    return rank;
  };
  const auto is_gone = [&](const Slot* slot) { return rank_now(slot) == MPI_UNDEFINED; };
  std::erase_if(slots_, is_gone);
  std::erase_if(all_, is_gone);
  const int own = own_ == nullptr ? 0 : rank_now(own_);
  MPI_Group_free(&old_group);
  MPI_Group_free(&new_group);
  MPI_Barrier(now);  // waits until all ranks have read the old numbers
  if (own_ != nullptr) own_->rank = own;
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
    } else if (is_stopped(slot->process)) {
      state.stopped.push_back(slot->rank);
      state.stopped_ids.push_back(slot->process);
    } else if (!state.speaks) {
      return state;  // that rank watches the others, so the cost per host is linear in ranks
    }
  }
  return state;
}

}  // namespace concertina
