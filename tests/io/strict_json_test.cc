// JSON from other programs: what no reader may accept silently.
#include "io/strict_json.h"

#include <gtest/gtest.h>

#include "tests/io/io_test.h"

namespace concertina {
namespace {

std::string nested(std::size_t depth) {
  return "{\"a\": " + std::string(depth - 1, '[') + std::string(depth - 1, ']') + "}";
}

TEST(StrictJson, KeysThatAreThereTwiceAreRefused) {
  EXPECT_ERROR(parse_strict_object(R"({"a": {"b": 1, "b": 2}})", "f"), "duplicate key 'b'");
  EXPECT_EQ(parse_strict_object(R"({"a": {"b": 1}, "b": 2})", "f")["b"], 2);
}

/// Copying values nested 10^6 deep would overflow the stack.
TEST(StrictJson, DeepNestingIsRefused) {
  const nlohmann::json whole = parse_strict_object(nested(100), "f"), copy = whole;
  EXPECT_EQ(copy, whole);
  EXPECT_ERROR(parse_strict_object(nested(101), "f"), "nested to depth 101");
  EXPECT_ERROR(parse_strict_object(nested(1'000'000), "f"), "nested to depth 101");
  EXPECT_ERROR(parse_strict_object("{\"a\": " + std::string(1'000'000, '['), "f"),
               "nested to depth 101");
}

TEST(StrictJson, NumbersThatOverflowAreRefused) {
  EXPECT_ERROR(parse_strict_object(R"({"a": 1e400})", "f"), "a number is too large");
  EXPECT_EQ(parse_strict_object(R"({"a": 1e300})", "f")["a"], 1e300);
}

TEST(StrictJson, OtherThanObjectsIsRefused) {
  EXPECT_ERROR(parse_strict_object("[]", "f"), "expected a JSON object");
  EXPECT_ERROR(parse_strict_object("{\"a\": 1", "f"), "at byte 8");
  EXPECT_ERROR(parse_strict_object("", "f"), "invalid JSON");
}

}  // namespace
}  // namespace concertina
