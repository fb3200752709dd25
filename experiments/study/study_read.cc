#include "experiments/study/study_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "experiments/config/config_toml.h"
#include "experiments/study/sampler.h"
#include "experiments/study/trial_launch.h"
#include "experiments/study/trial_process.h"
#include "io/file.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostStudyFileBytes = 16 << 20;

/// Reads a base config file of the study and checks that it can be parsed.
BaseFile read_base(const TomlSource& source, const toml::node& node, std::size_t index,
                   const FindBase& find_base) {
  BaseFile base;
  base.path = find_base(index, source.text(node, "base", "the path of a config file, in quotes"));
  try {
    base.text = read_input_file(base.path, kMostStudyFileBytes,
                                "a config file, relative to the study's file");
  } catch (const Error& error) {
    throw Error(error.code(), error.message(), source.place(node, "base") + ": " + base.path,
                error.fix());
  }
  RunConfig scratch;
  read_config(base.text, base.path, scratch);
  return base;
}

void read_bases(const TomlSource& source, const toml::node& node, const FindBase& find_base,
                StudySpec& spec) {
  const auto add = [&](const toml::node& one) {
    spec.bases.push_back(read_base(source, one, spec.bases.size(), find_base));
  };
  if (const auto* files = node.as_array())
    for (const toml::node& file : *files) add(file);
  else
    add(node);
}

/// Reads [equivalence], the study's claim.
EquivalenceClaim read_claim(const TomlSource& source, const toml::node& node) {
  EquivalenceClaim claim;
  TomlTable table(source, node, "equivalence");
  std::string baseline;
  table.text("metric", claim.metric);
  table.number("margin", 0, kMostMargin, claim.margin);
  table.number("alpha", kLeastAlpha, kMostAlpha, claim.alpha);
  table.text("baseline", baseline);
  table.finish();
  if (claim.metric.empty() || !(claim.margin > 0))
    table.refuse("[equivalence] requires a metric and a margin",
                 "metric = \"validation_accuracy\" and margin = 0.005, in the metric's own unit");
  if (const std::size_t equals = baseline.find('='); equals == 0 || equals == std::string::npos)
    table.refuse(fmt::format("the baseline '{}' is not COLUMN=VALUE", baseline),
                 "baseline = \"arm=static\"");
  claim.baseline = {baseline};
  return claim;
}

/// Throws Error{bad_input} for conditions that no trial meets if all have the same number of steps:
/// asha needs a rung below that number, and [stop] on the held-out loss needs an evaluation.
void require_reached(const StudySpec& spec, const TomlSource& source) {
  const SearchMethod& method = method_of(spec.search);
  const std::vector<Trial> trials = method.proposes() ? std::vector<Trial>() : trials_of(spec);
  const auto varies = [&](const char* key) {
    return method.proposes() || std::ranges::any_of(trials, [&](const Trial& trial) {
             return std::ranges::find(trial.settings, key, &Settings::value_type::first) !=
                    trial.settings.end();
           });
  };
  const RunConfig config = config_of(spec, {});
  const std::int64_t steps = config.run.steps;
  if (method.rungs != nullptr && (varies("run.epochs") || config.run.epochs > 0))
    throw_input(fmt::format("the rungs of {} are in steps, but the length of a trial is in epochs",
                            spec.search.method),
                source.name(), "run.steps instead of run.epochs");
  if (method.rungs != nullptr && !varies("run.steps") &&
      method.rungs(spec.search.options, steps).size() < 2)
    throw_input(
        fmt::format("the lowest rung of {} is not below run.steps = {}, so no trials are compared",
                    spec.search.method, steps),
        source.name(), "min_steps = run.steps divided by a power of factor");
  if (spec.stop.metric == "validation_loss" && !varies("eval.every") && config.eval.every == 0)
    throw_input("[stop] uses the held-out loss, which is not evaluated before the end of a trial",
                source.name(), "eval.every = N in [set], or metric = \"loss\"");
  if (!varies("run.steps") && !varies("run.epochs") && config.run.epochs == 0 &&
      !spec.stop.metric.empty() && spec.stop.after >= steps)
    throw_input(
        fmt::format("[stop] applies after {} steps, but a trial has {}", spec.stop.after, steps),
        source.name(), "after below run.steps");
}

StudySpec read_spec(const TomlSource& source, const toml::table& root, const FindBase& find_base) {
  StudySpec spec;
  TomlTable table(source, root, "");
  using Node = const toml::node&;
  using Name = const std::string&;
  table.text("name", spec.name);
  table.take("base", [&](Node node, Name) { read_bases(source, node, find_base, spec); });
  table.take("search", [&](Node node, Name) { spec.search = read_search(source, node); });
  table.take("stop", [&](Node node, Name) { spec.stop = read_stop(source, node); });
  table.take("equivalence", [&](Node node, Name) { spec.claim = read_claim(source, node); });
  table.take("launch", [&](Node node, Name) { spec.launch = read_launch(source, node); });
  read_axes(source, root, table, spec);
  table.finish();
  if (spec.bases.empty() && spec.set.empty())
    throw_input("the study has no base config", source.name(),
                "base = \"config.toml\", relative to this file, or keys in [set]");
  require_reached(spec, source);
  return spec;
}

}  // namespace

StudySpec read_study_spec(const std::string& toml, const std::string& source,
                          const FindBase& find_base) {
  const TomlSource named(source);
  return read_spec(
      named,
      parse_toml(toml, named, "base = \"config.toml\" and axes in [grid]; see the user's guide"),
      find_base);
}

StudySpec read_study_file(const std::string& path, std::string& toml, const std::string& more) {
  toml = read_input_file(path, kMostStudyFileBytes, "an existing study file, such as STUDY.toml");
  toml += more;
  const fs::path directory = fs::path(path).parent_path();
  StudySpec spec = read_study_spec(toml, path, [&](std::size_t, const std::string& base) {
    return (directory / base).lexically_normal().string();
  });
  if (spec.name.empty()) spec.name = fs::path(path).stem().string();
  return spec;
}

}  // namespace concertina
