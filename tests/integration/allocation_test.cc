// A training step allocates nothing from the heap after the first one.
// Invariant: counts every operator new of every thread; allocations by transport and kernel
// libraries are counted separately.
#include <dlfcn.h>
#include <execinfo.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <new>
#include <string_view>

#include "experiments/cache/auto_cache.h"
#include "io/datasets/source.h"
#include "tests/integration/training.h"
#include "tests/planned.h"
#include "tests/temporary_directory.h"
#include "tests/threads/thread_communicator.h"

namespace {

std::atomic<bool> counting = false;
std::atomic<int> ours = 0, libraries = 0;

/// Returns whether the object that contains `address` is a library whose allocations we cannot
/// avoid. The C++ library is none: its caller counts.
enum class Owner { program, library, unknown };
Owner owner_of(void* address) {
  Dl_info info{};
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return Owner::unknown;
  const std::string_view name = info.dli_fname;
  for (const char* library : {"libdnnl", "libmpi", "libopen-", "libgomp"})
    if (name.find(library) != std::string_view::npos) return Owner::library;
  for (const char* library : {"libstdc++", "libc.so", "libc-"})
    if (name.find(library) != std::string_view::npos) return Owner::unknown;
  return Owner::program;
}

void count(void* caller) {
  if (!counting.load(std::memory_order_relaxed)) return;
  std::array<void*, 32> frames{};
  const int depth = backtrace(frames.data(), static_cast<int>(frames.size()));
  Owner owner = Owner::unknown;
  bool inside = true;  // within operator new
  for (int i = 0; i < depth && owner == Owner::unknown; ++i) {
    void* frame = frames[static_cast<std::size_t>(i)];
    if (frame == caller) inside = false;
    if (!inside) owner = owner_of(frame);
  }
  ++(owner == Owner::library ? libraries : ours);
}

void* allocate(std::size_t bytes, std::size_t alignment, void* caller) {
  count(caller);
  const std::size_t size = (bytes + alignment - 1) / alignment * alignment;
  void* block = std::aligned_alloc(alignment, size == 0 ? alignment : size);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

}  // namespace

// The array and nothrow forms of the standard library call these. If inlined, GCC would take a
// delete for a free() of memory from new.
void* operator new(std::size_t bytes) {
  return allocate(bytes, alignof(std::max_align_t), __builtin_return_address(0));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment), __builtin_return_address(0));
}
[[gnu::noinline]] void operator delete(void* block) noexcept {
  std::free(block);
}
[[gnu::noinline]] void operator delete(void* block, std::size_t) noexcept {
  std::free(block);
}
[[gnu::noinline]] void operator delete(void* block, std::align_val_t) noexcept {
  std::free(block);
}
[[gnu::noinline]] void operator delete(void* block, std::size_t, std::align_val_t) noexcept {
  std::free(block);
}

namespace concertina {
namespace {

struct Count {
  int ours = 0, libraries = 0;
};

/// Counts allocations of all ranks in three steps after the first, or after a change to `next`, on
/// the data of a text; with cached activations if there is a budget for them.
Count allocations(int ranks, const RunConfig& config, Delivery delivery,
                  const std::optional<Request>& next = {},
                  const std::vector<SkipGroup>& skips = {}) {
  const TemporaryDirectory directory;
  const std::string text = directory.path() + "/text";
  std::ofstream(text) << std::string(8000, 'a') + std::string(8000, 'b');
  run_threads(
      ranks,
      [&](Communicator& world) {
        const auto backend = make_cpu_backend(config.run.threads);
        Trainer trainer(config, *backend, world);
        trainer.start();
        trainer.initialize();
        const std::shared_ptr<const Dataset> dataset =
            open_dataset({.files = {text},
                          .tokens_per_sample = config.model.context,
                          .options = config.data.options});
        TrainingSource source(dataset, 1, config.batch.global);
        std::unique_ptr<AutoCache> cache;
        if (uses_cache(config))
          cache = std::make_unique<AutoCache>(
              trainer, AutoCache::Options{.dataset = dataset, .numerics = "", .decided = {}});
        const auto train = [&](int step) {
          if (cache) cache->before_step(step);
          trainer.engine().state_check().record_next();
          trainer.step(step, source);
        };
        trainer.skip(skips);
        train(1);
        if (next) {
          trainer.adopt(assign(trainer.job(), *next));
          train(2);
        }
        const int together = trainer.assignment().batches;
        world.barrier();
        if (world.rank() == 0) {
          ours = libraries = 0;
          counting = true;
        }
        world.barrier();
        for (int i = 0, step = 2 + together; i < 3; ++i, step += together) train(step);
        world.barrier();
        if (world.rank() == 0) counting = false;
        world.barrier();
      },
      delivery);
  return {ours, libraries};
}

RunConfig text_config() {
  RunConfig config = small_config();
  config.model.vocab = 256;
  return config;
}

TEST(Allocation, TheCounterCounts) {
  std::array<void*, 1> warm{};
  backtrace(warm.data(), 1);  // loads its library on first use
  ours = 0;
  counting = true;
  const std::string text(100, 'x');  // through the C++ library
  int* volatile one = new int(1);    // volatile: else the compiler may omit both
  delete one;
  counting = false;
  EXPECT_EQ(ours, 2) << text;
}

TEST(Allocation, NoneInAStep) {
  std::vector<RunPlace> places = grid_places(
      text_config(),
      {{1, 1, "1f1b"}, {2, 1, "1f1b"}, {1, 2, "gpipe"}, {2, 2, "1f1b"}, {2, 1, "1f1b"}});
  places.back().config.parallel.overlap = true;
  places.insert(places.end(), {places[0], places[1]});
  places[5].config.run.threads = 2;
  RunConfig& dropping = places[6].config;
  dropping.numerics.compute = "bf16";
  dropping.model.dropout = dropping.model.attention_dropout = 0.1;
  for (const RunPlace& place : places)
    for (const Delivery delivery : {Delivery::rendezvous, Delivery::eager}) {
      const Count found = allocations(place.ranks, place.config, delivery);
      EXPECT_EQ(found.ours, 0) << place.name << ", eager: " << (delivery == Delivery::eager);
      std::printf("%s, %d thread(s) a rank: %d allocations in 3 steps, %d more by libraries\n",
                  place.name.c_str(), place.config.run.threads, found.ours, found.libraries);
    }
  EXPECT_EQ(
      allocations(4, places[3].config, Delivery::eager, {}, {{{1, 2, 3}, 2}, {{4, 5, 6}, 1}}).ours,
      0)
      << "when units skip weight gradients";
}

TEST(Allocation, NoneInAStepAfterAChangeOfTheAssignment) {
  const RunConfig config = with_grid(text_config(), 4, 1, "1f1b");
  const auto next = [](int pp, int dp, const char* schedule) {
    return Request{.world = 4, .spare = 4 - pp * dp, .pp = pp, .dp = dp, .schedule = schedule};
  };
  for (const Request& request : {next(2, 2, "zb-h1"), next(1, 4, "1f1b"), next(2, 1, "gpipe")})
    EXPECT_EQ(allocations(4, config, Delivery::rendezvous, request).ours, 0)
        << request.pp << " x " << request.dp;
  Request grown = next(2, 2, "1f1b");
  grown.batches = 2;
  EXPECT_EQ(allocations(4, config, Delivery::rendezvous, grown).ours, 0);
  Request phased = next(1, 4, "1f1b");
  phased.exchange = {"hierarchical", {0, 0, 1, 1}};
  EXPECT_EQ(allocations(4, config, Delivery::rendezvous, phased).ours, 0);
}

/// Steps that write entries, read them, and move them to a new frontier.
TEST(Allocation, NoneInAStepWithCachedActivations) {
  RunConfig config = with_grid(text_config(), 2, 2, "1f1b");
  config.data.options.insert_or_assign("windows", std::string("fixed"));
  config.freeze.units = 3;
  config.cache.memory = {4 << 20};
  config.cache.use = "always";
  const Request next{.world = 4, .frozen_units = 4, .pp = 2, .dp = 2, .schedule = "1f1b"};
  EXPECT_EQ(allocations(4, config, Delivery::rendezvous, next).ours, 0);
  Request grown = next;
  grown.batches = 2;
  EXPECT_EQ(allocations(4, config, Delivery::rendezvous, grown).ours, 0);
  config.batch = {12 * 30, 12};  // an epoch of two steps
  EXPECT_EQ(allocations(4, config, Delivery::rendezvous, next).ours, 0);
}

}  // namespace
}  // namespace concertina
