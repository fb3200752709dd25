#include "experiments/run/text_identity.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/log.h"
#include "experiments/run/gather.h"
#include "io/sha256.h"
#include "io/text_memory.h"

namespace concertina {
namespace {

std::string name_of_this_host() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

/// One short text for all stamps; the same on two hosts that see the same files.
std::string stamp_digest(const Corpus& corpus) {
  Sha256 hash;
  for (const FileStamp& one : corpus.stamps())
    hash.update(fmt::format("{} {} {} {} {}\n", one.path, one.size, one.inode, one.modified_ns,
                            one.changed_ns));
  return hash.hex();
}

/// Whether no rank before this one sees its files: rank 0's, or the same ones on its host.
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

TextIdentity text_identity(Communicator& world, const Corpus& corpus, const std::string& directory,
                           bool remember, const std::function<void()>& progress) {
  const int rank = world.rank();
  nlohmann::json mine;
  together(world, [&] {
    mine = {
        {"host", name_of_this_host()}, {"stamps", stamp_digest(corpus)}, {"bytes", corpus.size()}};
  });
  const std::vector<nlohmann::json> ranks = gather_json(world, mine);
  const bool reads = first_to_see(ranks, rank);
  nlohmann::json digests;
  together(world, [&] {
    if (!reads) return;
    const std::string name =
        rank == 0 ? "text" : fmt::format("text.{}.{}", name_of_this_host(), rank);
    digests = {
        {"whole", remembered_sha256(corpus, directory + "/" + name + ".json", progress, remember)}};
    if (rank == 0) digests["sampled"] = corpus.fingerprint();
  });
  const std::vector<nlohmann::json> all = gather_json(world, digests);
  for (std::size_t r = 1; r < all.size(); ++r)
    if (ranks[r]["bytes"] != ranks[0]["bytes"] ||
        (all[r].is_object() && all[r]["whole"] != all[0]["whole"]))
      throw_input(
          fmt::format("rank {} on {} reads another text than rank 0 on {}", r,
                      ranks[r]["host"].get<std::string>(), ranks[0]["host"].get<std::string>()),
          "data.text", "the same files on every host");
  return {all[0]["sampled"], all[0]["whole"]};
}

void require_same_text(Communicator& world, const Corpus& corpus, const std::string& whole,
                       std::vector<FileStamp>& stamps) {
  together(world, [&] {
    const std::vector<FileStamp> now = corpus.stamps();
    if (now == stamps) return;
    if (corpus.whole_sha256() != whole)
      throw_failure("the text was changed while the run was reading it", now.front().path,
                    "the text as it was: the same command then goes on from the last checkpoint");
    stamps = now;
  });
}

}  // namespace concertina
