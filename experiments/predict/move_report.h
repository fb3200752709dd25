// `concertina plan move --from A --to B`: what a change of the layout would move, without a launch.
// Invariant: one process, any world size; the report is one value, and its text says nothing else.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "experiments/predict/plan_report.h"

namespace concertina {

/// Keys: from and to (layout, schedule, spare), world, moved_bytes (between ranks, in all),
/// state_bytes (of the largest rank, before and after), extra_bytes (the most of any rank besides
/// the larger of its states), rounds, pairs (the busiest ones: from, to, bytes), busiest_rank
/// (rank, out_bytes, in_bytes), and where `options` name a machine: seconds (links, copies, blocks,
/// rebuild, total), each of the slowest rank. `from` and `to`: keys as with_layout_keys() takes
/// them, on top of `config`; empty: the config's own layout.
nlohmann::ordered_json move_report(const RunConfig& config, const PlanOptions& options,
                                   const std::string& from, const std::string& to);

std::string move_text(const nlohmann::ordered_json& report);

}  // namespace concertina
