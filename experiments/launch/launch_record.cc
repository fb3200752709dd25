#include "experiments/launch/launch_record.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <filesystem>
#include <limits>
#include <map>

#include "core/clock.h"
#include "core/cpu/isa.h"
#include "core/error.h"
#include "core/log.h"
#include "core/version.h"
#include "experiments/config/schedule_file.h"
#include "experiments/machine/machine.h"
#include "experiments/machine/program.h"
#include "io/file.h"
#include "io/hdf5_version.h"
#include "io/sha256.h"
#include "parallel/comm/mpi_environment.h"

namespace concertina {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::uint64_t kAnyBytes = std::numeric_limits<std::uint64_t>::max();

std::string text_of(const OrderedJson& line) {
  return line.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

OrderedJson hosts_json(const Launch& launch) {
  std::map<std::string, std::vector<int>> ranks_of;
  for (std::size_t rank = 0; rank < launch.cores.size(); ++rank)
    ranks_of[launch.cores[rank].host].push_back(static_cast<int>(rank));
  OrderedJson hosts = OrderedJson::array();
  for (const auto& [host, ranks] : ranks_of) {
    const RankCores& first = launch.cores[static_cast<std::size_t>(ranks[0])];
    std::vector<int> threads;
    for (const int rank : ranks)
      threads.push_back(launch.thread_counts[static_cast<std::size_t>(rank)]);
    hosts.push_back({{"host", host},
                     {"processor", first.processor},
                     {"load", first.load},
                     {"ranks", to_ranges(ranks)},
                     {"threads", threads}});
  }
  return hosts;
}

}  // namespace

OrderedJson launch_facts(const Launch& launch, std::int64_t from) {
  const RunConfig& config = launch.config;
  OrderedJson facts = {{"start", utc_text()},
                       {"end", nullptr},
                       {"exit", nullptr},
                       {"version", program_version().number},
                       {"commit", program_version().commit},
                       {"program", program_build()},
                       {"command", command_line()},
                       {"ranks", launch.world.size()},
                       {"hosts", hosts_json(launch)},
                       {"device", config.run.device},
                       {"layout", short_form(launch.trainer.layout())},
                       {"schedule", config.parallel.schedule},
                       {"compute", config.numerics.compute},
                       {"seed", config.run.seed},
                       {"model_seed", model_seed(config)},
                       {"data_seed", data_seed(config)},
                       {"from", from},
                       {"to", nullptr}};
  facts["libraries"] = {{"mpi", mpi_library()}, {"hdf5", hdf5_version()}};
  if (!launch.data_fingerprint.empty()) facts["text"] = launch.data_fingerprint;
  if (!launch.isa.empty()) facts.update({{"isa", launch.isa}, {"onednn", cpu::onednn_version()}});
  return facts;
}

LaunchRecord::LaunchRecord(std::string path, OrderedJson facts)
    : path_(std::move(path)), line_(std::move(facts)) {
  try {
    File(path_, File::Mode::append).write(text_of(line_));
  } catch (const Error& error) {
    log::warn("this launch is not recorded: {}: {}", error.message(), error.where());
  }
}

void LaunchRecord::end(std::int64_t to, int exit_code) {
  const std::string before = text_of(line_);
  line_["end"] = utc_text();
  line_["exit"] = exit_code;
  line_["to"] = to;
  try {
    std::string all = read_file(path_, kAnyBytes);
    const std::size_t at = all.rfind(before);
    if (at == std::string::npos) return;  // somebody has edited it
    all.replace(at, before.size(), text_of(line_));
    atomic_replace(path_, all);
  } catch (const Error& error) {
    log::warn("the end of this launch is not recorded: {}: {}", error.message(), error.where());
  }
}

OrderedJson keep_schedule(const RunConfig& config, const std::string& directory) {
  const std::string& path = config.parallel.schedule;
  if (!is_schedule_file(path)) return path;
  const std::string content = read_file(path, kAnyBytes);
  const std::string hash = sha256_hex(content);
  const std::string copy = fmt::format("schedule-{}.csv", hash.substr(0, 12));
  if (!std::filesystem::exists(directory + "/" + copy))
    atomic_replace(directory + "/" + copy, content);
  return {{"file", path}, {"copy", copy}, {"sha256", hash}};
}

}  // namespace concertina
