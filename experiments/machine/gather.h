// Gathers small values from all ranks, on every rank or on rank 0; makes ranks fail together.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>

#include <span>
#include <vector>

#include "parallel/comm/communicator.h"

namespace concertina {

/// The host number of each rank; hosts are numbered in order of appearance. Collective.
std::vector<int> host_of_ranks(Communicator& world);

/// The number of ranks per host if it is the same for all hosts and ranks of a host are
/// consecutive; otherwise 0, as if all ranks were on one host.
int ranks_per_host(const std::vector<int>& hosts);

/// The `mine` of every rank, in rank order. Collective; must not be called during a step.
std::vector<nlohmann::json> gather_json(Communicator& world, const nlohmann::json& mine);

/// On rank 0, every rank's `mine`, in rank order; elsewhere empty. Lengths may differ. Collective.
std::vector<nlohmann::json> gather_json_on_first(Communicator& world, const nlohmann::json& mine);

/// Runs `work` on every rank. If it throws on any rank, all ranks run `cleanup` and then throw the
/// Error of the first such rank; an error from `cleanup` is logged as a warning. Collective.
void together(Communicator& world, const std::function<void()>& work,
              const std::function<void()>& cleanup = {});

/// Returns the result of rank 0's `make()` on every rank; if it throws, all ranks do. Collective.
nlohmann::json from_first(Communicator& world, const std::function<nlohmann::json()>& make);

/// The `mine` of every rank, concatenated; its length must be the same on all ranks. Collective.
std::vector<double> gather_values(Communicator& world, std::span<const double> mine);

/// The elementwise maximum over all ranks; lengths must be equal. Collective.
std::vector<double> largest_values(Communicator& world, std::span<const double> mine);

/// On rank 0, every rank's `mine`, in rank order; elsewhere empty. Lengths may differ. Collective.
std::vector<std::vector<double>> gather_on_first(Communicator& world,
                                                 const std::vector<double>& mine);

}  // namespace concertina
