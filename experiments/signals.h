// SIGTERM and SIGUSR1 ask for a checkpoint and an orderly end (exit code 75).
#pragma once

namespace concertina {

/// From now on the two signals only set a flag.
void catch_stop_signals();
/// The signal that came, 0 if none did.
int stop_signal();

}  // namespace concertina
