#include "experiments/prepare/prepare_tokens.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>

#include "core/error.h"
#include "core/log.h"
#include "experiments/machine/gather.h"
#include "experiments/record/progress.h"
#include "io/file.h"
#include "io/file_lock.h"
#include "io/prepare/chunk_file.h"

namespace concertina {
namespace {

using PrepareClock = std::chrono::steady_clock;
constexpr double kSecondsPerLine = 2;

double seconds_after(PrepareClock::time_point start) {
  return std::chrono::duration<double>(PrepareClock::now() - start).count();
}

/// The progress of all ranks, which rank 0 estimates from its own: chunks are dealt round-robin.
class PrepareProgress {
 public:
  PrepareProgress(const Communicator& world, std::uint64_t bytes)
      : ranks_(static_cast<std::uint64_t>(world.size())),
        leads_(world.rank() == 0),
        bytes_(bytes) {}

  /// Adds `done` bytes of text that this rank has finished; it encoded `encoded` of them itself.
  void add(std::uint64_t done, std::uint64_t encoded) {
    done_ = std::min(bytes_, done_ + ranks_ * done);
    encoded_ += ranks_ * encoded;
    if (leads_ && seconds_after(last_line_) >= kSecondsPerLine) say();
  }

 private:
  void say() {
    last_line_ = PrepareClock::now();
    const double rate = static_cast<double>(encoded_) / seconds_after(start_);
    const double left = static_cast<double>(bytes_ - done_) / rate;
    log::info("{:.1f}% of {:.1f} MB, {:.1f} MB/s, ETA {}",
              100 * static_cast<double>(done_) / static_cast<double>(bytes_),
              static_cast<double>(bytes_) / 1e6, rate / 1e6, format_duration(left));
  }

  const std::uint64_t ranks_;
  const bool leads_;
  const std::uint64_t bytes_;
  const PrepareClock::time_point start_ = PrepareClock::now();
  PrepareClock::time_point last_line_ = start_;
  std::uint64_t done_ = 0, encoded_ = 0;
};

/// The counts of one chunk, or of all preceding chunks together.
struct ChunkCounts {
  std::uint64_t tokens = 0, documents = 0;
};

/// The chunks that this rank has encoded.
struct RankShare {
  std::vector<ChunkCounts> counts;  // chunk rank, rank + size, ...
  std::vector<std::string> keys;    // of the same chunks
  std::uint64_t kept = 0, damaged = 0, other = 0;
};

/// An error here is local to this rank, which exits at once and aborts the others.
RankShare encode_share(Communicator& world, TextChunks& chunks, std::uint64_t text_bytes, int width,
                       const std::string& folder) {
  RankShare share;
  PrepareProgress progress(world, text_bytes);
  for (auto c = static_cast<std::uint64_t>(world.rank()); c < chunks.count();
       c += static_cast<std::uint64_t>(world.size())) {
    const TextChunk chunk = chunks.read(c);
    const std::string key = chunks.key(chunk), path = chunk_path(folder, c);
    FoundChunk found = load_chunk(path, key, width);
    const bool whole = found.state == ChunkState::whole;
    if (!whole) {
      found.chunk = chunks.encode(chunk);
      save_chunk(path, key, found.chunk);
    }
    share.kept += whole ? 1 : 0;
    share.damaged += found.state == ChunkState::damaged ? 1 : 0;
    share.other += found.state == ChunkState::other ? 1 : 0;
    share.counts.push_back({found.chunk.tokens, found.chunk.starts.size()});
    share.keys.push_back(key);
    std::uint64_t bytes = chunk.text.size();
    for (const TextChunk& file : chunk.more) bytes += file.text.size();
    progress.add(bytes, whole ? 0 : bytes);
  }
  return share;
}

/// Returns the counts before each chunk, followed by the total. Collective.
std::vector<ChunkCounts> counts_before(Communicator& world, const RankShare& share,
                                       std::uint64_t chunks) {
  nlohmann::json mine = nlohmann::json::array();
  for (const ChunkCounts& one : share.counts) mine.push_back({one.tokens, one.documents});
  const std::vector<nlohmann::json> ranks = gather_json(world, mine);
  std::vector<ChunkCounts> before(1);
  for (std::uint64_t c = 0; c < chunks; ++c) {
    const nlohmann::json& one = ranks[c % ranks.size()][c / ranks.size()];
    before.push_back({before.back().tokens + one[0].get<std::uint64_t>(),
                      before.back().documents + one[1].get<std::uint64_t>()});
  }
  return before;
}

void write_share(Communicator& world, const RankShare& share,
                 const std::vector<ChunkCounts>& before, int width, const std::string& folder,
                 TokenFileWriter& writer) {
  for (std::size_t i = 0; i < share.keys.size(); ++i) {
    const std::size_t c =
        i * static_cast<std::size_t>(world.size()) + static_cast<std::size_t>(world.rank());
    const std::string path = chunk_path(folder, c);
    FoundChunk found = load_chunk(path, share.keys[i], width);
    if (found.state != ChunkState::whole)
      throw_failure("a chunk of tokens was damaged while others were encoded", path,
                    "rerun the same command");
    writer.write_tokens(before[c].tokens, found.chunk.packed);
    for (std::uint64_t& start : found.chunk.starts) start += before[c].tokens;
    writer.write_bounds(before[c].documents, found.chunk.starts);
  }
  if (world.rank() == 0)
    writer.write_bounds(before.back().documents, std::span(&before.back().tokens, 1));
  writer.sync();
}

/// The hash of each block; the blocks are distributed round-robin among ranks. Collective.
std::vector<std::string> hash_blocks(Communicator& world, const TokenFileInfo& info,
                                     const TokenFileWriter& writer) {
  nlohmann::json mine = nlohmann::json::array();
  together(world, [&] {
    for (auto b = static_cast<std::uint64_t>(world.rank()); b < info.blocks();
         b += static_cast<std::uint64_t>(world.size()))
      mine.push_back(writer.block_sha256(b));
  });
  const std::vector<nlohmann::json> ranks = gather_json(world, mine);
  std::vector<std::string> blocks;
  for (std::uint64_t b = 0; b < info.blocks(); ++b)
    blocks.push_back(ranks[b % ranks.size()][b / ranks.size()].get<std::string>());
  return blocks;
}

/// Joins all chunks into one file and renames it to its final name. Collective.
TokenFileInfo join_chunks(Communicator& world, const RankShare& share, std::uint64_t chunks,
                          const Tokenizer& tokenizer, const std::string& folder,
                          const std::string& out) {
  const std::vector<ChunkCounts> before = counts_before(world, share, chunks);
  TokenFileInfo info;
  info.vocabulary = static_cast<std::uint64_t>(tokenizer.vocabulary());
  info.tokens = before.back().tokens;
  info.documents = before.back().documents;
  info.tokenizer = tokenizer.fingerprint();
  if (info.tokens == 0)
    throw_input("the tokenizer produced no tokens from the text", "data.text",
                "a text that is not empty");
  const std::string partial = folder + "/joined";
  std::optional<TokenFileWriter> writer;
  together(world, [&] {
    if (world.rank() == 0) writer.emplace(partial, info, true);
  });
  together(world, [&] {
    if (world.rank() != 0) writer.emplace(partial, info, false);
    write_share(world, share, before, info.width(), folder, *writer);
  });
  const std::vector<std::string> blocks = hash_blocks(world, info, *writer);
  together(world, [&] {
    if (world.rank() != 0) return;
    writer->finish(blocks);
    rename_path(partial, out);
    const std::string parent = std::filesystem::path(out).parent_path().string();
    sync_directory(parent.empty() ? "." : parent);
  });
  if (world.rank() == 0) info.sha256 = TokenFile(out).info().sha256;
  return info;
}

/// Locks `out`, so that only one process at a time prepares it.
FileLock open_parts(const std::string& out, const std::string& folder) {
  if (exists_at(out))
    throw_input("the file already exists", out, "another --out, or remove the file");
  make_directories(folder);
  return {folder + "/lock", "this token file", "wait until the other process has finished"};
}

void say_what_was_there(const std::vector<nlohmann::json>& ranks, std::uint64_t chunks,
                        PreparedText& result) {
  std::uint64_t damaged = 0, other = 0;
  for (const nlohmann::json& one : ranks) {
    result.kept += one[0].get<std::uint64_t>();
    damaged += one[1].get<std::uint64_t>();
    other += one[2].get<std::uint64_t>();
  }
  if (result.kept > 0) log::info("reusing {} of {} chunks", result.kept, chunks);
  if (damaged > 0) log::warn("{} of {} chunks were damaged and re-encoded", damaged, chunks);
  if (other > 0)
    log::warn("{} of {} chunks were for another text, tokenizer or options and were re-encoded",
              other, chunks);
}

}  // namespace

PreparedText prepare_tokens(Communicator& world, const Corpus& corpus, const Tokenizer& tokenizer,
                            const PrepareOptions& options, const std::string& out) {
  const auto start = PrepareClock::now();
  const std::string folder = out + ".parts";
  std::optional<FileLock> lock;
  together(world, [&] {
    if (world.rank() == 0) lock.emplace(open_parts(out, folder));
  });
  const std::vector<FileStamp> stamps = corpus.stamps();
  TextChunks chunks(corpus, tokenizer, options);
  PreparedText result;
  result.text_bytes = corpus.size();
  result.chunks = chunks.count();
  const RankShare share = encode_share(
      world, chunks, corpus.size(),
      TokenFileInfo::width_of(static_cast<std::uint64_t>(tokenizer.vocabulary())), folder);
  const auto found = gather_json(world, {share.kept, share.damaged, share.other});
  if (world.rank() == 0) say_what_was_there(found, chunks.count(), result);
  together(world, [&] {
    if (corpus.stamps() != stamps)
      throw_failure("the text changed while it was being read", corpus.files()[0],
                    "rerun the same command; unchanged chunks are kept");
  });
  result.info = join_chunks(world, share, chunks.count(), tokenizer, folder, out);
  together(world, [&] {
    if (world.rank() != 0) return;
    lock.reset();
    remove_tree(folder);
  });
  result.seconds = seconds_after(start);
  return result;
}

}  // namespace concertina
