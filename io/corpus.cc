#include "io/corpus.h"

#include <glob.h>
#include <sys/stat.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <utility>

#include "core/error.h"
#include "io/for_all.h"
#include "io/sha256.h"

namespace concertina {
namespace {

/// A process is limited to a few thousand open files.
constexpr std::size_t kMostHeld = 512;

/// Returns the files that match `pattern` in bytewise order, independent of the locale.
std::vector<std::string> match(const std::string& pattern, const std::string& where) {
  struct stat status {};
  // A file whose name contains '*' or '[' takes precedence over the glob.
  if (::stat(pattern.c_str(), &status) == 0) return {pattern};
  glob_t found{};
  const int code = ::glob(pattern.c_str(), GLOB_NOSORT | GLOB_TILDE, nullptr, &found);
  std::vector<std::string> names;
  if (code == 0) names.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  if (names.empty())
    throw_input(fmt::format("no file matches '{}'", pattern), where,
                "use a file name, or a quoted glob such as 'books/*.txt'");
  std::sort(names.begin(), names.end());
  return names;
}

void require_regular(const std::string& path, const std::string& where) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0)
    throw_input(fmt::format("cannot read '{}': {}", path, std::strerror(errno)), where,
                "use a readable file");
  if (S_ISDIR(status.st_mode))
    throw_input(fmt::format("'{}' is a directory", path), where,
                fmt::format("use a glob for its files: '{}/*'", path));
  if (!S_ISREG(status.st_mode))
    throw_input(fmt::format("'{}' is not a regular file", path), where,
                "use a file on disk (pipes and devices do not support random access)");
}

File open_text(const std::string& path, const std::string& where) {
  try {
    return File(path, File::Mode::read);
  } catch (const Error& error) {
    throw_input(fmt::format("cannot read '{}': {}", path, error.message()), where, error.fix());
  }
}

FileStamp stamp_of(const File& file) {
  const auto nanoseconds = [](const timespec& time) {
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  };
  struct stat status {};
  if (::fstat(file.descriptor(), &status) != 0) throw_io("fstat", file.path());
  return {std::filesystem::absolute(file.path()).lexically_normal().string(),
          static_cast<std::uint64_t>(status.st_size), status.st_ino, nanoseconds(status.st_mtim),
          nanoseconds(status.st_ctim)};
}

}  // namespace

Corpus::Part::Part(File file, std::uint64_t begin, bool held)
    : file_(std::move(file)), stamp_(stamp_of(file_)), begin_(begin) {
  if (!held) file_.close();
}

void Corpus::Part::read(std::uint64_t at, std::span<std::byte> out) const {
  if (is_held()) return file_.read_at(at, out);
  const File file(stamp_.path, File::Mode::read);
  if (stamp_of(file) != stamp_)
    throw_failure("the file was modified while in use", stamp_.path,
                  "do not modify data files during a run");
  file.read_at(at, out);
}

FileStamp Corpus::Part::stamp() const {
  if (is_held()) return stamp_of(file_);
  return stamp_of(File(stamp_.path, File::Mode::read));
}

void require_utf8(std::string_view start, const std::string& path) {
  start = start.substr(0, 4096);
  std::array<std::size_t, 4> zeros{};
  for (std::size_t i = 0; i < start.size(); ++i) zeros[i % 4] += start[i] == '\0' ? 1 : 0;
  const auto [few, many] = std::minmax({zeros[0] + zeros[2], zeros[1] + zeros[3]});
  const auto highest = std::max(std::min(zeros[0], zeros[1]), std::min(zeros[2], zeros[3]));
  const bool quarters = start.size() >= 16 && 5 * highest > start.size();
  const bool halves = start.size() >= 16 && 4 * many > start.size() && 20 * few < start.size();
  if (start.starts_with("\xff\xfe") || start.starts_with("\xfe\xff") || halves || quarters ||
      start.starts_with(std::string_view("\0\0\xfe\xff", 4)))
    throw_input(fmt::format("the file appears to be UTF-{}", quarters ? 32 : 16), path + ":1",
                "convert the file to UTF-8, for example with iconv");
}

void require_distinct(const std::vector<std::string>& paths, const std::string& where) {
  std::map<std::pair<dev_t, ino_t>, std::string> seen;
  for (const std::string& path : paths) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) continue;  // reading it will report the reason
    const auto [at, is_new] = seen.emplace(std::pair(status.st_dev, status.st_ino), path);
    if (!is_new)
      throw_input(at->second == path
                      ? fmt::format("'{}' is listed twice", path)
                      : fmt::format("'{}' and '{}' are the same file", at->second, path),
                  where, "list each file once; use data.weights to sample a source more often");
  }
}

Corpus::Corpus(const std::vector<std::string>& patterns, const std::string& where, bool joined) {
  for (const std::string& pattern : patterns)
    for (std::string& name : match(pattern, where)) names_.push_back(std::move(name));
  if (!joined) require_distinct(names_, where);
  for (const std::string& name : names_) {
    require_regular(name, where);
    File file = open_text(name, where);
    if (file.size() == 0) continue;
    parts_.emplace_back(std::move(file), size_, names_.size() <= kMostHeld);
    size_ = parts_.back().end();
  }
  if (size_ == 0)
    throw_input(names_.size() == 1 ? fmt::format("'{}' is empty", names_[0])
                                   : fmt::format("all {} files are empty", names_.size()),
                where, "use a non-empty file");
}

void Corpus::read(std::uint64_t begin, std::span<std::byte> out) const {
  CONCERTINA_CHECK(begin <= size_ && out.size() <= size_ - begin,
                   "bytes [{}, +{}) are not in a corpus of {} bytes", begin, out.size(), size_);
  // Find the first part that ends after `begin`.
  auto part = std::partition_point(parts_.begin(), parts_.end(),
                                   [&](const Part& p) { return p.end() <= begin; });
  for (; !out.empty(); ++part) {
    const std::size_t n = std::min<std::uint64_t>(out.size(), part->end() - begin);
    part->read(begin - part->begin(), out.first(n));
    out = out.subspan(n);
    begin += n;
  }
}

void Corpus::require_utf8(bool mark) const {
  for (const Part& part : parts_) {
    std::string start(std::min<std::uint64_t>(4096, part.end() - part.begin()), '\0');
    part.read(0, std::as_writable_bytes(std::span(start)));
    const std::string path = part.stamp().path;
    concertina::require_utf8(start, path);
    if (!mark && start.starts_with(kUtf8Mark))
      throw_input("the file begins with a byte order mark, which would become part of the text",
                  path, "remove its first 3 bytes: tail -c +4 FILE");
  }
}

std::vector<FileStamp> Corpus::stamps() const {
  std::vector<FileStamp> stamps;
  for (const Part& part : parts_) stamps.push_back(part.stamp());
  return stamps;
}

std::string Corpus::block_sha256(std::uint64_t begin, std::uint64_t bytes) const {
  constexpr std::uint64_t kChunk = 1 << 20;
  Sha256 hash;
  std::vector<std::byte> buffer(std::min(kChunk, bytes));
  for (const std::uint64_t end = begin + bytes; begin < end; begin += kChunk) {
    const auto chunk = std::span(buffer).first(std::min(kChunk, end - begin));
    read(begin, chunk);
    hash.update(chunk);
  }
  return hash.hex();
}

std::string Corpus::whole_sha256(const std::function<void()>& progress) const {
  constexpr std::uint64_t kBlock = 64 << 20;
  std::vector<std::string> digests((size_ + kBlock - 1) / kBlock);
  for_all(digests.size(), progress, [&](std::size_t i) {
    digests[i] = block_sha256(i * kBlock, std::min(kBlock, size_ - i * kBlock));
  });
  return digests.size() == 1 ? digests[0] : sha256_hex(fmt::format("{}", fmt::join(digests, "")));
}

std::string Corpus::fingerprint() const {
  constexpr std::uint64_t kSample = 64 << 10, kSamples = 4096;
  const std::uint64_t blocks = (size_ + kSample - 1) / kSample;
  const std::uint64_t samples = std::min(blocks, kSamples);
  Sha256 hash;
  hash.update(fmt::format("{} bytes\n", size_));
  std::vector<std::byte> buffer(kSample);
  for (std::uint64_t i = 0; i < samples; ++i) {
    // The samples include both ends; if samples == blocks, they are all blocks.
    const std::uint64_t block = samples == 1 ? 0 : i * (blocks - 1) / (samples - 1);
    const std::uint64_t begin = block * kSample;
    const std::span<std::byte> bytes(buffer.data(), std::min(kSample, size_ - begin));
    read(begin, bytes);
    hash.update(bytes);
  }
  return hash.hex();
}

}  // namespace concertina
