// Small values from every rank to every rank or to the first, and failures shared by all.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>

#include <span>
#include <vector>

#include "parallel/comm/communicator.h"

namespace concertina {

/// The host of each rank, numbered in order of appearance. Collective.
std::vector<int> host_of_ranks(Communicator& world);

/// How many ranks a host has, if all have as many, one host after the other; else 0, as if all
/// were on one.
int ranks_per_host(const std::vector<int>& hosts);

/// `mine` of every rank, by rank. Collective; not for inside a step.
std::vector<nlohmann::json> gather_json(Communicator& world, const nlohmann::json& mine);

/// `mine` of every rank, by rank, on rank 0; nothing elsewhere. Any length on each. Collective.
std::vector<nlohmann::json> gather_json_on_first(Communicator& world, const nlohmann::json& mine);

/// Runs `work` on every rank; if it threw on any, all ranks throw the first such rank's Error, once
/// `cleanup` has run on each (what that throws is a warning). Collective.
void together(Communicator& world, const std::function<void()>& work,
              const std::function<void()>& cleanup = {});

/// Returns the value of `make` on rank 0, on every rank; if it threw there, all ranks throw.
/// Collective.
nlohmann::json from_first(Communicator& world, const std::function<nlohmann::json()>& make);

/// `mine` of every rank, one after the other; as many on each rank. Collective.
std::vector<double> gather_values(Communicator& world, std::span<const double> mine);

/// The largest value on any rank, figure by figure; as many on each rank. Collective.
std::vector<double> largest_values(Communicator& world, std::span<const double> mine);

/// `mine` of every rank, by rank, on rank 0; nothing elsewhere. Any number on each. Collective.
std::vector<std::vector<double>> gather_on_first(Communicator& world,
                                                 const std::vector<double>& mine);

}  // namespace concertina
