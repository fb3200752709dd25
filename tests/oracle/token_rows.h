// Formulas of patches, class tokens and selected rows: S samples, N patches, C width.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "tests/oracle/values.h"

namespace concertina::oracle {

inline void issue(const ImagePatches& op) {
  const Values image = values_of(op.image);
  Out patches(op.patches);
  const Index samples = count_of(op.image) / (op.channels * op.height * op.width);
  auto to = patches.begin();
  for (Index s = 0; s < samples; ++s)
    for (Index row = 0; row < op.height; row += op.patch)
      for (Index column = 0; column < op.width; column += op.patch)
        for (Index c = 0; c < op.channels; ++c)
          for (Index y = row; y < row + op.patch; ++y)
            for (Index x = column; x < column + op.patch; ++x)
              *to++ = image[((s * op.channels + c) * op.height + y) * op.width + x];
}

inline void issue(const JoinClass& op) {
  const Values x = values_of(op.x), cls = values_of(op.cls), wpe = values_of(op.wpe);
  Out y(op.y);
  const Index width = count_of(op.cls), places = count_of(op.wpe) / width;
  for (Index i = 0; i < count_of(op.y); ++i) {
    const Index s = i / width / places, n = i / width % places, c = i % width;
    y[i] = (n == 0 ? cls[c] : x[(s * (places - 1) + n - 1) * width + c]) + wpe[n * width + c];
  }
}

inline void issue(const JoinClassWeight& op) {
  const Values dy = values_of(op.dy);
  Out dcls(op.dcls), dwpe(op.dwpe);
  const Index width = count_of(op.dcls), places = count_of(op.dwpe) / width;
  for (Index i = 0; i < places * width; ++i) {
    double sum = 0;
    for (Index at = i; at < count_of(op.dy); at += places * width) sum += dy[at];
    put(dwpe[i], sum, op.accumulate);
    if (i < width) put(dcls[i], sum, op.accumulate);
  }
}

inline void issue(const SplitClass& op) {
  const Values grad = values_of(op.dy);
  Out out(op.dx);
  const Index all = count_of(op.dy) / op.samples, rest = count_of(op.dx) / op.samples;
  for (Index s = 0; s < op.samples; ++s)
    std::copy_n(grad.data() + s * all + (all - rest), rest, out.data() + s * rest);
}

inline void issue(const FindLastRows& op) {
  for (std::size_t s = 0; s < op.places.count; ++s)
    op.places.i32()[s] =
        static_cast<std::int32_t>(std::clamp<Index>(op.lengths.i32()[s], 1, op.t) - 1);
}

inline void issue(const FindTargets& op) {
  const Index all = count_of(op.targets) / op.samples, most = count_of(op.places) / op.samples;
  for (Index s = 0; s < op.samples; ++s) {
    std::vector<std::pair<Index, std::int32_t>> found;
    for (Index i = 0; i < all; ++i)
      if (const std::int32_t target = op.targets.i32()[s * all + i]; target >= 0)
        found.emplace_back(i, target);
    found.resize(most, {-1, -1});
    for (Index i = 0; i < most; ++i) {
      op.places.i32()[s * most + i] = static_cast<std::int32_t>(found[i].first);
      op.taken.i32()[s * most + i] = found[i].second;
    }
  }
}

/// Calls f(first element in [S T,C], first element in [S M,C], C) for each selected row.
template <class F>
void each_row_read(View places, Index samples, Index all, Index read, F&& f) {
  const Index each = places.empty() ? 1 : count_of(places) / samples;
  const Index width = read / (samples * each);
  for (Index row = 0; row < samples * each; ++row)
    if (const Index place = places.empty() ? 0 : places.i32()[row]; place >= 0)
      f(row / each * (all / samples) + place * width, row * width, width);
}

inline void issue(const TakeRows& op) {
  const Values in = values_of(op.x);
  Out out(op.y);
  std::fill(out.begin(), out.end(), 0.0);
  each_row_read(op.places, op.samples, count_of(op.x), count_of(op.y),
                [&](Index all, Index read, Index width) {
                  std::copy_n(in.data() + all, width, out.data() + read);
                });
}

inline void issue(const ScatterRows& op) {
  const Values grad = values_of(op.dy);
  Out out(op.dx);
  std::fill(out.begin(), out.end(), 0.0);
  each_row_read(op.places, op.samples, count_of(op.dx), count_of(op.dy),
                [&](Index all, Index read, Index width) {
                  std::copy_n(grad.data() + read, width, out.data() + all);
                });
}

}  // namespace concertina::oracle
