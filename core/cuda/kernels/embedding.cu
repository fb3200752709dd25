// Token, type and position embedding. The gradient of the token table adds rows of one token in row
// order, without atomics: rows are sorted by token, each by counting those before it (R^2 compares
// of 4 bytes from shared memory: some 10 us at R = 8192, 64 times that at R = 65536), and a block
// adds each run of equal tokens.
//
// Legend: R rows, T tokens a sample, C width, V vocabulary; N elements an access.
#include "core/cuda/kernels/column_sums.cuh"
#include "core/cuda/kernels/kernels.h"
#include "core/cuda/kernels/launch.cuh"
#include "core/cuda/kernels/vector.cuh"

namespace concertina::cuda {
namespace {

constexpr unsigned kEmbedThreads = 256;

/// types with wtt, and wpe, may be null.
template <class T, int N>
__global__ void __launch_bounds__(kEmbedThreads)
    embed(const int* tokens, const float* wte, const int* types, const float* wtt, const float* wpe,
          T* x, Int rows, Int t, Int c) {
  const Int at = (static_cast<Int>(blockIdx.x) * kEmbedThreads + threadIdx.x) * N;
  if (at >= rows * c) return;
  const Int row = at / c, column = at % c;
  float token[N], type[N] = {}, position[N] = {};
  load(wte + tokens[row] * c + column, token);
  if (wtt != nullptr) load(wtt + types[row] * c + column, type);
  if (wpe != nullptr) load(wpe + row % t * c + column, position);
#pragma unroll
  for (int k = 0; k < N; ++k) token[k] = token[k] + type[k] + position[k];
  store(x + at, token);
}

/// order[R]: the rows by token, those of one token in row order; sorted[R]: their tokens.
__global__ void __launch_bounds__(kEmbedThreads)
    sort_rows(const int* tokens, int* order, int* sorted, int rows) {
  __shared__ int others[kEmbedThreads];
  const int row = static_cast<int>(blockIdx.x * kEmbedThreads + threadIdx.x);
  const int token = row < rows ? tokens[row] : 0;
  int before = 0;
  for (int first = 0; first < rows; first += static_cast<int>(kEmbedThreads)) {
    __syncthreads();
    const int mine = first + static_cast<int>(threadIdx.x);
    if (mine < rows) others[threadIdx.x] = tokens[mine];
    __syncthreads();
    const int count = min(static_cast<int>(kEmbedThreads), rows - first);
    for (int i = 0; i < count; ++i)
      before += others[i] < token || (others[i] == token && first + i < row) ? 1 : 0;
  }
  if (row >= rows) return;
  order[before] = row;
  sorted[before] = token;
}

/// The end of the run of equal values that starts at `first`.
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
__global__ void __launch_bounds__(kEmbedThreads)
    add_tokens(const int* order, const int* sorted, const T* dx, float* dwte, int rows, Int c) {
  const int first = static_cast<int>(blockIdx.x);
  if (first > 0 && sorted[first - 1] == sorted[first]) return;  // another block's run
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

/// Terms of K types from the first on.
template <class T, int K, int N>
struct TypeTerms {
  const T* dx;
  const int* types;
  int first;
  Int columns;
  __device__ void operator()(Int row, Int column, float (&v)[K][N]) const {
    float g[N];
    load(dx + row * columns + column, g);
    const int type = types[row] - first;
#pragma unroll
    for (int k = 0; k < K; ++k)
#pragma unroll
      for (int i = 0; i < N; ++i) v[k][i] = type == k ? g[i] : 0;
  }
};

/// Two types a pass: there are few.
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
    launch("embedding", {dim3(blocks_for(rows * c, kEmbedThreads * N)), kEmbedThreads}, stream,
           embed<T, N>, op.tokens.i32(), op.wte.f32(), op.types.i32(), op.wtt.f32(), op.wpe.f32(),
           op.x.as<T>(), rows, op.t, c);
  });
}

void run(cudaStream_t stream, const EmbedWeight& op, void* scratch) {
  const auto rows = static_cast<Int>(op.tokens.count), c = static_cast<Int>(op.dx.count) / rows;
  check_scratch(2 * op.tokens.bytes(), kScratchBytes, "embedding backward");
  auto *order = static_cast<int*>(scratch), *sorted = order + rows;
  launch("embedding backward: sort", {dim3(blocks_for(rows, kEmbedThreads)), kEmbedThreads}, stream,
         sort_rows, op.tokens.i32(), order, sorted, static_cast<int>(rows));
  if (!op.accumulate)
    check(cudaMemsetAsync(op.dwte.data, 0, op.dwte.bytes(), stream), "cudaMemsetAsync");
  with_access(op.dx.dtype, c, {op.dx, op.dwte, op.dwpe}, [&]<class T, int N>() {
    const unsigned threads = c / N > 128 ? kEmbedThreads : 64;
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

}  // namespace concertina::cuda
