#include "io/text_memory.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/log.h"
#include "io/file.h"
#include "io/sha256.h"

namespace concertina {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const std::vector<FileStamp>& stamps) {
  Json list = Json::array();
  for (const FileStamp& one : stamps)
    list.push_back({{"path", one.path},
                    {"size", one.size},
                    {"inode", one.inode},
                    {"modified_ns", one.modified_ns},
                    {"changed_ns", one.changed_ns}});
  return list;
}

std::string dump(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + '\n';
}

/// Returns the cached digest if `memory` describes files with these stamps, else an empty string.
std::string recall(const std::string& memory, const Json& stamps) {
  if (!is_file(memory)) return {};
  try {
    // Compared as text, which handles the encoding of paths and limits the size to read.
    std::string digest(64, '0'), text = dump({{"sha256", digest}, {"files", stamps}});
    const std::string stored = read_file(memory, text.size(), FilePlace::logged);
    const std::size_t at = text.find(digest);
    if (stored.size() != text.size()) return {};
    digest = stored.substr(at, digest.size());
    return is_sha256_hex(digest) && stored == text.replace(at, digest.size(), digest)
               ? digest
               : std::string();
  } catch (const Error& error) {
    log::debug("{}", error.what());
    return {};
  }
}

bool settled(const std::vector<FileStamp>& stamps) {
  using std::chrono::duration_cast, std::chrono::nanoseconds, std::chrono::system_clock;
  const std::int64_t now =
      duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
  return std::all_of(stamps.begin(), stamps.end(), [&](const FileStamp& one) {
    return std::max(one.modified_ns, one.changed_ns) < now - 2'000'000'000;
  });
}

}  // namespace

std::string remembered_sha256(const Corpus& corpus, const std::string& memory,
                              const std::function<void()>& progress, bool remember,
                              const std::function<void()>& check) {
  const std::vector<FileStamp> before = corpus.stamps();
  const Json stamps = to_json(before);
  if (std::string digest = recall(memory, stamps); !digest.empty()) return digest;
  const bool lasting = settled(before);
  std::string digest = corpus.whole_sha256(progress);
  if (check) check();
  if (corpus.stamps() != before)
    throw_failure("the text changed while it was being read", before.front().path,
                  "start again when no process is writing to the data.text files");
  try {
    if (lasting && remember) atomic_replace(memory, dump({{"sha256", digest}, {"files", stamps}}));
  } catch (const Error& error) {
    log::debug("{}", error.what());
  }
  return digest;
}

}  // namespace concertina
