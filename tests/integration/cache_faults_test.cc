// Caches of activations with damaged or missing files, which give one warning, and with impossible
// budgets, which are errors.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "experiments/predict/predict_memory.h"
#include "tests/integration/cached_training.h"
#include "tests/io/io_test.h"
#include "tests/threads/thread_communicator.h"

namespace concertina {
namespace {

/// Applies `harm` to each activation file that this process has open: they have no names.
void harm_files(const std::function<void(int descriptor)>& harm) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    const std::string target = std::filesystem::read_symlink(entry, ignored);
    if (!target.ends_with("(deleted)") || target.starts_with("/memfd:")) continue;
    const int descriptor = ::open(entry.path().c_str(), O_RDWR);
    ASSERT_GE(descriptor, 0) << target;
    harm(descriptor);
    ::close(descriptor);
  }
}

/// Counts the warnings about activations that `body` logs.
int warnings_of(const std::function<void()>& body) {
  testing::internal::CaptureStdout();  // where lines go before log::init()
  body();
  const std::string text = testing::internal::GetCapturedStdout();
  int count = 0;
  for (std::size_t at = text.find("warning"); at != std::string::npos;
       at = text.find("warning", at + 1))
    ++count;
  EXPECT_TRUE(count == 0 || text.find("cache.") != std::string::npos) << text;
  return count;
}

TEST(AutoCacheFaults, FilesThatAreDamagedOrMissingAreOneWarning) {
  CachedHost host;
  RunConfig config = with_grid(cached_config(), 1, 1, "1f1b");
  config.freeze.units = 5;
  const Span span{0, 10, "", ""};
  const Outcome expected = train_cached(1, config, host, span).outcome;
  const auto harmed = [&](const RunConfig& cached, const std::function<void(int)>& harm) {
    CachedResult got;
    EXPECT_EQ(warnings_of([&] {
                got = train_cached(1, cached, host, span, {}, cpu_backend,
                                   [&](int, std::int64_t step) {
                                     if (step == 5 && harm) harm_files(harm);
                                   });
              }),
              1);
    EXPECT_EQ(got.outcome, expected);
    EXPECT_GE(got.use.faults, 1U);
    return got.use;
  };
  const RunConfig both = with_room(config, host, 12, 24);
  // Flips a bit of each entry.
  const CacheUse damaged = harmed(both, [](int descriptor) {
    for (off_t slot = 0; slot < 24; ++slot) {
      char byte = 0;
      const off_t at = 4096 + slot * 896 + 100;
      if (::pread(descriptor, &byte, 1, at) != 1) break;
      byte = static_cast<char>(byte ^ 16);
      EXPECT_EQ(::pwrite(descriptor, &byte, 1, at), 1);
    }
  });
  EXPECT_EQ(damaged.misses, 2 * kCachedSamples) << "each sample is recomputed once";
  const CacheUse cut =
      harmed(both, [](int descriptor) { EXPECT_EQ(::ftruncate(descriptor, 4096), 0); });
  EXPECT_EQ(cut.misses, 4 * kCachedSamples);
  RunConfig missing = with_room(config, host, 0, 24);
  missing.cache.dir = host.directory.path() + "/missing";
  EXPECT_EQ(harmed(missing, {}).misses, 5 * kCachedSamples);
}

TEST(AutoCacheFaults, MemoryThatItsHostDoesNotHaveIsRefused) {
  const RunConfig config = with_grid(cached_config(), 1, 2, "1f1b");
  run_threads(2, [&](Communicator& world) {
    const auto backend = make_cpu_backend(1);
    Trainer trainer(config, *backend, world);
    require_memory(trainer, 1, 4096);
    // Once, not once per rank.
    EXPECT_ERROR(require_memory(trainer, 1, std::size_t{1} << 50), "cache.memory 1048576.00 GiB");
    EXPECT_ERROR(require_memory(trainer, 1, std::size_t{1} << 50), "a smaller cache.memory");
  });
}

TEST(AutoCacheFaults, ABudgetThatHoldsNothingIsRefused) {
  RunConfig config = cached_config();
  const ModelSpec model = job_of(config).model;
  config.cache.disk = {4096};
  for (const char* part : {"cache.disk = \"4 KiB\" is too small", "832 bytes", "8 KiB"})
    EXPECT_ERROR(cache_room(config, model, kCachedSamples), part);
  config.cache.disk = {8192};
  EXPECT_EQ(cache_room(config, model, kCachedSamples).disk.count, 4U);
  EXPECT_EQ(idle_cache(config), "");
  config.freeze.policy = "none";
  EXPECT_EQ(cache_room(config, model, kCachedSamples).slots(), 0U);
  EXPECT_NE(idle_cache(config).find("nothing is ever frozen"), std::string::npos);
}

}  // namespace
}  // namespace concertina
