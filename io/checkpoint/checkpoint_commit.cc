#include "io/checkpoint/checkpoint_commit.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string_view>

#include "core/error.h"
#include "core/log.h"
#include "core/text/number_text.h"
#include "io/checkpoint/checkpoint_view.h"
#include "io/file.h"
#include "io/sha256.h"

namespace concertina {
namespace {

namespace stdfs = std::filesystem;

constexpr std::string_view kPrefix = "step-", kPartial = ".partial", kRemoved = ".removed",
                           kReplaced = ".replaced";

/// Parses a name made by commit_name().
std::optional<std::int64_t> step_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const auto step = parse_number<std::int64_t>(name.substr(kPrefix.size()));
  return step && *step >= 0 && commit_name(*step) == name ? step : std::nullopt;
}

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (stdfs::directory_iterator it(directory, error), end; !error && it != end;
       it.increment(error))
    names.push_back(it->path().filename().string());
  if (error && error != std::errc::no_such_file_or_directory) {
    errno = error.value();
    throw_io("list", directory);
  }
  return names;
}

/// Returns `name` without `suffix` if that is the name of a commit, otherwise an empty string.
std::string without(std::string_view suffix, std::string_view name) {
  if (!name.ends_with(suffix)) return {};
  name.remove_suffix(suffix.size());
  return step_of(name) ? std::string(name) : std::string();
}

/// Removes what a killed process has left, which is never a commit. A leftover that cannot be
/// removed blocks only its own step, so it must not prevent saving.
void clear_leftovers(const std::string& checkpoints) {
  for (const std::string& name : names_in(checkpoints)) {
    for (const std::string_view suffix : {kPartial, kRemoved}) {
      if (without(suffix, name).empty()) continue;
      try {
        remove_tree(checkpoints + "/" + name);
      } catch (const Error& error) {
        log::warn("could not remove the remains of {}: {}", error.where(), error.message());
      }
    }
  }
}

void write_durably(const std::string& path, std::string_view content) {
  File file(path, File::Mode::create);
  file.write(content);
  file.sync();
  file.close();
}

void require_shards(const std::string& partial, const std::vector<ShardRecord>& shards) {
  for (const ShardRecord& shard : shards) {
    std::error_code error;
    const auto bytes = stdfs::file_size(partial + "/" + shard.file, error);
    if (error)
      throw_failure(fmt::format("{} not found: {}", shard.file, error.message()), partial,
                    "put checkpoint.dir on a file system shared by all nodes");
    if (bytes != shard.bytes)
      throw_failure(
          fmt::format("{} has {} bytes, but its rank wrote {}", shard.file, bytes, shard.bytes),
          partial, "check the file system: it lost part of a synced file");
  }
}

/// Renames and syncs, so that a power failure cannot undo it and the old target may be deleted.
void rename_durably(const std::string& from, const std::string& to) {
  rename_path(from, to);
  sync_directory(stdfs::path(to).parent_path().string());
}

/// Removes `path`, which is or was `commit`. First renames it to hide it: a partially removed
/// commit must never look like one.
void remove_commit(const std::string& path, const std::string& commit) {
  const std::string removed = commit + std::string(kRemoved);
  remove_tree(removed);
  rename_durably(path, removed);
  remove_tree(removed);
}

/// Moves `partial` to `final_path`, which may be an older commit of the same step. The old one is
/// deleted only after the new one is durable.
void move_into_place(const std::string& partial, const std::string& final_path) {
  if (!stdfs::exists(final_path)) return rename_durably(partial, final_path);
  if (::renameat2(AT_FDCWD, partial.c_str(), AT_FDCWD, final_path.c_str(), RENAME_EXCHANGE) == 0) {
    sync_directory(stdfs::path(final_path).parent_path().string());
    return remove_tree(partial);
  }
  if (errno != EINVAL && errno != ENOSYS) throw_io("rename", partial + " -> " + final_path);
  const std::string old = final_path + std::string(kReplaced);
  rename_durably(final_path, old);  // recover_commits() undoes this after a kill
  rename_durably(partial, final_path);
  remove_commit(old, final_path);
}

}  // namespace

void recover_commits(const std::string& checkpoints) {
  for (const std::string& name : names_in(checkpoints)) {
    const std::string commit = without(kReplaced, name);
    if (commit.empty()) continue;
    const std::string old = checkpoints + "/" + name, place = checkpoints + "/" + commit;
    if (stdfs::exists(place))
      remove_commit(old, place);
    else
      rename_durably(old, place);
  }
}

std::string commit_name(std::int64_t step) {
  return fmt::format("{}{:08}", kPrefix, step);
}

std::string partial_path(const std::string& checkpoints, std::int64_t step) {
  return fmt::format("{}/{}{}", checkpoints, commit_name(step), kPartial);
}

std::optional<std::int64_t> named_step(const std::string& path) {
  stdfs::path folder = stdfs::absolute(path).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  return step_of(folder.filename().string());
}

std::string begin_checkpoint(const std::string& checkpoints, std::int64_t step) {
  CONCERTINA_CHECK(step >= 0, "step {}", step);
  make_directories(checkpoints);
  recover_commits(checkpoints);
  clear_leftovers(checkpoints);
  const std::string partial = partial_path(checkpoints, step);
  make_directories(partial);
  return partial;
}

std::string write_manifest(const std::string& partial, std::vector<ShardRecord> shards,
                           nlohmann::json metadata) {
  CONCERTINA_CHECK(partial.ends_with(kPartial), "'{}' was not created by begin_checkpoint",
                   partial);
  const std::string final_path = partial.substr(0, partial.size() - kPartial.size());
  const auto step = named_step(final_path);
  CONCERTINA_CHECK(step.has_value(), "'{}' was not created by begin_checkpoint", partial);

  std::sort(shards.begin(), shards.end(), [](const ShardRecord& a, const ShardRecord& b) {
    return std::pair(a.file.size(), a.file) < std::pair(b.file.size(), b.file);
  });
  validate(shards, partial);
  require_shards(partial, shards);
  Manifest manifest{*step, std::move(metadata), std::move(shards), {}};
  manifest.view = write_view(partial, manifest.shards);
  const std::string text = to_json(manifest).dump() + '\n';
  write_durably(partial + "/" + kManifestName, text);
  write_durably(partial + "/" + kManifestHashName, manifest_hash_line(sha256_hex(text)));
  sync_directory(partial);
  move_into_place(partial, final_path);
  return final_path;
}

void abandon_checkpoint(const std::string& partial) {
  CONCERTINA_CHECK(partial.ends_with(kPartial), "'{}' was not created by begin_checkpoint",
                   partial);
  remove_tree(partial);
}

std::vector<Commit> list_commits(const std::string& checkpoints) {
  std::vector<Commit> commits;
  for (const std::string& name : names_in(checkpoints)) {
    const std::string path = checkpoints + "/" + name;
    if (const auto step = step_of(name); step && is_folder(path)) {
      if (is_own(path))
        commits.push_back({*step, path});
      else
        warn_once(path, "skipped: this checkpoint belongs to another user");
    }
  }
  std::sort(commits.begin(), commits.end(),
            [](const Commit& a, const Commit& b) { return a.step < b.step; });
  return commits;
}

std::optional<Commit> newest_commit(const std::string& checkpoints) {
  const std::vector<Commit> commits = list_commits(checkpoints);
  if (commits.empty()) return std::nullopt;
  return commits.back();
}

void prune(const std::string& checkpoints, std::size_t keep, std::int64_t kept) {
  CONCERTINA_CHECK(keep >= 1, "at least one checkpoint must be kept");
  const std::vector<Commit> commits = list_commits(checkpoints);
  for (std::size_t i = 0; i + keep < commits.size(); ++i)
    if (commits[i].step != kept) remove_commit(commits[i].path, commits[i].path);
}

}  // namespace concertina
