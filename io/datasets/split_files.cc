#include "io/datasets/split_files.h"

#include <zlib.h>

#include <algorithm>

#include "core/error.h"
#include "io/datasets/windows.h"
#include "io/file.h"

namespace concertina {
namespace {

constexpr std::uint64_t kLargestFile = std::uint64_t{4} << 30;

/// A stream of zlib's that reads gzip.
class Inflater {
 public:
  explicit Inflater(const std::string& path) : path_(path) {
    if (::inflateInit2(&stream_, 16 + MAX_WBITS) != Z_OK)
      throw_failure("zlib cannot start", path, "more memory");
  }
  ~Inflater() { ::inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  std::string inflate(std::string& packed) {
    std::string out;
    stream_.next_in = reinterpret_cast<Bytef*>(packed.data());
    std::uint64_t left = packed.size();
    while (true) {
      const std::size_t done = out.size();
      out.resize(done + (std::size_t{1} << 20));
      stream_.next_out = reinterpret_cast<Bytef*>(out.data() + done);
      stream_.avail_out = 1U << 20;
      stream_.avail_in = static_cast<uInt>(std::min<std::uint64_t>(left, 1U << 30));
      const uInt given = stream_.avail_in;
      const int code = ::inflate(&stream_, Z_NO_FLUSH);
      left -= given - stream_.avail_in;
      out.resize(out.size() - stream_.avail_out);
      if (out.size() > kLargestFile) refuse("it has more than 4 GiB", packed.size() - left);
      if (code == Z_STREAM_END) {
        if (left == 0) return out;
        if (::inflateReset(&stream_) != Z_OK) refuse("zlib cannot go on", packed.size() - left);
      } else if (code == Z_BUF_ERROR || (code == Z_OK && left == 0 && stream_.avail_out > 0)) {
        refuse("it is cut short", packed.size() - left);
      } else if (code != Z_OK) {
        refuse(stream_.msg != nullptr ? stream_.msg : "it is damaged", packed.size() - left);
      }
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& why, std::uint64_t at) const {
    throw_input(fmt::format("the gzip file cannot be read: {}", why),
                fmt::format("{}: byte {}", path_, at), "the file as it was published");
  }

  z_stream stream_{};
  const std::string& path_;
};

}  // namespace

SplitFiles split_files(const DataOptions& options) {
  SplitFiles files;
  const std::string key(find_format(options.format).files_key);
  files.of[0] = Corpus(options.files, key).files();
  if (!options.validation_files.empty())
    files.of[1] = Corpus(options.validation_files, "data.validation_files").files();
  if (!options.test_files.empty())
    files.of[2] = Corpus(options.test_files, "data.test_files").files();
  std::vector<std::string> all;
  for (const auto& some : files.of) all.insert(all.end(), some.begin(), some.end());
  files.corpus = std::make_shared<const Corpus>(all, key);
  return files;
}

std::uint64_t Splits::item(Split split, std::uint64_t sample) const {
  CONCERTINA_CHECK(sample < size(split), "sample {} of {}", sample, size(split));
  for (std::size_t s = 0; s < static_cast<std::size_t>(split); ++s) sample += sizes[s];
  return sample;
}

Splits split_items(const DataOptions& options, const std::array<std::uint64_t, 3>& counts) {
  Splits splits{counts};
  const bool shared = options.validation_files.empty();
  if (shared) {
    splits.sizes[1] = held_out(counts[0], options.validation);
    splits.sizes[0] -= splits.sizes[1];
  }
  if (splits.sizes[0] == 0)
    throw_input("no sample is left to train on", std::string(find_format(options.format).files_key),
                "files with samples in them, or a smaller data.validation");
  if ((!shared || options.validation > 0) && splits.sizes[1] == 0)
    throw_input(fmt::format("none of {} samples is held out", counts[0]),
                shared ? "data.validation" : "data.validation_files",
                shared ? "a larger share, or 0 for no validation" : "files with samples in them");
  return splits;
}

std::string split_summary(const Corpus& corpus, const Splits& splits, std::string_view what) {
  std::string lines;
  for (const std::string& file : corpus.files()) lines += fmt::format("file        {}\n", file);
  lines += fmt::format("training    {} {}\n", splits.sizes[0], what);
  lines += fmt::format("validation  {} {}\n", splits.sizes[1], what);
  if (splits.sizes[2] > 0) lines += fmt::format("test        {} {}\n", splits.sizes[2], what);
  return lines;
}

std::string read_maybe_gzip(const std::string& path) {
  std::string bytes = read_file(path, kLargestFile);
  if (!bytes.starts_with("\x1f\x8b")) return bytes;
  return Inflater(path).inflate(bytes);
}

}  // namespace concertina
