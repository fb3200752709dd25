// Patches, class tokens and the rows that are read, by their formulas: S samples, N patches, C
// width.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "tests/oracle/values.h"

namespace concertina::oracle {

template <class T>
void image_patches(Index samples, Index channels, Index height, Index width, Index patch,
                   const T* image, T* patches) {
  for (Index s = 0; s < samples; ++s)
    for (Index row = 0; row < height / patch; ++row)
      for (Index column = 0; column < width / patch; ++column)
        for (Index c = 0; c < channels; ++c)
          for (Index y = 0; y < patch; ++y)
            for (Index x = 0; x < patch; ++x)
              *patches++ = image[((s * channels + c) * height + row * patch + y) * width +
                                 column * patch + x];
}

/// places: of positions, N + 1.
template <class T>
void join_class(Index samples, Index places, Index width, const T* x, const T* cls, const T* wpe,
                T* y) {
  for (Index s = 0; s < samples; ++s)
    for (Index n = 0; n < places; ++n)
      for (Index c = 0; c < width; ++c)
        *y++ = static_cast<T>(
            static_cast<double>(n == 0 ? cls[c] : x[(s * (places - 1) + n - 1) * width + c]) +
            static_cast<double>(wpe[n * width + c]));
}

template <class T>
void join_class_weight(Index samples, Index places, Index width, const T* dy, T* dcls, T* dwpe,
                       bool accumulate) {
  for (Index n = 0; n < places; ++n)
    for (Index c = 0; c < width; ++c) {
      double sum = 0;
      for (Index s = 0; s < samples; ++s)
        sum += static_cast<double>(dy[(s * places + n) * width + c]);
      put(dwpe[n * width + c], sum, accumulate);
      if (n == 0) put(dcls[c], sum, accumulate);
    }
}

inline void issue(const ImagePatches& op) {
  Out out(op.patches);
  image_patches(rows_of(op.image) / (op.channels * op.height * op.width), op.channels, op.height,
                op.width, op.patch, op.image.f32(), out.data());
}

inline void issue(const JoinClass& op) {
  const std::vector<float> in = to_floats(op.x);
  Out out(op.y);
  join_class(rows_of(op.y) / rows_of(op.wpe), rows_of(op.wpe) / rows_of(op.cls), rows_of(op.cls),
             in.data(), op.cls.f32(), op.wpe.f32(), out.data());
}

inline void issue(const JoinClassWeight& op) {
  join_class_weight(rows_of(op.dy) / rows_of(op.dwpe), rows_of(op.dwpe) / rows_of(op.dcls),
                    rows_of(op.dcls), to_floats(op.dy).data(), op.dcls.f32(), op.dwpe.f32(),
                    op.accumulate);
}

inline void issue(const SplitClass& op) {
  const std::vector<float> grad = to_floats(op.dy);
  Out out(op.dx);
  const Index all = rows_of(op.dy) / op.samples, rest = rows_of(op.dx) / op.samples;
  for (Index s = 0; s < op.samples; ++s)
    std::copy_n(grad.data() + s * all + (all - rest), rest, out.data() + s * rest);
}

inline void issue(const FindLastRows& op) {
  for (std::size_t s = 0; s < op.places.count; ++s)
    op.places.i32()[s] =
        static_cast<std::int32_t>(std::clamp<Index>(op.lengths.i32()[s], 1, op.t) - 1);
}

inline void issue(const FindTargets& op) {
  const Index all = rows_of(op.targets) / op.samples, most = rows_of(op.places) / op.samples;
  for (Index s = 0; s < op.samples; ++s) {
    std::vector<std::pair<Index, std::int32_t>> found;
    for (Index i = 0; i < all; ++i)
      if (const std::int32_t target = op.targets.i32()[s * all + i]; target >= 0)
        found.emplace_back(i, target);
    found.resize(static_cast<std::size_t>(most), {-1, -1});
    for (Index i = 0; i < most; ++i) {
      const auto& [place, target] = found[static_cast<std::size_t>(i)];
      op.places.i32()[s * most + i] = static_cast<std::int32_t>(place);
      op.taken.i32()[s * most + i] = target;
    }
  }
}

/// Calls f(first element in [S T,C], first element in [S M,C], C) for each row that is read.
template <class F>
void each_row_read(View places, Index samples, Index all, Index read, F&& f) {
  const Index each = places.empty() ? 1 : rows_of(places) / samples;
  const Index width = read / (samples * each);
  for (Index row = 0; row < samples * each; ++row)
    if (const Index place = places.empty() ? 0 : places.i32()[row]; place >= 0)
      f(row / each * (all / samples) + place * width, row * width, width);
}

inline void issue(const TakeRows& op) {
  const std::vector<float> in = to_floats(op.x);
  Out out(op.y);
  std::fill_n(out.data(), op.y.count, 0.0F);
  each_row_read(op.places, op.samples, rows_of(op.x), rows_of(op.y),
                [&](Index all, Index read, Index width) {
                  std::copy_n(in.data() + all, width, out.data() + read);
                });
}

inline void issue(const SpreadRows& op) {
  const std::vector<float> grad = to_floats(op.dy);
  Out out(op.dx);
  std::fill_n(out.data(), op.dx.count, 0.0F);
  each_row_read(op.places, op.samples, rows_of(op.dx), rows_of(op.dy),
                [&](Index all, Index read, Index width) {
                  std::copy_n(grad.data() + read, width, out.data() + all);
                });
}

}  // namespace concertina::oracle
