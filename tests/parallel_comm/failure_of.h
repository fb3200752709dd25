#pragma once

#include <functional>
#include <stdexcept>
#include <string>

#include "tests/threads/thread_communicator.h"

namespace concertina {

/// Returns the error that run_threads throws for this body, or "nothing".
inline std::string failure_of(int ranks, const std::function<void(Communicator&)>& body) {
  try {
    run_threads(ranks, body);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing";
}

}  // namespace concertina
