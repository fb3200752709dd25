// SIGTERM, SIGINT (Ctrl-C), SIGUSR1, SIGHUP (a lost terminal) and SIGXCPU (a batch system's
// CPU-time limit) request a checkpoint and an orderly exit (exit code 75). Invariant: this program
// never runs a signal handler. During matrix products, oneDNN (2.6) points the stack register into
// the heap, so a signal frame would overwrite data there.
#pragma once

#include <string>

namespace concertina {

/// Blocks these signals from now on, so that they stay pending until queried. Must be called before
/// MPI or any other thread starts, because threads inherit the signal mask.
void hold_stop_signals();
/// Restores the default action of SIGTERM and SIGINT, for a rank that waits to be killed.
void release_sigterm();
/// Whether an unhandled SIGTERM is pending. Thread-safe.
bool sigterm_waits();
/// Whether any of these signals is pending and unhandled. Thread-safe.
bool stop_waits();
/// The name of one of these signals, such as "SIGTERM".
std::string signal_text(int signal);
/// The first signal received, or 0 if there is none. Must be called by one thread only.
int stop_signal();

}  // namespace concertina
