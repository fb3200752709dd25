// Patches, class tokens and selected rows.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/model/batch.h"
#include "tests/core/kernels/cases.h"
#include "tests/core/kernels/rates.h"

namespace concertina {
namespace {

struct Image {
  std::int64_t channels, down, across, patch;  // down x across patches
};

Outputs run_images(Backend& backend, Data& data, std::int64_t samples, const Image& shape,
                   DType compute) {
  const auto [channels, down, across, patch] = shape;
  const Buffer image = data.normal(samples * channels * down * across * patch * patch);
  const Buffer patches(image.size(), compute);
  backend.run(
      ImagePatches{image.view(), channels, down * patch, across * patch, patch, patches.view()});
  backend.synchronize();
  return {output("patches", patches)};
}

constexpr std::int64_t kMostRead = 3;

/// Returns targets [samples,tokens]; each sample has 0 to kMostRead of them.
Buffer few_targets(Data& data, std::int64_t samples, std::int64_t tokens) {
  Buffer targets(static_cast<std::size_t>(samples * tokens), DType::i32);
  std::fill_n(targets.view().i32(), targets.size(), kIgnored);
  for (std::int64_t s = 0; s < samples; ++s)
    for (std::int64_t count = data.size(0, kMostRead); count > 0; --count)
      targets.view().i32()[s * tokens + data.size(0, tokens - 1)] =
          static_cast<std::int32_t>(data.size(0, 1000));
  return targets;
}

Outputs run_token_rows(Backend& backend, Data& data, std::int64_t samples, std::int64_t tokens,
                       std::int64_t width, DType compute) {
  const std::int64_t all = samples * (tokens + 1) * width;
  const Buffer x = data.normal(samples * tokens * width, 1, 0, compute);
  const Buffer dy = data.normal(all, 1, 0, compute),
               one = data.normal(samples * width, 1, 0, compute),
               some = data.normal(samples * kMostRead * width, 1, 0, compute);
  const Buffer cls = data.normal(width), wpe = data.normal((tokens + 1) * width);
  // Includes targets out of range.
  const Buffer ends = data.integers(samples, 0, static_cast<std::int32_t>(tokens) + 2);
  const Buffer targets = few_targets(data, samples, tokens + 1);
  const Buffer ends_at(static_cast<std::size_t>(samples), DType::i32);
  const Buffer places(static_cast<std::size_t>(samples * kMostRead), DType::i32),
      taken(places.size(), DType::i32);
  const Buffer y(dy.size(), compute), dx(x.size(), compute), first(one.size(), compute),
      last(one.size(), compute), read(some.size(), compute), spread(dy.size(), compute),
      spread_last(dy.size(), compute), spread_some(dy.size(), compute);
  backend.run(JoinClass{x.view(), cls.view(), wpe.view(), y.view()});
  backend.run(SplitClass{dy.view(), samples, dx.view()});
  backend.run(TakeRows{dy.view(), {}, samples, first.view()});
  backend.run(FindLastRows{ends.view(), tokens + 1, ends_at.view()});
  backend.run(FindTargets{targets.view(), samples, places.view(), taken.view()});
  backend.run(TakeRows{dy.view(), ends_at.view(), samples, last.view()});
  backend.run(TakeRows{dy.view(), places.view(), samples, read.view()});
  backend.run(ScatterRows{one.view(), {}, samples, spread.view()});
  backend.run(ScatterRows{one.view(), ends_at.view(), samples, spread_last.view()});
  backend.run(ScatterRows{some.view(), places.view(), samples, spread_some.view()});
  const Buffer dcls(cls.size()), dwpe(wpe.size()), dcls_sum(cls.values()), dwpe_sum(wpe.values());
  backend.run(JoinClassWeight{dy.view(), dcls.view(), dwpe.view(), false});
  backend.run(JoinClassWeight{dy.view(), dcls_sum.view(), dwpe_sum.view(), true});
  backend.synchronize();
  return {output("y", y),
          output("dx", dx),
          output("first rows taken", first),
          output("last rows taken", last),
          output("first rows spread", spread),
          output("last rows spread", spread_last),
          output("rows with targets taken", read),
          output("rows with targets spread", spread_some),
          {"targets", std::vector<float>(taken.view().i32(), taken.view().i32() + taken.size())},
          output("dcls", dcls, largest(dy)),
          output("dwpe", dwpe, largest(dy)),
          output("dcls accumulated", dcls_sum, largest(dy)),
          output("dwpe accumulated", dwpe_sum, largest(dy))};
}

}  // namespace

void add_token_row_cases(CaseRound& round) {
  Data& data = round.data;
  const std::int64_t samples = data.size(1, 3), tokens = odd_size(data, 60),
                     width = odd_size(data, 300);
  const Image image{data.pick<std::int64_t>({1, 3}), data.size(1, 4), data.size(1, 4),
                    data.pick<std::int64_t>({1, 4, 5, 7, 8, 14, 16})};
  round.add(fmt::format("images {}x{} of {}x{} patches {}", samples, image.channels, image.down,
                        image.across, image.patch),
            run_images, samples, image);
  round.add(fmt::format("token_rows {}x{}x{}", samples, tokens, width), run_token_rows, samples,
            tokens, width);
}

/// Images with patches of 16 x 16 pixels, width C and T tokens per sample.
void token_row_rates(KernelRates& rates, DType compute) {
  const RateSizes& sizes = rates.sizes();
  RateMemory& memory = rates.memory();
  constexpr std::int64_t kPatch = 16;
  const std::int64_t s = sizes.samples, t = sizes.tokens, c = sizes.width;
  const View image = memory.take(s * t * c, DType::f32), x = memory.take(s * t * c, compute);
  const View joined = memory.take(s * (t + 1) * c, compute), one = memory.take(s * c, compute);
  const View cls = memory.take(c, DType::f32), wpe = memory.take((t + 1) * c, DType::f32);
  const auto bytes = static_cast<double>(x.bytes());
  rates.fused("image patches", bytes + static_cast<double>(image.bytes()),
              ImagePatches{image, c / (kPatch * kPatch), t / 16 * kPatch, 16 * kPatch, kPatch, x});
  rates.fused("class token", 2 * bytes, JoinClass{x, cls, wpe, joined});
  rates.fused("class token dx", 2 * bytes, SplitClass{joined, s, x});
  rates.fused("class token dW", bytes, JoinClassWeight{joined, cls, wpe, true});
  rates.fused("rows spread", bytes, ScatterRows{one, {}, s, x});
}

}  // namespace concertina
