// User-Level Failure Mitigation (Open MPI 5, `mpirun --with-ft ulfm`): which ranks are dead.
// Compiled as mpi_ulfm.cc where <mpi-ext.h> has it, else as the stub mpi_no_ulfm.cc.
#pragma once

#include <mpi.h>

#include <string>

namespace concertina {

/// "rank 2, rank 3" (in MPI_COMM_WORLD) if `error` came from `comm` because of failed ranks; else
/// "".
std::string ulfm_failed_ranks(MPI_Comm comm, int error);

}  // namespace concertina
