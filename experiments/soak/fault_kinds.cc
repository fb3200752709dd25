#include "experiments/soak/fault_kinds.h"

#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "core/clock.h"
#include "core/error.h"
#include "experiments/launcher/child_process.h"
#include "io/checkpoint_commit.h"
#include "io/file.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;

std::size_t below(std::size_t count, std::mt19937_64& random) {
  return std::uniform_int_distribution<std::size_t>(0, count - 1)(random);
}

bool signal_a_rank(const FaultTarget& target, int signal, std::mt19937_64& random) {
  if (target.ranks.empty()) return false;
  return ::kill(target.ranks[below(target.ranks.size(), random)], signal) == 0;
}

/// To all ranks on the host of a rank.
bool signal_a_host(const FaultTarget& target, int signal, std::mt19937_64& random) {
  if (target.ranks.empty()) return false;
  const std::string host = seen_host(target.ranks[below(target.ranks.size(), random)]);
  for (const pid_t rank : target.ranks)
    if (seen_host(rank) == host) ::kill(rank, signal);
  return true;
}

bool signal_launcher(const FaultTarget& target, int signal) {
  return target.launcher > 0 && ::kill(target.launcher, signal) == 0;
}

bool signal_all_ranks(const FaultTarget& target, int signal) {
  for (const pid_t rank : target.ranks) ::kill(rank, signal);
  return !target.ranks.empty();
}

/// Whether a checkpoint is being written: its directory is there, under another name.
bool saves(const std::string& checkpoints) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(checkpoints, error))
    if (entry.path().extension() == ".partial") return true;
  return false;
}

/// A save of a small model takes milliseconds.
bool kill_in_save(const FaultTarget& target, std::mt19937_64& random) {
  constexpr double kLongestLook = 1;  // seconds
  for (const double end = now() + kLongestLook; now() < end; ::usleep(200))
    if (saves(target.checkpoints)) return signal_a_rank(target, SIGKILL, random);
  return false;
}

/// One bit of the tensors in the newest of several checkpoints, whose launch then ends.
bool flip_a_bit(const FaultTarget& target, std::mt19937_64& random) {
  const std::vector<Commit> commits = list_commits(target.checkpoints);
  if (commits.size() < 2 || target.ranks.empty()) return false;
  std::vector<std::string> shards;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(commits.back().path, error))
    if (entry.path().filename().string().starts_with("shard-")) shards.push_back(entry.path());
  if (shards.empty()) return false;
  try {
    File file(shards[below(shards.size(), random)], File::Mode::open_or_create);
    const std::uint64_t at = below(file.size(), random);
    std::byte byte{};
    file.read_at(at, {&byte, 1});
    byte ^= std::byte{1} << below(8, random);
    file.write_at(at, {&byte, 1});
  } catch (const Error&) {  // it was removed meanwhile
    return false;
  }
  return signal_a_rank(target, SIGKILL, random);
}

}  // namespace

std::span<const Entry<FaultKind>> fault_kinds() {
  using Target = const FaultTarget&;
  using Random = std::mt19937_64&;
  using enum FaultMaker;
  static const Entry<FaultKind> kinds[] = {
      {"kill",
       {.help = "SIGKILL to a rank",
        .make = [](Target t, Random r) { return signal_a_rank(t, SIGKILL, r); }}},
      {"stop",
       {.help = "SIGSTOP to a rank",
        .make = [](Target t, Random r) { return signal_a_rank(t, SIGSTOP, r); }}},
      {"terminate",
       {.help = "SIGTERM to a rank",
        .make = [](Target t, Random r) { return signal_a_rank(t, SIGTERM, r); }}},
      {"hang-up",
       {.help = "SIGHUP to a rank, as of a lost terminal",
        .make = [](Target t, Random r) { return signal_a_rank(t, SIGHUP, r); }}},
      {"cpu-limit",
       {.help = "SIGXCPU to a rank, as of a batch system",
        .make = [](Target t, Random r) { return signal_a_rank(t, SIGXCPU, r); }}},
      {"node",
       {.help = "SIGKILL to all ranks of a host",
        .make = [](Target t, Random r) { return signal_a_host(t, SIGKILL, r); }}},
      {"freeze",
       {.help = "SIGSTOP to all ranks",
        .make = [](Target t, Random) { return signal_all_ranks(t, SIGSTOP); }}},
      {"launcher",
       {.help = "SIGKILL to the launcher",
        .make = [](Target t, Random) { return signal_launcher(t, SIGKILL); }}},
      {"stop-launcher",
       {.help = "SIGSTOP to the launcher",
        .make = [](Target t, Random) { return signal_launcher(t, SIGSTOP); },
        .harmless = true}},
      {"supervisor",
       {.help = "SIGKILL to `concertina run`, which is started again",
        .make = [](Target t,
                   Random) { return t.supervisor > 0 && ::kill(t.supervisor, SIGKILL) == 0; },
        .ends_supervisor = true}},
      {"save", {.help = "SIGKILL to a rank while a checkpoint is written", .make = kill_in_save}},
      {"bit-flip",
       {.help = "a bit of the newest checkpoint, and SIGKILL to a rank", .make = flip_a_bit}},
      {"partition",
       {.help = "a host is cut off for some seconds",
        .maker = hosts,
        .made_by = "cut",
        .mended_by = "mend"}},
      {"power-off",
       {.help = "a host is gone, and comes back",
        .maker = hosts,
        .made_by = "power-off",
        .mended_by = "mend"}},
      {"slow-link",
       {.help = "a host's link is slow for some seconds",
        .maker = hosts,
        .made_by = "slow",
        .mended_by = "fast",
        .harmless = true}},
      {"full-disk",
       {.help = "the disk of the checkpoints is full for some seconds",
        .maker = disk,
        .made_by = "full",
        .mended_by = "free",
        .harmless = true}},
      {"slow-disk",
       {.help = "the disk of the checkpoints answers nothing for some seconds",
        .maker = disk,
        .made_by = "slow",
        .mended_by = "fast",
        .harmless = true}},
  };
  return kinds;
}

}  // namespace concertina
