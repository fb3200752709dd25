#include "experiments/record/known_costs.h"

#include <filesystem>

#include "core/error.h"
#include "experiments/config/config_toml.h"
#include "experiments/predict/measured_costs.h"
#include "experiments/run/planning.h"
#include "io/run_files.h"
#include "parallel/predict/plan_costs.h"

namespace concertina {

KnownCosts known_costs(const std::string& directory, const Layout& layout, const Plan& plan) {
  const std::string path = run_file(directory, kCostsFile);
  if (std::error_code error; !std::filesystem::exists(path, error))
    return {{}, "this run has no costs.json, which a launch writes as it ends"};
  try {
    const CostSource source = read_costs(path);
    RunConfig config;
    read_config(source.measured->config, path, config);
    const Job job = job_of(config);
    const Assignment assignment = make_assignment(job, layout, plan);
    return {
        plan_costs(job, assignment, unit_seconds(source, job, assignment, config), source.machine),
        {}};
  } catch (const Error& error) {
    return {{}, error.message()};
  }
}

}  // namespace concertina
