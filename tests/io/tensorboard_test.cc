// TensorBoard's event files, read with an independent decoder: framing, checksums, values.
#include "io/tensorboard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <vector>

#include "core/error.h"
#include "tests/io/io_test.h"

namespace concertina {
namespace {

template <class T>
T little_endian(std::string_view bytes) {
  T value;
  EXPECT_GE(bytes.size(), sizeof value);
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

/// CRC-32C bit by bit, reflected polynomial 0x82F63B78; independent of the program's code.
std::uint32_t slow_crc(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int i = 0; i < 8; ++i) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78U : 0);
  }
  return ~crc;
}

/// record_writer.h: ((crc >> 15) | (crc << 17)) + 0xa282ead8.
std::uint32_t masked(std::string_view bytes) {
  const std::uint32_t crc = slow_crc(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

std::vector<std::string> records(const std::string& file) {
  std::vector<std::string> found;
  for (std::string_view rest = file; !rest.empty();) {
    EXPECT_GE(rest.size(), 16U);
    const auto length = little_endian<std::uint64_t>(rest);
    EXPECT_EQ(little_endian<std::uint32_t>(rest.substr(8)), masked(rest.substr(0, 8)));
    if (rest.size() < 16 || length > rest.size() - 16) {
      ADD_FAILURE() << "a record of " << length << " bytes";
      break;
    }
    const std::string_view data = rest.substr(12, length);
    EXPECT_EQ(little_endian<std::uint32_t>(rest.substr(12 + length)), masked(data));
    found.emplace_back(data);
    rest.remove_prefix(16 + length);
  }
  return found;
}

std::uint64_t varint(std::string_view& rest) {
  std::uint64_t value = 0;
  for (int shift = 0; !rest.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(rest.front());
    rest.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) break;
  }
  return value;
}

/// Returns field -> its bytes (a varint as 8 bytes), for messages with each field once.
std::map<std::uint64_t, std::string> fields(std::string_view message) {
  std::map<std::uint64_t, std::string> found;
  while (!message.empty()) {
    const std::uint64_t tag = varint(message);
    std::string value;
    std::size_t length = 0;
    if ((tag & 7) == 0) {
      const std::uint64_t number = varint(message);
      value.assign(reinterpret_cast<const char*>(&number), sizeof number);
    } else {
      length = (tag & 7) == 1 ? 8 : (tag & 7) == 5 ? 4 : varint(message);
      value = message.substr(0, length);
      message.remove_prefix(std::min(length, message.size()));
    }
    EXPECT_TRUE(found.emplace(tag >> 3, value).second);
  }
  return found;
}

TEST(Crc32c, KnownVectors) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(crc32c(""), 0U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);  // RFC 3720, B.4
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62A8AB43U);
  Random random(1);
  for (std::int64_t size = 0; size < 100; ++size) {
    std::string bytes(static_cast<std::size_t>(size), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    ASSERT_EQ(crc32c(bytes), slow_crc(bytes));
  }
}

TEST(TensorBoard, ScalarsComeBackWithTagStepAndValue) {
  const TemporaryDirectory root;
  struct Scalar {
    std::string tag;
    std::int64_t step;
    double value;
  };
  const std::vector<Scalar> scalars{{"loss", 1, 4.25},
                                    {"loss", 127, -1e-9},
                                    {"loss", 128, 0},
                                    {"speed/tokens", std::int64_t{1} << 40, 1e30},
                                    {std::string(300, 't'), 300, std::nan("")}};
  TensorBoardWriter writer(root.path() + "/new/tensorboard", 0);
  for (const Scalar& s : scalars) writer.scalar(s.tag, s.step, s.value);
  EXPECT_NE(writer.path().find("events.out.tfevents."), std::string::npos);

  const auto events = records(slurp(writer.path()));  // readable while the writer lives
  ASSERT_EQ(events.size(), scalars.size() + 1);
  EXPECT_EQ(fields(events[0]).at(3), "brain.Event:2");
  for (std::size_t i = 0; i < scalars.size(); ++i) {
    auto event = fields(events[i + 1]);
    EXPECT_GT(little_endian<double>(event.at(1)), 1.6e9);  // seconds since 1970
    EXPECT_EQ(little_endian<std::int64_t>(event.at(2)), scalars[i].step);
    auto value = fields(fields(event.at(5)).at(1));
    EXPECT_EQ(value.at(1), scalars[i].tag);
    const auto got = little_endian<float>(value.at(2)),
               wanted = static_cast<float>(scalars[i].value);
    EXPECT_TRUE(got == wanted || (std::isnan(got) && std::isnan(wanted)));
  }
}

TEST(TensorBoard, AResumeHidesLaterStepsInAFileOfItsOwn) {
  const TemporaryDirectory root;
  const TensorBoardWriter first(root.path(), 0), second(root.path(), 70);
  EXPECT_LT(first.path(), second.path());  // files are read in the order of names
  const auto events = records(slurp(second.path()));
  ASSERT_EQ(events.size(), 2U);
  auto start = fields(events[1]);
  EXPECT_EQ(little_endian<std::int64_t>(start.at(2)), 71);
  EXPECT_EQ(little_endian<std::uint64_t>(fields(start.at(7)).at(1)), 1U);  // SessionLog.START
}

TEST(TensorBoard, ADirectoryThatCannotBeMadeIsAnError) {
  const TemporaryDirectory root;
  spill(root.path() + "/file", "");
  EXPECT_THROW(TensorBoardWriter(root.path() + "/file/tensorboard", 0), Error);
}

}  // namespace
}  // namespace concertina
