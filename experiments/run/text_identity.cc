#include "experiments/run/text_identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/host_name.h"
#include "experiments/machine/gather.h"
#include "io/sha256.h"
#include "io/text_memory.h"

namespace concertina {
namespace {

/// A short digest of all stamps; equal on two hosts that see the same files.
std::string stamp_digest(const Corpus& corpus) {
  Sha256 hash;
  for (const FileStamp& one : corpus.stamps())
    hash.update(fmt::format("{} {} {} {} {}\n", one.path, one.size, one.inode, one.modified_ns,
                            one.changed_ns));
  return hash.hex();
}

/// Gathers what each rank sees: `host`, `stamps`, `bytes`. Collective.
std::vector<nlohmann::json> files_of_ranks(Communicator& world, const Corpus& corpus) {
  nlohmann::json mine;
  together(world, [&] {
    mine = {{"host", host_name()}, {"stamps", stamp_digest(corpus)}, {"bytes", corpus.size()}};
  });
  return gather_json(world, mine);
}

/// `digests`: one per rank; `whole` is the digest of the bytes that the rank read, if any.
void require_same_bytes(const std::vector<nlohmann::json>& ranks,
                        const std::vector<nlohmann::json>& digests, const std::string& what,
                        const std::string& where) {
  for (std::size_t r = 1; r < ranks.size(); ++r)
    if (ranks[r]["bytes"] != ranks[0]["bytes"] ||
        (digests[r].is_object() && digests[r]["whole"] != digests[0]["whole"]))
      throw_input(fmt::format("rank {} on {} reads a different {} than rank 0 on {}", r,
                              ranks[r]["host"].get<std::string>(), what,
                              ranks[0]["host"].get<std::string>()),
                  where, "the same files on every host");
}

/// Whether neither rank 0 nor an earlier rank on the same host sees the same files.
bool first_to_see(const std::vector<nlohmann::json>& ranks, int rank) {
  const nlohmann::json& mine = ranks[static_cast<std::size_t>(rank)];
  for (int r = 0; r < rank; ++r) {
    const nlohmann::json& other = ranks[static_cast<std::size_t>(r)];
    if (other["stamps"] == mine["stamps"] && (r == 0 || other["host"] == mine["host"]))
      return false;
  }
  return true;
}

}  // namespace

TextIdentity text_identity(Communicator& world, const Dataset& dataset,
                           const std::string& directory, bool remember,
                           const std::function<void()>& progress) {
  const Corpus& corpus = dataset.corpus();
  const int rank = world.rank();
  const std::vector<nlohmann::json> ranks = files_of_ranks(world, corpus);
  const bool reads = first_to_see(ranks, rank);
  nlohmann::json digests;
  together(world, [&] {
    if (!reads) return;
    const std::string name = rank == 0 ? "text" : fmt::format("text.{}.{}", host_name(), rank);
    digests = {{"whole", remembered_sha256(corpus, directory + "/" + name + ".json", progress,
                                           remember, [&] { dataset.verify(progress); })}};
    if (rank == 0) digests["sampled"] = corpus.fingerprint();
  });
  const std::vector<nlohmann::json> all = gather_json(world, digests);
  require_same_bytes(ranks, all, "text", "data.text");
  return {all[0]["sampled"], all[0]["whole"]};
}

void require_same_files(Communicator& world, const Corpus& corpus, const std::string& what,
                        const std::string& where) {
  const std::vector<nlohmann::json> ranks = files_of_ranks(world, corpus);
  if (std::ranges::all_of(
          ranks, [&](const nlohmann::json& one) { return one["stamps"] == ranks[0]["stamps"]; }))
    return;
  nlohmann::json digests;
  together(world, [&] {
    if (first_to_see(ranks, world.rank())) digests = {{"whole", corpus.whole_sha256()}};
  });
  require_same_bytes(ranks, gather_json(world, digests), what, where);
}

void require_same_text(Communicator& world, const Corpus& corpus, const std::string& whole,
                       std::vector<FileStamp>& stamps) {
  together(world, [&] {
    const std::vector<FileStamp> now = corpus.stamps();
    if (now == stamps) return;
    if (corpus.whole_sha256() != whole)
      throw_failure(
          "the text changed while the run was reading it", now.front().path,
          "restore the text, then rerun the same command to resume from the last checkpoint");
    stamps = now;
  });
}

}  // namespace concertina
