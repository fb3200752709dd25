// `concertina bench change`: from one layout to another and back, between steps of one run.
// Invariant: every change is Trainer::adopt(), as in a run that trains.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "experiments/config/config.h"
#include "parallel/comm/communicator.h"

namespace concertina {

struct ChangeBenchOptions {
  std::string to{};  // keys of the other layout; empty: pp = 1, or dp = 1 where that is so already
  int warmup = 2;    // steps before the first change; then one round that is not measured
  int rounds = 5;    // there and back
  int bytes = 1 << 23;  // of a message that probes the link
};

/// Collective; the same on every rank. Times are medians of the rounds' slowest ranks. Keys: ranks,
/// hosts, backend, rounds, from, to (layouts), from_step_ms and to_step_ms (of a step that is not
/// the first one after a change), link (from, to, bytes_per_s: 0 where nothing travels), machine,
/// there and back: each with change_ms, move_ms (of that, for the state), rebuild_ms (the rest),
/// first_step_ms (right after it), change_over_step (the shorter of both steps), bytes (between
/// ranks), busiest_rank_bytes (in or out), extra_bytes (of the rank with most), move_rounds,
/// link_ms (the busiest rank's bytes over the link's rate), change_over_link, predicted_ms,
/// predicted_move_ms, predicted_over_measured. Throws Error{bad_input} in a world of one, or if
/// both layouts are the same.
nlohmann::ordered_json bench_change(const RunConfig& config, Communicator& world,
                                    const ChangeBenchOptions& options);

std::string change_table(const nlohmann::ordered_json& result);

}  // namespace concertina
