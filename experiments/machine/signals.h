// SIGTERM, SIGINT (Ctrl-C), SIGUSR1, SIGHUP (a lost terminal) and SIGXCPU (a batch system's limit
// of CPU time) ask for a checkpoint and an orderly end (exit code 75). Invariant: no handler of
// ours ever runs. oneDNN's products (2.6) point the stack register into the heap, so a signal frame
// in the middle of one would overwrite what lies there.
#pragma once

#include <string>

namespace concertina {

/// Makes these signals wait from now on until somebody asks. Call it before MPI and any other
/// thread starts: threads inherit that they are blocked.
void hold_stop_signals();
/// SIGTERM and SIGINT end the process again: for a rank that waits to be ended.
void release_sigterm();
/// Whether a SIGTERM waits that nobody has asked for yet. From any thread.
bool sigterm_waits();
/// Whether any of these waits that nobody has asked for yet. From any thread.
bool stop_waits();
/// "SIGTERM (mpirun forwards Ctrl-C as SIGTERM)": the name of one of these signals.
std::string signal_text(int signal);
/// The first signal that came, 0 if none did. One thread asks.
int stop_signal();

}  // namespace concertina
