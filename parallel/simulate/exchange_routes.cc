#include "parallel/simulate/exchange_routes.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/index.h"

namespace concertina {

ExchangeRoutes::ExchangeRoutes(const ExchangeScheme& scheme, ExchangeShape shape, bool back)
    : scheme_(scheme), shape_(std::move(shape)), back_(back) {
  const std::size_t phases = holders() == 0 ? 0 : row_of(0).size();
  std::vector<std::vector<int>> all(phases);
  std::vector<std::size_t> fewest(phases, ~std::size_t{0});  // steps in which a holder sends
  for (int h = 0; h < holders(); ++h) {
    const ExchangeRow row = row_of(h);
    for (std::size_t p = 0; p < phases; ++p) {
      std::vector<int> steps;
      for (const ShareMove& send : row[p].sends)
        if (steps.empty() || steps.back() != send.step) steps.push_back(send.step);
      fewest[p] = std::min(fewest[p], steps.size());
      std::vector<int> both;
      std::ranges::set_union(all[p], steps, std::back_inserter(both));
      all[p] = std::move(both);
    }
  }
  std::vector<std::vector<int>> middles(phases);
  for (std::size_t p = 0; p < phases; ++p) {
    const std::size_t steps = all[p].size();
    const std::size_t count = fewest[p] == steps ? std::min(steps, kMostSteps) : steps;
    std::vector<std::size_t>& index = index_.emplace_back();
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t first = i * steps / count, last = (i + 1) * steps / count;
      index.insert(index.end(), last - first, i);
      middles[p].push_back(all[p][(first + last - 1) / 2]);
    }
    const std::vector<int> none(at(holders()), -1);
    phases_.emplace_back(count, ExchangeStep{none, none});
  }
  numbers_ = std::move(all);
  each([&](std::size_t phase, std::size_t step, int from, int to, int, int number) {
    if (number != middles[phase][step]) return;
    phases_[phase][step].to[at(from)] = to;
    phases_[phase][step].from[at(to)] = from;
  });
}

ExchangeRow ExchangeRoutes::row_of(int holder) const {
  ExchangeRow row = scheme_.row(shape_, holder);
  return back_ ? backwards(row) : row;
}

std::size_t ExchangeRoutes::step_index(std::size_t phase, int step) const {
  const auto number = std::ranges::lower_bound(numbers_[phase], step);
  return index_[phase][static_cast<std::size_t>(number - numbers_[phase].begin())];
}

namespace {

/// `pieces(phase, from, chunk)` returns the pieces of one message.
template <class Pieces>
ExchangeLoad load_of(const ExchangeRoutes& routes, const Costs& costs, const BucketCosts& bucket,
                     const Pieces& pieces) {
  const std::vector<double> none(at(routes.holders()), 0.0);
  ExchangeLoad load{{}, none, none, none};
  for (const std::vector<ExchangeStep>& steps : routes.phases())
    load.pieces.emplace_back(steps.size(), none);
  const bool copies = costs.has_copies();
  routes.each([&](std::size_t phase, std::size_t step, int from, int to, int chunk, int) {
    const double count = pieces(static_cast<int>(phase), from, chunk);
    load.pieces[phase][step][at(from)] += count;
    load.sent[at(from)] += count;
    load.arrived[at(to)] += count;
    if (!copies) return;
    const LinkCosts& link = costs.link(bucket.ranks[at(from)], bucket.ranks[at(to)]);
    if (!std::isinf(link.bandwidth)) return;
    load.copies[at(from)] += count * link.send_cpu;
    load.copies[at(to)] += count * link.receive_cpu;
  });
  return load;
}

}  // namespace

ExchangeLoad gradient_load(const ExchangeRoutes& there, const Costs& costs,
                           const BucketCosts& bucket) {
  const ExchangeShape shape = costs.exchange().shape(bucket.ranks);
  ShareFlow flow(costs.exchange().find(), shape, bucket.pieces, costs.leaves);
  return load_of(there, costs, bucket, [&](int phase, int from, int chunk) {
    return static_cast<double>(phase == 0 ? bucket.pieces[at(from)].size()
                                          : flow.share(from, chunk, phase).size());
  });
}

ExchangeLoad gradient_load(const Costs& costs, const BucketCosts& bucket) {
  const ExchangeChoice exchange = costs.exchange();
  return gradient_load({exchange.find(), exchange.shape(bucket.ranks), false}, costs, bucket);
}

ExchangeLoad weight_load(const ExchangeRoutes& back, const Costs& costs,
                         const BucketCosts& bucket) {
  return load_of(back, costs, bucket, [](int, int, int) { return 1.0; });
}

}  // namespace concertina
