// Parallel loop over independent work items on all cores of this process.
#pragma once

#include <cstddef>
#include <functional>

namespace concertina {

/// Calls work(i) for all i < count, with a thread per core of this process, and rethrows one of the
/// exceptions, if any. `progress` is called on the calling thread after each of its items.
void for_all(std::size_t count, const std::function<void()>& progress,
             const std::function<void(std::size_t)>& work);

}  // namespace concertina
