#include "experiments/exchange/start_from.h"

#include <fmt/format.h>

#include "core/log.h"
#include "experiments/exchange/published_weights.h"
#include "experiments/run/gather.h"

namespace concertina {
namespace {

void read_weights(State& state, const PublishedWeights& published) {
  const std::vector<Bucket>& buckets = state.assignment().buckets;
  std::vector<float> values;
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    if (state.weights()[b].empty()) continue;
    for (const BucketTensor& tensor : buckets[b].tensors) {
      HostMirror mirror(state.memory(), state.weights()[b].slice(tensor.offset, tensor.count));
      if (published.read(tensor.name, {mirror.host().f32(), tensor.count})) mirror.upload();
    }
  }
}

}  // namespace

void start_from(Trainer& trainer, const RunConfig& config) {
  const Watchdog::Patience patience(trainer.watchdog(), "reading model.from");
  together(trainer.world(), [&] {
    const PublishedConfig published = read_published_config(config.model.from);
    const PublishedWeights weights(config.model.from, published, config);
    read_weights(trainer.state(), weights);
    if (trainer.world().rank() != 0) return;
    log::info("weights of {} ({})", config.model.from, published.table->model_type);
    if (!weights.missing().empty())
      log::info("not in it, and initialized: {}", fmt::join(weights.missing(), ", "));
  });
  trainer.refresh();
}

}  // namespace concertina
