#include "core/arena.h"

#include <gtest/gtest.h>

#include <cstring>

#include <algorithm>

#include "tests/errors.h"

namespace concertina {
namespace {

TEST(ArenaTest, RenewedItGivesTheSameBlockZeroed) {
  Arena arena(1 << 20);
  void* const block = arena.take(1 << 20, "all");
  std::memset(block, 1, 1 << 20);
  EXPECT_FALSE(arena.renew(2 << 20));
  EXPECT_EQ(arena.used(), std::size_t{1} << 20);
  ASSERT_TRUE(arena.renew(1 << 19));
  EXPECT_EQ(arena.capacity(), std::size_t{1} << 19);
  EXPECT_EQ(arena.data(), block);
  const auto* any = static_cast<const char*>(arena.take_any(64, "any"));
  const auto* zeroed = static_cast<const char*>(arena.take(4096, "zeroed"));
  EXPECT_EQ(any[0], 1);
  for (int i = 0; i < 4096; ++i) ASSERT_EQ(zeroed[i], 0) << i;
  EXPECT_THROW(arena.take(1 << 19, "more"), Error);
  EXPECT_FALSE(Arena().renew(64));
}

TEST(ArenaTest, TakesAreAlignedZeroedAndApart) {
  Arena arena(10000);
  std::byte* end = nullptr;
  for (std::size_t bytes = 1; bytes < 200; bytes += 7) {
    auto* at = static_cast<std::byte*>(arena.take(bytes, "piece"));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(at) % kAlignment, 0U);
    EXPECT_GE(at, end);
    EXPECT_TRUE(std::all_of(at, at + bytes, [](std::byte b) { return b == std::byte{0}; }));
    std::fill(at, at + bytes, std::byte{255});
    end = at + bytes;
  }
}

TEST(ArenaTest, NeverGrows) {
  Arena arena(256);
  EXPECT_EQ(arena.capacity(), 256U);
  arena.take(64, DType::f32, "all of it");
  const Error error = thrown_by([&] { arena.take(1, "one byte more"); });
  expect_has(error.what(), "one byte more");
  EXPECT_EQ(arena.used(), 256U);
  EXPECT_THROW(arena.reserve(512), Error);
}

TEST(ArenaTest, MovesItsBlock) {
  Arena from(128);
  auto* at = static_cast<int*>(from.take(sizeof(int), "number"));
  *at = 7;
  Arena to = std::move(from);
  EXPECT_EQ(*at, 7);
  EXPECT_EQ(to.used(), 64U);
  from = Arena(64);
  EXPECT_EQ(from.capacity(), 64U);
}

TEST(ArenaTest, SaysHowMuchTheSystemRefused) {
  Arena arena;
  const Error error = thrown_by([&] { arena.reserve(std::size_t{1} << 60); });
  EXPECT_EQ(error.code(), Exit::failure);
  expect_has(error.message(), "1152921504606846976");
}

TEST(ViewTest, SlicesStayInside) {
  Arena arena(256);
  const View view = arena.take(10, DType::f32, "ten");
  EXPECT_EQ(view.slice(3, 7).f32(), view.f32() + 3);
  EXPECT_EQ(view.slice(3, 7).bytes(), 28U);
  EXPECT_EQ(view.slice(10, 0).count, 0U);
  EXPECT_THROW(view.slice(4, 7), Error);
  EXPECT_TRUE(View{}.empty());
}

TEST(ViewTest, ElementsAreOnlyReadAsWhatTheyAre) {
  Arena arena(256);
  const View view = arena.take(10, DType::bf16, "ten");
  EXPECT_EQ(view.bytes(), 20U);
  EXPECT_THROW(view.f32(), Error);
  EXPECT_THROW(view.slice(2, 3).i32(), Error);
  EXPECT_EQ(view.slice(2, 3).as<Bf16>(), view.as<Bf16>() + 2);
  EXPECT_EQ((View{nullptr, 0, DType::bf16}.f32()), nullptr) << "an empty view has no elements";
}

TEST(ViewTest, FloatsAreCopiedFromEitherType) {
  Arena arena(256);
  const View wide = arena.take(2, DType::f32, "wide"),
             narrow = arena.take(2, DType::bf16, "narrow");
  for (int i = 0; i < 2; ++i) {
    wide.f32()[i] = 1.5F + static_cast<float>(i);
    narrow.as<Bf16>()[i] = rounded<Bf16>(wide.f32()[i]);
  }
  EXPECT_EQ(to_floats(wide), (std::vector<float>{1.5F, 2.5F}));
  EXPECT_EQ(to_floats(narrow), to_floats(wide));
}

}  // namespace
}  // namespace concertina
