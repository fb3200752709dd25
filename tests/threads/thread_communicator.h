// Ranks as threads of one process: the transport of unit tests, and the strictest one.
// Invariants: with Delivery::rendezvous, no message is delivered before its receive is posted, so
// tests show that a program does not rely on buffering; a rank that fails or returns wakes all
// ranks that wait for it, so nothing hangs.
#pragma once

#include <functional>

#include "parallel/comm/communicator.h"

namespace concertina {

/// When a send completes: once its receive has been posted and filled or, with `eager`, at once for
/// short messages while there is room, since a copy is kept, as in MPI.
enum class Delivery { rendezvous, eager };

/// Runs `body` on `ranks` threads and returns when all have ended. Throws the first exception of
/// any rank; in the other ranks, waiting calls then throw Error. abort(code) throws an Error with
/// that code. Works must not outlive their communicator.
void run_threads(int ranks, const std::function<void(Communicator&)>& body,
                 Delivery delivery = Delivery::rendezvous);

}  // namespace concertina
