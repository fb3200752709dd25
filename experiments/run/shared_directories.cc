#include "experiments/run/shared_directories.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <random>
#include <thread>

#include "core/clock.h"
#include "core/error.h"
#include "core/host_name.h"
#include "experiments/machine/gather.h"
#include "experiments/machine/machine.h"
#include "io/file.h"

namespace concertina {
namespace {

namespace stdfs = std::filesystem;

constexpr double kLookSeconds = 3;

stdfs::path absolute_path(const std::string& path) {
  const stdfs::path absolute = stdfs::absolute(path).lexically_normal();
  return absolute.has_filename() ? absolute : absolute.parent_path();
}

/// An empty file in the deepest directory on the way to `path` that exists.
class Probe {
 public:
  explicit Probe(const std::string& path) {
    stdfs::path place = absolute_path(path);
    for (std::error_code error; !stdfs::is_directory(place, error) && place.has_relative_path();
         place = place.parent_path())
      below_ = below_.empty() ? place.filename() : place.filename() / below_;
    std::random_device random;  // a name that nobody has looked for
    const std::string name = fmt::format("ranks-{:08x}{:08x}.tmp", random(), random());
    File((place / name).string(), File::Mode::create).close();
    file_ = place / name;
  }
  ~Probe() { ::unlink(file_.c_str()); }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  /// For looks_for().
  nlohmann::json place() const {
    return {{"below", below_.string()}, {"name", file_.filename().string()}};
  }

 private:
  stdfs::path file_, below_;
};

/// Whether the file of a Probe is where it would be on the way to this rank's `path`.
bool sees(const nlohmann::json& probe, const std::string& path) {
  stdfs::path place = absolute_path(path), below = probe["below"].get<std::string>();
  for (; !below.empty(); below = below.parent_path(), place = place.parent_path())
    if (place.filename() != below.filename()) return false;
  for (const double start = now(); now() - start < kLookSeconds;
       std::this_thread::sleep_for(std::chrono::milliseconds(50))) {
    std::error_code error;
    // Opened first: then a network file system asks whether the directory has changed.
    const stdfs::directory_iterator opened(place, error);
    if (stdfs::exists(place / probe["name"].get<std::string>(), error)) return true;
  }
  return false;
}

/// "ranks 1-2 on b; rank 3 on c": of those that do not see it; empty: all do.
std::string blind_ranks(const std::vector<nlohmann::json>& all) {
  std::map<std::string, std::vector<int>> hosts;
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (!all[rank]["sees"].get<bool>())
      hosts[all[rank]["host"].get<std::string>()].push_back(static_cast<int>(rank));
  std::vector<std::string> texts;
  for (const auto& [host, ranks] : hosts)
    texts.push_back(fmt::format("{} on {}", ranks_text(ranks), host));
  return fmt::format("{}", fmt::join(texts, "; "));
}

/// `what` is the directory that `key` names.
void require_seen(Communicator& world, const char* what, const char* key, const std::string& path) {
  std::optional<Probe> made;
  const nlohmann::json probe = from_first(world, [&]() -> nlohmann::json {
    try {
      return made.emplace(path).place();
    } catch (const Error&) {  // who makes the directory says better what is wrong with it
      return nullptr;
    }
  });
  if (probe.is_null()) return;
  const std::vector<nlohmann::json> all =
      gather_json(world, {{"sees", sees(probe, path)}, {"host", host_name()}, {"path", path}});
  const std::string blind = blind_ranks(all);
  if (blind.empty()) return;
  std::string where = all[0]["path"].get<std::string>() + " (rank 0)";
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank]["path"] != all[0]["path"]) {
      where += fmt::format(", {} (rank {})", all[rank]["path"].get<std::string>(), rank);
      break;
    }
  throw_input(
      fmt::format("{} of rank 0 (on {}) is not seen by {}", what, all[0]["host"].get<std::string>(),
                  blind),
      where,
      fmt::format("a {} on a file system that all nodes share, and the same for all ranks", key));
}

}  // namespace

void require_seen_by_all(Communicator& world, const RunConfig& config) {
  if (world.size() == 1) return;
  require_seen(world, "the run directory", "run.dir", run_directory(config));
  require_seen(world, "the directory of checkpoints",
               config.checkpoint.dir.empty() ? "run.dir" : "checkpoint.dir",
               checkpoint_directory(config));
}

}  // namespace concertina
