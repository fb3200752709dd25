// `concertina doctor`: what a launch has to work with, and what stands in its way.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "experiments/commands/command.h"

namespace concertina {

struct DoctorOptions : CommonOptions {};

/// Collective; only rank 0 prints. Exit code 0 also with warnings: they are advice.
int run_doctor(const DoctorOptions& options, MpiEnvironment& mpi);

/// Name and version of each library in use, as far as it says.
nlohmann::ordered_json library_versions();

/// {"version": ..., "mpi": ..., "ranks": [...], "cpu": ..., "memory": ..., "disk": ..., "gpu": ...,
///  "libraries": ..., "warnings": [...]}. Collective.
nlohmann::ordered_json diagnose(const RunConfig& config, MpiEnvironment& mpi);

Runner add_doctor(CLI::App& app);

}  // namespace concertina
