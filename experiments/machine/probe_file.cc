#include "experiments/machine/probe_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <random>
#include <system_error>
#include <thread>

#include "core/clock.h"
#include "io/file.h"

namespace concertina {
namespace {

std::filesystem::path absolute_path(const std::string& path) {
  const std::filesystem::path absolute = std::filesystem::absolute(path).lexically_normal();
  return absolute.has_filename() ? absolute : absolute.parent_path();
}

}  // namespace

ProbeFile::ProbeFile(const std::string& path) {
  std::filesystem::path place = absolute_path(path);
  for (; !is_folder(place) && place.has_relative_path(); place = place.parent_path())
    below_ = below_.empty() ? place.filename() : place.filename() / below_;
  std::random_device random;  // a name that no host has cached as missing
  const std::string name = fmt::format("ranks-{:08x}{:08x}.tmp", random(), random());
  File((place / name).string(), File::Mode::create).close();
  file_ = place / name;
}

ProbeFile::~ProbeFile() {
  ::unlink(file_.c_str());
}

nlohmann::json ProbeFile::place() const {
  return {{"below", below_.string()}, {"name", file_.filename().string()}};
}

std::string find_probe(const nlohmann::json& probe, const std::string& path) {
  std::filesystem::path place = absolute_path(path), below = probe["below"].get<std::string>();
  for (; !below.empty(); below = below.parent_path(), place = place.parent_path())
    if (place.filename() != below.filename()) return {};
  const std::filesystem::path file = place / probe["name"].get<std::string>();
  for (const double start = now(); now() - start < kProbeSeconds;
       std::this_thread::sleep_for(std::chrono::milliseconds(50))) {
    std::error_code error;
    // Opening the directory makes a network file system check whether it has changed.
    const std::filesystem::directory_iterator opened(place, error);
    if (std::filesystem::exists(file, error)) return file.string();
  }
  return {};
}

}  // namespace concertina
