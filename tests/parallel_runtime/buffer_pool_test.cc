#include "parallel/runtime/buffer_pool.h"
#include "core/arena.h"

#include <gtest/gtest.h>

namespace concertina {
namespace {

TEST(BufferPool, RefusesToGiveMoreThanItHas) {
  Arena arena(3 * kAlignment);
  BufferPool pool;
  pool.attach(arena, 3, 8, "test");
  void* first = pool.take();
  pool.take();
  EXPECT_EQ(pool.peak(), 2);
  pool.give(first);
  EXPECT_EQ(pool.take(), first);
  EXPECT_EQ(pool.peak(), 2);
  pool.take();
  EXPECT_TRUE(pool.empty());
  EXPECT_ANY_THROW(pool.take());
}

}  // namespace
}  // namespace concertina
