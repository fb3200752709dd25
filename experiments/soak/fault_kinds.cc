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

bool is_of_hosts(const FaultKind& kind) {
  return kind.mended_by != nullptr;
}

std::span<const Entry<FaultKind>> fault_kinds() {
  using Target = const FaultTarget&;
  using Random = std::mt19937_64&;
  static const Entry<FaultKind> kinds[] = {
      {"kill",
       {"SIGKILL to a rank", [](Target t, Random r) { return signal_a_rank(t, SIGKILL, r); }}},
      {"stop",
       {"SIGSTOP to a rank", [](Target t, Random r) { return signal_a_rank(t, SIGSTOP, r); }}},
      {"terminate",
       {"SIGTERM to a rank", [](Target t, Random r) { return signal_a_rank(t, SIGTERM, r); }}},
      {"node",
       {"SIGKILL to all ranks of a host",
        [](Target t, Random r) { return signal_a_host(t, SIGKILL, r); }}},
      {"freeze",
       {"SIGSTOP to all ranks", [](Target t, Random) { return signal_all_ranks(t, SIGSTOP); }}},
      {"launcher",
       {"SIGKILL to the launcher",
        [](Target t, Random) { return t.launcher > 0 && ::kill(t.launcher, SIGKILL) == 0; }}},
      {"supervisor",
       {"SIGKILL to `concertina run`, which is started again",
        [](Target t, Random) { return t.supervisor > 0 && ::kill(t.supervisor, SIGKILL) == 0; },
        true}},
      {"save",
       {"SIGKILL to a rank while a checkpoint is written",
        [](Target t, Random r) { return kill_in_save(t, r); }}},
      {"bit-flip",
       {"a bit of the newest checkpoint, and SIGKILL to a rank",
        [](Target t, Random r) { return flip_a_bit(t, r); }}},
      {"partition",
       {"a host is cut off for some seconds", [](Target t, Random r) { return t.host("cut", r); },
        false, "mend"}},
      {"power-off",
       {"a host is gone, and comes back", [](Target t, Random r) { return t.host("power-off", r); },
        false, "mend"}},
      {"slow-link",
       {"a host's link is slow for some seconds",
        [](Target t, Random r) { return t.host("slow", r); }, false, "fast", true}},
  };
  return kinds;
}

}  // namespace concertina
