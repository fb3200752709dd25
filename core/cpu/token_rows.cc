// Kernels on rows of tokens: image patches and the class token before them, and the rows of a
// sample that are read.
#include <algorithm>
#include <cstring>

#include "core/cpu/run_op.h"
#include "core/error.h"
#include "core/model/batch.h"

namespace concertina::cpu {
namespace {

/// Returns a pointer to byte `of` of a view.
std::byte* byte_of(View view, std::size_t of) {
  return static_cast<std::byte*>(view.data) + of;
}

/// The positions of the rows that are read from each sample.
struct RowsOfSamples {
  std::size_t samples, each;  // `each` is the number of rows per sample
  std::size_t row;            // bytes

  RowsOfSamples(View places, std::int64_t s, View rows)
      : samples(static_cast<std::size_t>(s)),
        each(places.empty() ? 1 : places.count / samples),
        row(rows.bytes() / (samples * each)),
        places_(places) {}
  /// Returns the position of row i, or a negative number if there is none.
  std::int32_t place(std::size_t i) const { return places_.empty() ? 0 : places_.i32()[i]; }

 private:
  View places_;
};

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

void run(const FindLastRows& op, const Context&) {
  for (std::size_t s = 0; s < op.places.count; ++s)
    op.places.i32()[s] = static_cast<std::int32_t>(
        std::clamp(std::int64_t{op.lengths.i32()[s]}, std::int64_t{1}, op.t) - 1);
}

void run(const FindTargets& op, const Context&) {
  const auto samples = static_cast<std::size_t>(op.samples);
  const std::size_t t = op.targets.count / samples, most = op.places.count / samples;
  for (std::size_t s = 0; s < samples; ++s) {
    const std::int32_t* targets = op.targets.i32() + s * t;
    std::size_t found = 0;
    for (std::size_t i = 0; i < t; ++i) {
      if (targets[i] < 0) continue;
      CONCERTINA_CHECK(found < most, "a sample has more targets than its field allows");
      op.places.i32()[s * most + found] = static_cast<std::int32_t>(i);
      op.taken.i32()[s * most + found++] = targets[i];
    }
    std::fill_n(op.places.i32() + s * most + found, most - found, kIgnored);
    std::fill_n(op.taken.i32() + s * most + found, most - found, kIgnored);
  }
}

void run(const TakeRows& op, const Context& context) {
  const RowsOfSamples rows(op.places, op.samples, op.y);
  const std::size_t from = op.x.bytes() / rows.samples;
  context.team.each(static_cast<std::int64_t>(rows.samples * rows.each), [&](std::int64_t i, int) {
    const auto row = static_cast<std::size_t>(i);
    const std::int32_t place = rows.place(row);
    std::byte* to = byte_of(op.y, row * rows.row);
    if (place < 0)
      std::memset(to, 0, rows.row);
    else
      std::memcpy(
          to, byte_of(op.x, row / rows.each * from + static_cast<std::size_t>(place) * rows.row),
          rows.row);
  });
}

void run(const ScatterRows& op, const Context& context) {
  const RowsOfSamples rows(op.places, op.samples, op.dy);
  const std::size_t to = op.dx.bytes() / rows.samples;
  context.team.each(op.samples, [&](std::int64_t sample, int) {
    const auto s = static_cast<std::size_t>(sample);
    std::memset(byte_of(op.dx, s * to), 0, to);
    for (std::size_t i = s * rows.each; i < (s + 1) * rows.each; ++i)
      if (const std::int32_t place = rows.place(i); place >= 0)
        std::memcpy(byte_of(op.dx, s * to + static_cast<std::size_t>(place) * rows.row),
                    byte_of(op.dy, i * rows.row), rows.row);
  });
}

}  // namespace concertina::cpu
