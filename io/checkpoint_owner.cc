#include "io/checkpoint_owner.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/error.h"
#include "io/checkpoint_commit.h"
#include "io/file.h"

namespace concertina {
namespace {

namespace stdfs = std::filesystem;
using Json = nlohmann::ordered_json;

std::string random_id() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw_io("getrandom", "the id of a new run");
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

bool is_id(const std::string& text) {
  return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

/// Empty if `directory` has none.
std::string read_id(const std::string& directory) {
  const std::string path = directory + "/run.id";
  if (std::error_code error; !stdfs::is_regular_file(path, error)) return {};
  std::string text = read_file(path, 4096);
  text.erase(std::find(text.begin(), text.end(), '\n'), text.end());
  return is_id(text) ? text : std::string();
}

std::optional<RunIdentity> read_owner(const std::string& path) {
  if (std::error_code error; !stdfs::exists(path, error)) return std::nullopt;
  const Json json = Json::parse(read_file(path, 1 << 16), nullptr, /*allow_exceptions=*/false);
  const auto text = [&](const char* key) {
    return json.is_object() && json.contains(key) && json[key].is_string()
               ? json[key].get<std::string>()
               : std::string();
  };
  if (!is_id(text("id")))
    throw_input("this file does not say whose the checkpoints beside it are", path,
                "remove it if they are this run's");
  return RunIdentity{text("id"), text("name"), text("directory")};
}

/// The same run in two places: one was copied from the other.
bool is_copy(const RunIdentity& owner, const RunIdentity& run) {
  std::error_code error;
  return !stdfs::equivalent(owner.directory, run.directory, error) && !error &&
         read_id(owner.directory) == run.id;
}

}  // namespace

RunIdentity run_identity(const std::string& directory) {
  stdfs::path absolute = stdfs::absolute(directory).lexically_normal();
  if (!absolute.has_filename()) absolute = absolute.parent_path();
  std::string id = read_id(directory);
  if (id.empty()) {
    id = random_id();
    atomic_replace(directory + "/run.id", id + '\n');
  }
  return {id, absolute.filename().string(), absolute.string()};
}

void claim_checkpoints(const std::string& checkpoints, const RunIdentity& run) {
  const std::string path = checkpoints + "/owner.json";
  const std::optional<RunIdentity> owner = read_owner(path);
  if (owner && newest_commit(checkpoints)) {
    const std::string other = fmt::format("'{}' ({})", owner->name, owner->directory);
    const std::string fix = fmt::format(
        "a checkpoint.dir of its own for each run; if {{}}, remove {} and start again", path);
    if (owner->id != run.id)
      throw_input(fmt::format("these are checkpoints of another run, {}", other), checkpoints,
                  fmt::format(fmt::runtime(fix), "they are this run's"));
    if (is_copy(*owner, run))
      throw_input(fmt::format("these are checkpoints of {}, of which this run is a copy", other),
                  checkpoints, fmt::format(fmt::runtime(fix), "only this one goes on with them"));
  }
  if (owner && owner->id == run.id && owner->directory == run.directory) return;
  const Json json = {{"id", run.id}, {"name", run.name}, {"directory", run.directory}};
  atomic_replace(path, json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n');
}

}  // namespace concertina
