#include "io/tensorboard.h"

#include <fmt/format.h>
#include <unistd.h>

#include <bit>
#include <boost/crc.hpp>

#include <chrono>

#include "core/host_name.h"

namespace concertina {
namespace {

// Protobuf wire types.
constexpr std::uint64_t kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5;

template <class T>
void put_little_endian(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void put_tag(std::string& out, std::uint64_t field, std::uint64_t type) {
  put_varint(out, field << 3 | type);
}

void put_bytes(std::string& out, std::uint64_t field, std::string_view bytes) {
  put_tag(out, field, kLength);
  put_varint(out, bytes.size());
  out += bytes;
}

double wall_time() {
  using std::chrono::duration, std::chrono::system_clock;
  return duration<double>(system_clock::now().time_since_epoch()).count();
}

/// The fields that every Event has: wall_time = 1, step = 2.
std::string event_at(std::int64_t step) {
  std::string event;
  put_tag(event, 1, kFixed64);
  put_little_endian(event, std::bit_cast<std::uint64_t>(wall_time()));
  put_tag(event, 2, kVarint);
  put_varint(event, static_cast<std::uint64_t>(step));
  return event;
}

/// CRCs of data that contains CRCs are masked (record_writer.h).
std::uint32_t masked_crc(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xa282ead8U;
}

std::string file_name(const std::string& directory) {
  make_directories(directory);
  // TensorBoard reads files in name order; microseconds distinguish restarts in quick succession.
  return fmt::format("{}/events.out.tfevents.{:.6f}.{}.{}", directory, wall_time(), host_name(),
                     ::getpid());
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

TensorBoardWriter::TensorBoardWriter(const std::string& directory, std::int64_t last_step)
    : file_(file_name(directory), File::Mode::create) {
  std::string version = event_at(0);
  put_bytes(version, 3, "brain.Event:2");  // Event.file_version
  record(version);
  if (last_step <= 0) return;
  std::string start;  // SessionLog { status = START }
  put_tag(start, 1, kVarint);
  put_varint(start, 1);
  std::string event = event_at(last_step + 1);
  put_bytes(event, 7, start);  // Event.session_log
  record(event);
}

void TensorBoardWriter::scalar(std::string_view tag, std::int64_t step, double value) {
  std::string entry;  // Summary.Value { tag = 1, simple_value = 2 }
  put_bytes(entry, 1, tag);
  put_tag(entry, 2, kFixed32);
  put_little_endian(entry, std::bit_cast<std::uint32_t>(static_cast<float>(value)));
  std::string summary;
  put_bytes(summary, 1, entry);
  std::string event = event_at(step);
  put_bytes(event, 5, summary);  // Event.summary
  record(event);
}

void TensorBoardWriter::record(const std::string& event) {
  std::string bytes;
  put_little_endian(bytes, std::uint64_t{event.size()});
  put_little_endian(bytes, masked_crc(bytes));
  bytes += event;
  put_little_endian(bytes, masked_crc(event));
  file_.append_whole(bytes);
}

}  // namespace concertina
