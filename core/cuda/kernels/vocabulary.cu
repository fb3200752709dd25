// Token tables and losses. Dimensions: R rows, T tokens per sample, C width, V vocabulary; N
// elements per access.
#include <cfloat>

#include "core/cuda/kernels/column_sums.cuh"
#include "core/cuda/kernels/elements.cuh"
#include "core/cuda/kernels/kernels.h"
#include "core/cuda/kernels/launch.cuh"
#include "core/cuda/kernels/reduce.cuh"
#include "core/cuda/kernels/vector.cuh"
#include "core/model/batch.h"

namespace concertina::cuda {
// Token, type and position embedding. The gradient of the token table adds the rows of a token in
// row order, without atomics. Rows are sorted by token, by counting the rows before each (R^2
// comparisons of 4 bytes from shared memory: about 10 us at R = 8192, 64 times that at R = 65536),
// and a block adds each run of equal tokens.
namespace {

/// wtt and wpe may be null, and so may types and starts, which are then 0.
template <class T, int N>
__global__ void __launch_bounds__(kElementThreads)
    embed(const int* tokens, const float* wte, const int* types, const float* wtt, const float* wpe,
          const int* starts, T* x, Int rows, Int t, Int c) {
  const Int at = first_element<N>();
  if (at >= rows * c) return;
  const Int row = at / c, column = at % c;
  float token[N], type[N] = {}, position[N] = {};
  load(wte + tokens[row] * c + column, token);
  if (wtt != nullptr) load(wtt + (types == nullptr ? 0 : types[row]) * c + column, type);
  if (wpe != nullptr)
    load(wpe + (row % t - (starts == nullptr ? 0 : starts[row])) * c + column, position);
#pragma unroll
  for (int k = 0; k < N; ++k) token[k] = token[k] + type[k] + position[k];
  store(x + at, token);
}

/// order[R]: the rows by token, in row order within a token; sorted[R]: their tokens.
__global__ void __launch_bounds__(kElementThreads)
    sort_rows(const int* tokens, int* order, int* sorted, int rows) {
  __shared__ int others[kElementThreads];
  const int row = static_cast<int>(blockIdx.x * kElementThreads + threadIdx.x);
  const int token = row < rows ? tokens[row] : 0;
  int before = 0;
  for (int first = 0; first < rows; first += static_cast<int>(kElementThreads)) {
    __syncthreads();
    const int mine = first + static_cast<int>(threadIdx.x);
    if (mine < rows) others[threadIdx.x] = tokens[mine];
    __syncthreads();
    const int count = min(static_cast<int>(kElementThreads), rows - first);
    for (int i = 0; i < count; ++i)
      before += others[i] < token || (others[i] == token && first + i < row) ? 1 : 0;
  }
  if (row >= rows) return;
  order[before] = row;
  sorted[before] = token;
}

/// Returns the end of the run of equal values that starts at `first`.
__device__ int end_of_run(const int* sorted, int first, int count) {
  const int value = sorted[first];
  int low = first + 1, high = count;
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (sorted[middle] == value)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

template <class T, int N>
__global__ void __launch_bounds__(kElementThreads)
    add_tokens(const int* order, const int* sorted, const T* dx, float* dwte, int rows, Int c) {
  const int first = static_cast<int>(blockIdx.x);
  if (first > 0 && sorted[first - 1] == sorted[first]) return;  // belongs to another block
  const Int column = (static_cast<Int>(blockIdx.y) * blockDim.x + threadIdx.x) * N;
  if (column >= c) return;
  const int end = end_of_run(sorted, first, rows);
  float* to = dwte + sorted[first] * c + column;
  float sum[N], g[N];
  load(to, sum);
#pragma unroll 4
  for (int i = first; i < end; ++i) {
    load(dx + order[i] * c + column, g);
#pragma unroll
    for (int k = 0; k < N; ++k) sum[k] += g[k];
  }
  store(to, sum);
}

/// Terms of K types from the first one on.
template <class T, int K, int N>
struct TypeTerms {
  const T* dx;
  const int* types;
  int first;
  Int columns;
  __device__ void operator()(Int row, Int column, float (&v)[K][N]) const {
    float g[N];
    load(dx + row * columns + column, g);
    const int type = (types == nullptr ? 0 : types[row]) - first;
#pragma unroll
    for (int k = 0; k < K; ++k)
#pragma unroll
      for (int i = 0; i < N; ++i) v[k][i] = type == k ? g[i] : 0;
  }
};

/// Two types per pass, because there are few.
template <class T, int N>
void add_types(cudaStream_t stream, const EmbedWeight& op, Int rows, Int c, void* scratch) {
  const auto types = static_cast<int>(static_cast<Int>(op.dwtt.count) / c);
  for (int first = 0; first < types; first += 2) {
    float* to = op.dwtt.f32() + first * c;
    const auto sum = [&]<int K>(ColumnResults<K> results) {
      sum_columns<K, N>("embedding backward: types", stream,
                        TypeTerms<T, K, N>{op.dx.as<T>(), op.types.i32(), first, c}, rows, c,
                        results, op.accumulate, scratch);
    };
    if (first + 1 < types)
      sum(ColumnResults<2>{{to, to + c}});
    else
      sum(ColumnResults<1>{{to}});
  }
}

}  // namespace

void run(cudaStream_t stream, const Embed& op, void* /*scratch*/) {
  const auto rows = static_cast<Int>(op.tokens.count), c = static_cast<Int>(op.x.count) / rows;
  with_access(op.x.dtype, c, {op.wte, op.wtt, op.wpe, op.x}, [&]<class T, int N>() {
    launch("embedding", elements_grid(rows * c, N), stream, embed<T, N>, op.tokens.i32(),
           op.wte.f32(), op.types.i32(), op.wtt.f32(), op.wpe.f32(), op.starts.i32(), op.x.as<T>(),
           rows, op.t, c);
  });
}

void run(cudaStream_t stream, const EmbedWeight& op, void* scratch) {
  const auto rows = static_cast<Int>(op.tokens.count), c = static_cast<Int>(op.dx.count) / rows;
  check_scratch(2 * op.tokens.bytes(), kScratchBytes, "embedding backward");
  auto *order = static_cast<int*>(scratch), *sorted = order + rows;
  launch("embedding backward: sort", elements_grid(rows, 1), stream, sort_rows, op.tokens.i32(),
         order, sorted, static_cast<int>(rows));
  if (!op.accumulate)
    check(cudaMemsetAsync(op.dwte.data, 0, op.dwte.bytes(), stream), "cudaMemsetAsync");
  with_access(op.dx.dtype, c, {op.dx, op.dwte, op.dwpe}, [&]<class T, int N>() {
    const unsigned threads = c / N > 128 ? kElementThreads : 64;
    launch("embedding backward: tokens",
           {dim3(static_cast<unsigned>(rows), blocks_for(c, threads * N)), threads}, stream,
           add_tokens<T, N>, order, sorted, op.dx.as<T>(), op.dwte.f32(), static_cast<int>(rows),
           c);
    if (const Int places = static_cast<Int>(op.dwpe.count); places > 0)
      launch("embedding backward: positions",
             {dim3(blocks_for(places, kSampleThreads * N)), kSampleThreads}, stream,
             sum_samples<T, N>, op.dx.as<T>(), op.dwpe.f32(), places, places, rows * c,
             op.accumulate);
    if (!op.dwtt.empty()) add_types<T, N>(stream, op, rows, c, scratch);
  });
}

// Softmax cross-entropy in place: one block per row; one pass that keeps the running maximum and
// the sum of e^(x - maximum) (Milakov & Gimelshein 2018), and one that writes the gradient. With an
// odd vocabulary, rows may be unaligned, so their ends are processed one element at a time.
namespace {

constexpr unsigned kLossThreads = 512, kSpanThreads = 128;

/// The sum of e^(x - top) over some x, where top is the largest of them.
struct RowSoftmax {
  float top = -FLT_MAX, sum = 0;

  __device__ void add(const RowSoftmax& other) {
    const float largest = fmaxf(top, other.top);
    sum = sum * expf(top - largest) + other.sum * expf(other.top - largest);
    top = largest;
  }
};

__device__ RowSoftmax block_softmax(RowSoftmax mine) {
  __shared__ float top[kWarp], sum[kWarp];
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    const float other = __shfl_xor_sync(kAllLanes, mine.top, distance);
    mine.add({other, __shfl_xor_sync(kAllLanes, mine.sum, distance)});
  }
  const unsigned warp = threadIdx.x / kWarp;
  if (threadIdx.x % kWarp == 0) top[warp] = mine.top, sum[warp] = mine.sum;
  __syncthreads();
  RowSoftmax all{top[0], sum[0]};
  for (unsigned w = 1; w < blockDim.x / kWarp; ++w) all.add({top[w], sum[w]});
  return all;
}

/// Calls f.template operator()<N>(i) for each element of a row, with the elements of one access
/// together. The assignment of elements to threads depends only on the row's address modulo 16.
template <class T, class F>
__device__ void each_access(const T* row, Int v, F&& f) {
  constexpr int kVector = 16 / sizeof(T);
  const auto misaligned = static_cast<Int>(reinterpret_cast<std::uintptr_t>(row) % 16 / sizeof(T));
  const Int head = min(v, misaligned == 0 ? Int{0} : kVector - misaligned);
  const Int vectors = (v - head) / kVector, tail = head + vectors * kVector;
  const Int thread = threadIdx.x;
  if (thread < head) f.template operator()<1>(thread);
  for (Int i = thread; i < vectors; i += blockDim.x)
    f.template operator()<kVector>(head + i * kVector);
  if (tail + thread < v) f.template operator()<1>(tail + thread);
}

template <class T>
__global__ void __launch_bounds__(kLossThreads)
    row_cross_entropy(T* logits, const int* targets, float scale, float smoothing, bool training,
                      float* row_loss, Int v) {
  T* row = logits + static_cast<Int>(blockIdx.x) * v;
  const int target = targets[blockIdx.x];
  if (target < 0) {  // the whole block
    if (training) each_access(row, v, [&]<int N>(Int i) { store<N>(row + i, {}); });
    if (threadIdx.x == 0) row_loss[blockIdx.x] = 0;
    return;
  }
  float right[1];
  load(row + target, right);
  RowSoftmax softmax;
  float gain[1] = {};  // target logit minus the others
  each_access(row, v, [&]<int N>(Int i) {
    float x[N];
    load(row + i, x);
    if (smoothing > 0)
#pragma unroll
      for (int k = 0; k < N; ++k) gain[0] += right[0] - x[k];
    float top = softmax.top;
#pragma unroll
    for (int k = 0; k < N; ++k) top = fmaxf(top, x[k]);
    float sum = softmax.sum * expf(softmax.top - top);
#pragma unroll
    for (int k = 0; k < N; ++k) sum += expf(x[k] - top);
    softmax = {top, sum};
  });
  softmax = block_softmax(softmax);  // all threads have read `right` after its barrier
  if (smoothing > 0) block_sum(gain);
  const float top = softmax.top, share = smoothing / static_cast<float>(v);
  if (threadIdx.x == 0) row_loss[blockIdx.x] = top + logf(softmax.sum) - right[0] + share * gain[0];
  if (!training) return;
  const float factor = scale / softmax.sum, even = scale * share;
  each_access(row, v, [&]<int N>(Int i) {
    float x[N];
    load(row + i, x);
#pragma unroll
    for (int k = 0; k < N; ++k)
      x[k] =
          factor * expf(x[k] - top) - (i + k == target ? scale - scale * smoothing + even : even);
    store(row + i, x);
  });
}

/// One block per sample: the starts, then the ends.
template <class T>
__global__ void __launch_bounds__(kSpanThreads)
    span_cross_entropy(T* logits, const int* starts, const int* ends, float scale, float smoothing,
                       bool training, float* row_loss, Int t) {
  float loss = 0;
  for (int side = 0; side < 2; ++side) {
    T* x = logits + static_cast<Int>(blockIdx.x) * 2 * t + side;
    const Int target = (side == 0 ? starts : ends)[blockIdx.x];
    if (target < 0 || target >= t) {  // the whole block
      for (Int i = threadIdx.x; training && i < t; i += kSpanThreads) store<1>(x + 2 * i, {});
      continue;
    }
    float right[1], v[1];
    load(x + 2 * target, right);
    RowSoftmax softmax;
    float gain[1] = {};
    for (Int i = threadIdx.x; i < t; i += kSpanThreads) {
      load(x + 2 * i, v);
      softmax.add({v[0], 1});
      gain[0] += right[0] - v[0];
    }
    softmax = block_softmax(softmax);  // all threads have read `right` after its barrier
    if (smoothing > 0) block_sum(gain);
    const float share = smoothing / static_cast<float>(t), even = scale * share;
    loss += softmax.top + logf(softmax.sum) - right[0] + share * gain[0];
    const float factor = scale / softmax.sum;
    for (Int i = threadIdx.x; training && i < t; i += kSpanThreads) {
      load(x + 2 * i, v);
      v[0] = factor * expf(v[0] - softmax.top) -
             (i == target ? scale - scale * smoothing + even : even);
      store(x + 2 * i, v);
    }
    __syncthreads();  // before the next call of block_softmax
  }
  if (threadIdx.x == 0) row_loss[blockIdx.x] = 0.5F * loss;
}

/// The log-softmax of values divided by `heat`: value / heat - log_sum.
struct LogSoftmax {
  float heat, log_sum;
  __device__ float at(float value) const { return value / heat - log_sum; }
};
/// The log-softmax of a row of v values, on the whole block.
template <class T>
__device__ LogSoftmax log_softmax(const T* row, float heat, Int v) {
  RowSoftmax softmax;
  float x[1];
  for (Int i = threadIdx.x; i < v; i += kSpanThreads) {
    load(row + i, x);
    softmax.add({x[0] / heat, 1});
  }
  __syncthreads();  // the previous call's results have been read
  softmax = block_softmax(softmax);
  return {heat, softmax.top + logf(softmax.sum)};
}

/// One block per row of v logits.
template <class T>
__global__ void __launch_bounds__(kSpanThreads)
    row_distillation(T* logits, const int* targets, const float* teacher, float scale,
                     float smoothing, float share, float heat, float* row_loss, Int v) {
  T* row = logits + static_cast<Int>(blockIdx.x) * v;
  const float* taught_row = teacher + static_cast<Int>(blockIdx.x) * v;
  const int target = targets[blockIdx.x];
  if (target < 0) {  // the whole block
    for (Int i = threadIdx.x; i < v; i += kSpanThreads) store<1>(row + i, {});
    if (threadIdx.x == 0) row_loss[blockIdx.x] = 0;
    return;
  }
  const LogSoftmax plain = log_softmax(row, 1.0F, v), soft = log_softmax(row, heat, v),
                   taught = log_softmax(taught_row, heat, v);
  double loss[1] = {};
  for (Int i = threadIdx.x; i < v; i += kSpanThreads) {
    float x[1];
    load(row + i, x);
    const float y = smoothing / static_cast<float>(v) + (i == target ? 1 - smoothing : 0);
    const float log_p = plain.at(x[0]), log_s = soft.at(x[0]), log_q = taught.at(taught_row[i]);
    const float q = expf(log_q);
    if (y > 0) loss[0] -= static_cast<double>((1 - share) * y * log_p);
    if (q > 0) loss[0] += static_cast<double>(share * heat * heat * q * (log_q - log_s));
    x[0] = scale * ((1 - share) * (expf(log_p) - y) + share * heat * (expf(log_s) - q));
    store(row + i, x);
  }
  block_sum(loss);
  if (threadIdx.x == 0) row_loss[blockIdx.x] = static_cast<float>(loss[0]);
}

/// One block per row of k logits.
template <class T>
__global__ void __launch_bounds__(kSpanThreads)
    row_score_loss(T* logits, const float* scores, bool binary, float scale, bool training,
                   float* row_loss, Int k) {
  const Int row = static_cast<Int>(blockIdx.x) * k;
  double loss[1] = {};
  for (Int i = threadIdx.x; i < k; i += kSpanThreads) {
    float x[1], gradient[1] = {};
    load(logits + row + i, x);
    const float y = scores[row + i];
    if (y != kNoScore && binary) {
      const float e = expf(-fabsf(x[0])), p = (x[0] > 0 ? 1.0F : e) / (1 + e);
      loss[0] += static_cast<double>(fmaxf(x[0], 0) - x[0] * y + log1pf(e));
      gradient[0] = scale * (p - y);
    } else if (y != kNoScore) {
      loss[0] += static_cast<double>(x[0] - y) * static_cast<double>(x[0] - y);
      gradient[0] = 2 * scale * (x[0] - y);
    }
    if (training) store(logits + row + i, gradient);
  }
  block_sum(loss);
  if (threadIdx.x == 0) row_loss[blockIdx.x] = static_cast<float>(loss[0]);
}

}  // namespace

void run(cudaStream_t stream, const ScoreLoss& op, void* /*scratch*/) {
  const Int k = static_cast<Int>(op.logits.count / op.row_loss.count);
  with_type(op.logits.dtype, [&]<class T>() {
    launch("score loss", {dim3(static_cast<unsigned>(op.row_loss.count)), kSpanThreads}, stream,
           row_score_loss<T>, op.logits.as<T>(), op.scores.f32(),
           op.kind == ScoreLoss::Kind::binary, op.loss_scale, op.training, op.row_loss.f32(), k);
  });
}

void run(cudaStream_t stream, const Distillation& op, void* /*scratch*/) {
  const Int v = static_cast<Int>(op.logits.count / op.targets.count);
  with_type(op.logits.dtype, [&]<class T>() {
    launch("distillation", {dim3(static_cast<unsigned>(op.targets.count)), kSpanThreads}, stream,
           row_distillation<T>, op.logits.as<T>(), op.targets.i32(), op.teacher.f32(),
           op.loss_scale, op.smoothing, op.share, op.temperature, op.row_loss.f32(), v);
  });
}

void run(cudaStream_t stream, const SpanCrossEntropy& op, void* /*scratch*/) {
  with_type(op.logits.dtype, [&]<class T>() {
    launch("span cross entropy", {dim3(static_cast<unsigned>(op.starts.count)), kSpanThreads},
           stream, span_cross_entropy<T>, op.logits.as<T>(), op.starts.i32(), op.ends.i32(),
           0.5F * op.loss_scale, op.smoothing, op.training, op.row_loss.f32(), op.t);
  });
}

void run(cudaStream_t stream, const CrossEntropy& op, void* /*scratch*/) {
  const Int v = static_cast<Int>(op.logits.count / op.targets.count);
  with_type(op.logits.dtype, [&]<class T>() {
    launch("cross entropy", {dim3(static_cast<unsigned>(op.targets.count)), kLossThreads}, stream,
           row_cross_entropy<T>, op.logits.as<T>(), op.targets.i32(), op.loss_scale, op.smoothing,
           op.training, op.row_loss.f32(), v);
  });
}

}  // namespace concertina::cuda
