// Independent pieces of work on all cores of this process.
#pragma once

#include <cstddef>
#include <functional>

namespace concertina {

/// work(i) for all i < count, on as many threads as this process has cores; throws what one threw.
/// `progress` is called on this thread after each of its pieces.
void for_all(std::size_t count, const std::function<void()>& progress,
             const std::function<void(std::size_t)>& work);

}  // namespace concertina
