#include "io/for_all.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace concertina {

void for_all(std::size_t count, const std::function<void()>& progress,
             const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr failure;
  const auto run = [&](const std::function<void()>& after) {
    try {
      for (std::size_t i = 0; (i = next++) < count;) {
        work(i);
        if (after) after();
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
      next = count;
    }
  };
  {
    const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
    std::vector<std::jthread> others;
    while (others.size() + 1 < std::min(count, cores)) others.emplace_back([&] { run({}); });
    run(progress);
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace concertina
