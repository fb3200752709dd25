// Short runs of a small model on a text with repeated samples, with cached activations.
// Invariant: as in tests/integration/training.h.
#pragma once

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "experiments/cache/auto_cache.h"
#include "io/datasets/masked_tokens.h"
#include "io/datasets/views.h"
#include "models/task.h"
#include "tests/integration/training.h"
#include "tests/temporary_directory.h"

namespace concertina {

inline constexpr std::uint64_t kCachedSamples = 24;  // of an epoch: two steps

struct CachedResult {
  Outcome outcome;
  CacheUse use;
  std::vector<nlohmann::ordered_json> decisions;
  std::vector<double> forward;  // by unit, seconds; 0: has not run since the last change
};

/// A text of kCachedSamples samples with this many tokens, and the directory of the files.
struct CachedHost {
  TemporaryDirectory directory;
  std::string text = directory.path() + "/text";
  explicit CachedHost(std::uint64_t tokens = 13) {
    std::ofstream file(text);
    for (std::uint64_t i = 0; i <= kCachedSamples * tokens; ++i)
      file << static_cast<char>('a' + i * i * i % 23);
  }
  std::shared_ptr<const Dataset> dataset(const RunConfig& config) const {
    auto dataset = open_dataset({.files = {text},
                                 .validation = 0,
                                 .tokens_per_sample = config.model.context,
                                 .options = config.data.options});
    if (task_of(config.model.family, config.model.task).masks)
      dataset = masked_tokens(dataset, nullptr);
    return with_views(dataset, static_cast<std::uint64_t>(config.data.views));
  }
};

/// 4 layers, 10 units; 4 microbatches of 3 samples.
RunConfig cached_config();
/// Sets budgets for at least this many samples: a file consists of whole pages.
RunConfig with_room(RunConfig config, const CachedHost& host, std::uint64_t memory,
                    std::uint64_t disk);

/// Trains steps (span.first, span.last] with threads as ranks, cached if a budget is set; calls
/// `before` on each rank before each step.
CachedResult train_cached(int ranks, const RunConfig& config, const CachedHost& host,
                          const Span& span, const std::vector<LayoutChange>& changes = {},
                          const MakeBackend& make_backend = cpu_backend,
                          const std::function<void(int rank, std::int64_t step)>& before = {});

/// Returns the grid pp x dp with units [0, units) frozen.
Request frozen_at(int units, int world = 1, int pp = 1, int dp = 1,
                  const std::string& schedule = "1f1b");

}  // namespace concertina
