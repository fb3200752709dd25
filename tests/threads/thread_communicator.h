// Ranks as threads of one process: the transport of unit tests, and the strictest one.
// Invariants: no message is delivered before its receive is posted (Delivery::rendezvous), so a
// program that runs here relies on no buffering anywhere; a rank that fails or returns wakes all
// that wait for it, so nothing hangs.
#pragma once

#include <functional>

#include "parallel/comm/communicator.h"

namespace concertina {

/// When a send is done: once its receive has been posted and filled, or, for short messages while
/// there is room, at once: a copy is kept, as MPI does.
enum class Delivery { rendezvous, eager };

/// Runs `body` on `ranks` threads and returns when all have ended. The first exception of any rank
/// is thrown here; in the other ranks, whatever waits then throws Error. abort(code) is such an
/// exception: an Error with that code. Works must not outlive their communicator.
void run_threads(int ranks, const std::function<void(Communicator&)>& body,
                 Delivery delivery = Delivery::rendezvous);

}  // namespace concertina
