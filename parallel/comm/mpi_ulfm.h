// User-Level Failure Mitigation (Open MPI 5, `mpirun --with-ft ulfm`): detects dead ranks and lets
// the others continue. Implemented by mpi_ulfm.cc if <mpi-ext.h> supports it, otherwise by the stub
// mpi_no_ulfm.cc.
#pragma once

#include <mpi.h>

#include <string>

namespace concertina {

/// Returns "rank 2, rank 3" (ranks in MPI_COMM_WORLD) if `error` on `comm` was caused by failed
/// ranks, otherwise "".
std::string ulfm_failed_ranks(MPI_Comm comm, int error);

/// Whether the launcher was asked to report failed ranks.
bool ulfm_active();
/// Ends all pending and later operations on `comm` with an error, on every rank.
void ulfm_revoke(MPI_Comm comm);
bool ulfm_revoked(MPI_Comm comm);
/// Whether `error` means that ranks have failed or that a communicator was revoked.
bool ulfm_lost(int error);
/// Returns a communicator of the surviving ranks of `comm`, in its order, or MPI_COMM_NULL on
/// failure. Collective over the survivors.
MPI_Comm ulfm_living(MPI_Comm comm);

}  // namespace concertina
