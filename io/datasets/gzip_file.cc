#include "io/datasets/gzip_file.h"

#include <zlib.h>

#include <algorithm>

#include "core/error.h"
#include "io/file.h"

namespace concertina {
namespace {

constexpr std::uint64_t kLargestFile = std::uint64_t{4} << 30;

/// A zlib stream that decompresses gzip.
class Inflater {
 public:
  explicit Inflater(const std::string& path) : path_(path) {
    if (::inflateInit2(&stream_, 16 + MAX_WBITS) != Z_OK)
      throw_failure("zlib could not be initialized", path, "free some memory");
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
      if (out.size() > kLargestFile) refuse("more than 4 GiB of data", packed.size() - left);
      if (code == Z_STREAM_END) {
        if (left == 0) return out;
        if (::inflateReset(&stream_) != Z_OK) refuse("zlib error", packed.size() - left);
      } else if (code == Z_BUF_ERROR || (code == Z_OK && left == 0 && stream_.avail_out > 0)) {
        refuse("it is truncated", packed.size() - left);
      } else if (code != Z_OK) {
        refuse(stream_.msg != nullptr ? stream_.msg : "it is damaged", packed.size() - left);
      }
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& why, std::uint64_t at) const {
    throw_input(fmt::format("cannot decompress the gzip file: {}", why),
                fmt::format("{}: byte {}", path_, at), "use the original file");
  }

  z_stream stream_{};
  const std::string& path_;
};

}  // namespace

std::string read_maybe_gzip(const std::string& path) {
  std::string bytes = read_file(path, kLargestFile);
  if (!bytes.starts_with("\x1f\x8b")) return bytes;
  return Inflater(path).inflate(bytes);
}

}  // namespace concertina
