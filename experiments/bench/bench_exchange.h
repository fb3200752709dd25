// `concertina bench exchange`: the exchange of gradients and the gathering of weights between
// replicas, one rank each, without training.
// Invariant: the messages are those of a step of training with pp = 1 and as many leaves as ranks.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "parallel/comm/communicator.h"
#include "parallel/predict/machine.h"

namespace concertina {

struct ExchangeBenchOptions {
  double bytes = 16e6;  // of all gradients of a replica
  int buckets = 12;     // of equal size
  int rounds = 5;       // measured, after `warmup`
  int warmup = 1;
  double bound = 1.5;   // times a ring's time that make it fail; 0: nothing does
  double off = 15;      // percent that the prediction may be off
  std::string links{};  // a machine file, in place of probing the links
  std::string exchange = "all-to-all";
};

/// Collective; the same on every rank. Throws Error{bad_input} in a world of one. Keys: ranks,
/// hosts, exchange, buckets, bytes, reduce_ms, gather_ms, measured_ms (their sum; each the median
/// of the slowest rank's rounds), ring_bound_ms, predicted_ms, measured_over_bound,
/// predicted_over_bound, predicted_over_measured, machine (the links that the bound and the
/// prediction stand on), ok.
nlohmann::ordered_json bench_exchange(Communicator& world, const ExchangeBenchOptions& options);

std::string exchange_table(const nlohmann::ordered_json& result);

/// Seconds in which a ring all-reduce of `bytes` would pass over `link`, between `ranks` ranks, as
/// far as its bandwidth decides: 2 (ranks - 1) / ranks bytes in and out of each rank.
double ring_seconds(double bytes, int ranks, const LinkCosts& link);

}  // namespace concertina
