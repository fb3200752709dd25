// `concertina doctor`: examines the environment of a launch and reports problems.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "core/backend.h"
#include "core/clock.h"
#include "core/cuda/device.h"
#include "core/text/number_text.h"
#include "experiments/commands/command.h"
#include "experiments/commands/program.h"
#include "experiments/commands/python_command.h"
#include "experiments/doctor/cluster_probe.h"
#include "experiments/launcher/child_process.h"
#include "experiments/machine/machine.h"
#include "experiments/machine/program.h"
#include "experiments/machine/threads.h"
#include "experiments/predict/report_parts.h"
#include "io/checkpoint/snapshot_file.h"

namespace concertina {
namespace {

using Json = nlohmann::ordered_json;

struct DoctorCommand : ConfigOptions {
  bool cluster = false;
};

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
constexpr double kLittleMemoryGiB = 1, kLittleDiskGiB = 1;

Json gpus() {
  Json list = Json::array();
  for (const cuda::Device& device : cuda::devices())
    list.push_back({{"index", device.index},
                    {"name", device.name},
                    {"compute_capability", fmt::format("{}.{}", device.major, device.minor)},
                    {"total_bytes", device.total_bytes},
                    {"free_bytes", device.free_bytes}});
  return {{"status", cuda::status()}, {"devices", list}};
}

Json ranks_json(const std::vector<RankCores>& cores, const std::vector<int>& threads) {
  Json list = Json::array();
  for (std::size_t rank = 0; rank < cores.size(); ++rank)
    list.push_back({{"rank", rank},
                    {"host", cores[rank].host},
                    {"cpus", to_ranges(cores[rank].cpus)},
                    {"cores", cores[rank].cores.size()},
                    {"threads", threads[rank]}});
  return list;
}

/// Returns warnings about snapshots of this user's inactive runs in this host's memory.
std::vector<std::string> snapshots_left() {
  std::vector<std::string> warnings;
  for (const auto& [prefix, set] : own_snapshot_sets()) {
    const bool there = snapshot_prefix(set.directory) == prefix;
    if (there && !marked(set.directory).empty()) continue;
    warnings.push_back(fmt::format(
        "{:.1f} MiB of memory holds snapshots of a run in '{}', which {}; `rm {}.*` frees it",
        static_cast<double>(set.bytes) / (1 << 20), set.directory,
        there ? "is not active (`concertina run` resumes from them)" : "no longer exists", prefix));
  }
  return warnings;
}

std::vector<std::string> warnings_of(const RunConfig& config, const Json& report,
                                     const std::vector<RankCores>& cores,
                                     const std::vector<int>& threads) {
  std::vector<std::string> warnings;
  for (ThreadWarning& one : thread_warnings(cores, threads))
    warnings.push_back(std::move(one.text));
  if (report["memory"]["available_bytes"].is_number() &&
      report["memory"]["available_bytes"].get<double>() < kLittleMemoryGiB * kGiB)
    warnings.push_back("less than 1 GiB of memory is free");
  if (report["disk"]["free_bytes"].is_number() &&
      report["disk"]["free_bytes"].get<double>() < kLittleDiskGiB * kGiB)
    warnings.push_back(fmt::format("less than 1 GiB of disk space is free in {}", config.run.dir));
  if (!report["disk"]["writable"].get<bool>())
    warnings.push_back(
        fmt::format("cannot create a run directory in {}: set run.dir to a writable directory",
                    config.run.dir));
  const bool narrow = config.numerics.compute == name_of(DType::bf16);
  if (narrow && make_cpu_backend(1)->emulates(DType::bf16))
    warnings.push_back(
        "numerics.compute = \"bf16\" is emulated on this processor: slower than fp32");
  if (config.run.device == "cuda" && report["gpu"]["devices"].empty())
    warnings.push_back("run.device = \"cuda\", but there is no GPU: " + cuda::status());
  for (std::string& left : snapshots_left()) warnings.push_back(std::move(left));
  if (!launch_request() && find_program("mpirun").empty())
    warnings.push_back("mpirun is not on PATH; launches need it unless --launcher is set");
  if (!launch_request() && std::getenv("HOME") == nullptr)
    warnings.push_back("HOME is not set, so mpirun may crash; set it to a writable directory");
  if (report["mpi"]["ranks"] == 1 && isatty(STDOUT_FILENO) == 1)
    warnings.push_back(
        "only one rank; prefix the command with `mpirun -n RANKS` to check a launch");
  return warnings;
}

std::string gib(const Json& bytes) {
  return bytes.is_number() ? fmt::format("{:.1f} GiB", bytes.get<double>() / kGiB) : "unknown";
}

void print_report(const Json& report) {
  const Json &mpi = report["mpi"], &memory = report["memory"], &disk = report["disk"];
  const Json& gpu = report["gpu"];
  fmt::print("version   {}\n", report["version"]);
  fmt::print("mpi       {}, {} ({}), CUDA-aware: {}, failed ranks reported (ULFM): {}\n",
             counted(mpi["ranks"], "rank"), mpi["library"], mpi["file"], mpi["cuda_aware"],
             mpi["ulfm"].get<bool>() ? "yes" : "no");
  for (const Json& rank : report["ranks"])
    fmt::print("  rank {:<3} {}: CPU {} ({}), {}\n", rank["rank"], rank["host"], rank["cpus"],
               counted(rank["cores"], "core"), counted(rank["threads"], "thread"));
  fmt::print("cpu       {} [{}]\n", report["cpu"]["model"],
             fmt::join(report["cpu"]["instruction_sets"].get<std::vector<std::string>>(), " "));
  fmt::print("memory    {} free of {}\n", gib(memory["available_bytes"]),
             gib(memory["total_bytes"]));
  fmt::print("disk      {} free for {}\n", gib(disk["free_bytes"]), disk["path"]);
  const bool none = gpu["devices"].empty();
  fmt::print("gpu       {}{}{}\n", none ? "none (" : "", gpu["status"], none ? ")" : "");
  for (const Json& one : gpu["devices"])
    fmt::print("  gpu {:<4} {}, compute capability {}, {} free of {}\n", one["index"], one["name"],
               one["compute_capability"], gib(one["free_bytes"]), gib(one["total_bytes"]));
  for (const auto& [name, version] : report["libraries"].items())
    fmt::print("{:<9} {}\n", name == "cpu_backend" ? "backend" : name, version);
  for (const Json& warning : report["warnings"]) fmt::print("warning: {}\n", warning);
  if (report["warnings"].empty()) fmt::print("no problems found\n");
}

/// Returns {"version": ..., "mpi": ..., "ranks": [...], "cpu": ..., "memory": ..., "disk": ...,
/// "gpu": ..., "libraries": ..., "warnings": [...]}. Collective.
Json diagnose(const RunConfig& config, MpiEnvironment& mpi) {
  const std::vector<RankCores> cores = gather_cores(mpi);
  std::vector<int> threads;
  for (int rank = 0; rank < mpi.world().size(); ++rank)
    threads.push_back(threads_of(config.run.threads, cores, rank));
  Json report;
  report["mpi"] = {{"ranks", mpi.world().size()},
                   {"library", mpi_library()},
                   {"file", mpi_library_file()},
                   {"cuda_aware", mpi_cuda_aware()},
                   {"ulfm", ulfm_available()}};
  report["ranks"] = ranks_json(cores, threads);
  report["cpu"] = {{"model", cpu_model()}, {"instruction_sets", cpu_instruction_sets()}};
  const auto bytes = memory();
  report["memory"] = {{"total_bytes", bytes ? Json(bytes->total) : Json()},
                      {"available_bytes", bytes ? Json(bytes->available) : Json()}};
  const auto disk = disk_free(config.run.dir);
  report["disk"] = {{"path", config.run.dir},
                    {"free_bytes", disk ? Json(*disk) : Json()},
                    {"writable", writable(config.run.dir)}};
  report["gpu"] = gpus();
  report["libraries"] = library_versions();
  report["version"] = program_identity();
  report["warnings"] = warnings_of(config, report, cores, threads);
  return report;
}

/// Collective; only rank 0 prints: the findings of concertina/commands/doctor.py or, if that cannot
/// run, the raw facts. Returns exit code 1 if a launch would fail.
int examine_cluster(const DoctorCommand& options, MpiEnvironment& mpi) {
  const double start = now();
  const RunConfig& config = options.config;
  nlohmann::ordered_json facts = measure_cluster(mpi, config.run.dir, config.run.threads);
  if (mpi.world().rank() != 0) return 0;
  facts["seconds"] = now() - start;
  std::map<std::string, std::string> passed;
  if (options.json) passed["json"] = "";
  try {
    const int code = call_python("doctor", passed, facts);
    if (code > 1) print_once(json_line(facts));
    return code;
  } catch (const Error&) {
    print_once(json_line(facts));
    throw;
  }
}

/// Collective; only rank 0 prints. Returns exit code 0 even with warnings.
int run_doctor(const DoctorCommand& options, MpiEnvironment& mpi) {
  if (options.cluster) return examine_cluster(options, mpi);
  const Json report = diagnose(options.config, mpi);
  if (mpi.world().rank() != 0) return 0;
  if (options.json)
    fmt::print("{}\n", report.dump());
  else
    print_report(report);
  return 0;
}

void declare_doctor(CLI::App& app, DoctorCommand& options) {
  add_json_option(app, options);
  app.add_flag(
      "--cluster", options.cluster,
      "check all ranks of a launch under mpirun or srun for anything that can slow it down or make "
      "it fail (links, clocks, cores, bindings, run.dir, locks, disks, limits, programs, "
      "environments, loads); takes 1 s plus 0.3 s per host, at most 20 s for 4 hosts; exit code 1 "
      "if a launch would fail, hang or lose state, 0 if there are only warnings");
}

}  // namespace

Command command_doctor() {
  return make_command<DoctorCommand>("check machine, launch, cluster and libraries", declare_doctor,
                                     run_doctor);
}

}  // namespace concertina
