// Shared by the tests of the activation cache: data derived from its key, and a host's two
// directories with the cache's warnings.
#pragma once

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "io/activation_cache.h"
#include "tests/io/io_test.h"

namespace concertina {

constexpr std::uint64_t kCacheEntry = 1000;        // bytes per entry
constexpr std::uint64_t kCacheBudget = 10 * 4096;  // of a tier: a page and slots of 1088 bytes
constexpr std::uint64_t kCacheSlots = 33;

inline Sha256Digest digest_of(int version) {
  return prefix_digest("model", std::to_string(version), {});
}

inline CacheKey key_of(std::uint64_t slot, int version = 0, std::uint64_t sample = 0) {
  return {slot, sample, digest_of(version)};
}

/// Returns equal data for equal keys, as the cache may assume; otherwise almost every byte differs.
inline std::vector<std::byte> data_of(const CacheKey& key, std::uint64_t bytes) {
  Random random(key.slot * 1000003 + key.sample * 101 +
                std::to_integer<unsigned>(key.prefix[0]) * 7919);
  std::vector<std::byte> data(bytes);
  for (std::byte& byte : data) byte = static_cast<std::byte>(random());
  return data;
}

struct CacheHost {
  TemporaryDirectory memory, disk;
  std::vector<std::string> warnings;

  CacheOptions options(std::uint64_t samples, std::uint64_t entry_bytes, std::uint64_t memory_bytes,
                       std::uint64_t disk_bytes) {
    return {.samples = samples,
            .entry_bytes = entry_bytes,
            .memory_bytes = memory_bytes,
            .disk_bytes = disk_bytes,
            .memory_directory = memory.path(),
            .disk_directory = disk.path(),
            .warn = [this](const std::string& text) { warnings.push_back(text); }};
  }
  /// Expects exactly one warning, which contains `part`.
  void expect_warning(const char* part) const {
    ASSERT_EQ(warnings.size(), 1U);
    expect_has(warnings[0], part);
  }
  /// Returns whether both directories are empty, as they always should be.
  bool empty() const {
    return std::filesystem::is_empty(memory.path()) && std::filesystem::is_empty(disk.path());
  }
};

/// Returns the files of a cache while it exists: they have no names.
inline std::vector<std::string> files_of(const ActivationCache& cache) {
  std::vector<std::string> paths;
  for (const nlohmann::json& tier : cache.shared())
    if (!tier.is_null()) paths.push_back(tier["file"]);
  return paths;
}

inline bool hits(ActivationCache& cache, const CacheKey& key, std::uint64_t bytes) {
  std::vector<std::byte> out(bytes);
  if (!cache.read(key, out)) return false;
  EXPECT_EQ(out, data_of(key, bytes)) << "wrong data of slot " << key.slot;
  return true;
}

inline bool store(ActivationCache& cache, const CacheKey& key, std::uint64_t bytes) {
  return cache.write(key, data_of(key, bytes));
}

/// A process that runs `body` until it returns or is killed.
class Child {
 public:
  explicit Child(const std::function<void()>& body) : pid_(::fork()) {
    if (pid_ != 0) return;
    try {
      body();
      ::_exit(0);
    } catch (...) {
      ::_exit(1);
    }
  }
  ~Child() { kill(); }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    wait();
  }
  /// Returns its exit code, or -signal.
  int wait() {
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t pid_;
};

}  // namespace concertina
