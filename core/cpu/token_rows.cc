// Rows that are tokens: those of an image's patches, a class token before them, and one row of each
// sample.
#include <algorithm>
#include <cstring>

#include "core/cpu/pieces.h"
#include "core/cpu/run_op.h"

namespace concertina::cpu {
namespace {

/// Byte `of` of a view.
std::byte* byte_of(View view, std::size_t of) {
  return static_cast<std::byte*>(view.data) + of;
}

/// The row that TakeRows takes of sample `s`, which has `rows`.
std::size_t row_taken(View lengths, std::size_t s, std::size_t rows) {
  if (lengths.empty()) return 0;
  return static_cast<std::size_t>(
      std::clamp(std::int64_t{lengths.i32()[s]}, std::int64_t{1}, static_cast<std::int64_t>(rows)) -
      1);
}

}  // namespace

void run(const ImagePatches& op, const Context& context) {
  const ImageShape shape{op.channels, op.height, op.width, op.patch};
  const std::int64_t bands = op.height / op.patch, pixels = op.channels * op.height * op.width;
  typed(op.patches.dtype, context.loops, [&]<class T>(const ActivationLoops<T>& loops) {
    context.team.each(count_of(op.image) / pixels * bands, [&](std::int64_t piece, int) {
      const std::int64_t sample = piece / bands, band = piece % bands;
      loops.patches(op.image.f32() + sample * pixels + band * op.patch * op.width, shape,
                    op.patches.as<T>() + piece * (pixels / bands));
    });
  });
}

void run(const JoinClass& op, const Context& context) {
  const std::int64_t c = count_of(op.cls), all = count_of(op.wpe), rest = all - c;
  typed(op.y.dtype, context.loops, [&]<class T>(const ActivationLoops<T>& loops) {
    context.team.each(count_of(op.y) / all, [&](std::int64_t sample, int) {
      T* y = op.y.as<T>() + sample * all;
      loops.embed(op.cls.f32(), nullptr, op.wpe.f32(), y, c);
      loops.add(op.x.as<T>() + sample * rest, op.wpe.f32() + c, y + c, rest);
    });
  });
}

void run(const JoinClassWeight& op, const Context& context) {
  const std::int64_t c = count_of(op.dcls), all = count_of(op.dwpe);
  const std::int64_t samples = count_of(op.dy) / all;
  typed(op.dy.dtype, context.loops, [&]<class T>(const ActivationLoops<T>& loops) {
    const auto sums = [&](View to, std::int64_t i, std::int64_t end) {
      loops.column_sum(op.dy.as<T>() + i, samples, all, end - i, to.f32() + i, op.accumulate);
    };
    context.team.runs(all, kSampleColumns,
                      [&](std::int64_t i, std::int64_t end) { sums(op.dwpe, i, end); });
    sums(op.dcls, 0, c);
  });
}

void run(const SplitClass& op, const Context& context) {
  const auto samples = static_cast<std::size_t>(op.samples);
  const std::size_t from = op.dy.bytes() / samples, bytes = op.dx.bytes() / samples;
  context.team.each(op.samples, [&](std::int64_t sample, int) {
    const auto s = static_cast<std::size_t>(sample);
    std::memcpy(byte_of(op.dx, s * bytes), byte_of(op.dy, (s + 1) * from - bytes), bytes);
  });
}

void run(const TakeRows& op, const Context& context) {
  const auto samples = static_cast<std::size_t>(op.samples);
  const std::size_t from = op.x.bytes() / samples, bytes = op.y.bytes() / samples;
  context.team.each(op.samples, [&](std::int64_t sample, int) {
    const auto s = static_cast<std::size_t>(sample);
    const std::size_t row = row_taken(op.lengths, s, from / bytes);
    std::memcpy(byte_of(op.y, s * bytes), byte_of(op.x, s * from + row * bytes), bytes);
  });
}

void run(const SpreadRows& op, const Context& context) {
  const auto samples = static_cast<std::size_t>(op.samples);
  const std::size_t to = op.dx.bytes() / samples, bytes = op.dy.bytes() / samples;
  context.team.each(op.samples, [&](std::int64_t sample, int) {
    const auto s = static_cast<std::size_t>(sample);
    std::memset(byte_of(op.dx, s * to), 0, to);
    const std::size_t row = row_taken(op.lengths, s, to / bytes);
    std::memcpy(byte_of(op.dx, s * to + row * bytes), byte_of(op.dy, s * bytes), bytes);
  });
}

}  // namespace concertina::cpu
