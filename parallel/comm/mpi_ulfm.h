// User-Level Failure Mitigation (Open MPI 5, `mpirun --with-ft ulfm`): which ranks are dead, and
// how the others go on. Compiled as mpi_ulfm.cc where <mpi-ext.h> has it, else as the stub
// mpi_no_ulfm.cc.
#pragma once

#include <mpi.h>

#include <string>

namespace concertina {

/// "rank 2, rank 3" (in MPI_COMM_WORLD) if `error` came from `comm` because of failed ranks; else
/// "".
std::string ulfm_failed_ranks(MPI_Comm comm, int error);

/// Whether failed ranks are reported in this launch: the launcher was told to.
bool ulfm_active();
/// All that is under way on `comm`, on any rank, ends with an error, and so does what comes later.
void ulfm_revoke(MPI_Comm comm);
bool ulfm_revoked(MPI_Comm comm);
/// Whether `error` says that ranks have failed, or that a communicator was revoked for that.
bool ulfm_lost(int error);
/// Those ranks of `comm` that live, in its order. Collective over these; MPI_COMM_NULL: it failed.
MPI_Comm ulfm_living(MPI_Comm comm);

}  // namespace concertina
