// bf16 attention. A tile of queries is multiplied by the keys that any of its queries sees, which
// skips whole tiles above a causal mask. Probabilities are not stored; the backward pass recomputes
// them from log-sum-exp (FlashAttention, Dao et al. 2022).
//
// Dimensions: T tokens, D head dimension; Q queries of a tile, K keys of a block.
#include "core/cpu/operators.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <vector>

#include "core/cpu/product.h"
#include "core/ops.h"

namespace concertina::cpu {
namespace {

// Part of the numerics: changing these may change bits.
constexpr Int kQueries = 64;
constexpr Int kKeys = 512;  // per product: limits the number of shapes for any T

/// Returns the row stride of scores: whole vectors, but never a power of two, because rows would
/// evict each other from L1.
Int score_stride(Int tokens) {
  return (tokens + 15) / 16 * 16 + 16;
}

/// The products of Q queries with a block of K keys.
struct BlockProducts {
  Product scores;               // s[Q,K] = q[Q,D] k[K,D]^T
  Product grads;                // dp[Q,K] = dy[Q,D] v[K,D]^T
  std::array<Product, 2> rows;  // [Q,D] = p[Q,K] v[K,D], or ds k; rows[1] adds to [Q,D]
  Product values;               // dv[K,D] += p[Q,K]^T dy[Q,D]
  Product keys;                 // dk[K,D] += ds[Q,K]^T q[Q,D]

  BlockProducts(const AttentionShape& s, Int q, Int k, Context& context)
      : scores(score(s, q, k, s.qkv_width()), context),
        grads(score(s, q, k, s.width()), context),
        rows{Product(row(s, q, k, false), context), Product(row(s, q, k, true), context)},
        values(column(s, q, k, s.width()), context),
        keys(column(s, q, k, s.qkv_width()), context) {}

 private:
  // `stride` is the row stride of the matrix that contains the tile.
  static ProductShape score(const AttentionShape& s, Int q, Int k, Int stride) {
    ProductShape shape{.type = s.compute, .m = q, .k = s.head_dim, .n = k};
    shape.a_row = stride, shape.a_column = 1;
    shape.b_row = 1, shape.b_column = s.qkv_width();
    shape.c_row = score_stride(s.tokens);
    return shape;
  }
  static ProductShape row(const AttentionShape& s, Int q, Int k, bool accumulate) {
    ProductShape shape{.type = s.compute, .m = q, .k = k, .n = s.head_dim};
    shape.a_row = score_stride(s.tokens), shape.a_column = 1;
    shape.b_row = s.qkv_width(), shape.b_column = 1;
    shape.c_row = s.head_dim, shape.accumulate = accumulate;
    return shape;
  }
  static ProductShape column(const AttentionShape& s, Int q, Int k, Int stride) {
    ProductShape shape{.type = s.compute, .m = k, .k = q, .n = s.head_dim};
    shape.a_row = 1, shape.a_column = score_stride(s.tokens);
    shape.b_row = stride, shape.b_column = 1;
    shape.c_row = s.head_dim, shape.accumulate = true;
    return shape;
  }
};

/// A tile of queries from `first` on, and the blocks of the keys that any of them may see.
struct QueryTile {
  Int first = 0, queries = 0, keys = 0;
  std::vector<const BlockProducts*> blocks;  // kKeys keys each; the last holds the remainder
};

class ProductAttention final : public Attention {
 public:
  ProductAttention(const AttentionShape& s, Context& context)
      : Attention(s),
        loops_(*context.loops.attention_bf16),
        context_(context),
        stride_(score_stride(s.tokens)) {
    for (Int first = 0; first < s.tokens; first += kQueries) {
      QueryTile& tile = tiles_.emplace_back();
      tile.first = first, tile.queries = std::min(kQueries, s.tokens - first);
      tile.keys = s.causal ? first + tile.queries : s.tokens;
      for (Int k = 0; k < tile.keys; k += kKeys)
        tile.blocks.push_back(products(tile.queries, std::min(kKeys, tile.keys - k)));
    }
    context.workspace.need(Scratch(*this, nullptr, 0).bytes);
  }

  void forward(const AttentionForward& op) override {
    each_head(shape(), context_.team, [&](const HeadOffsets& head, int thread) {
      const Scratch scratch(*this, context_.workspace.of(thread), thread);
      for (Int i = 0; i < shape().group(); ++i)
        forward_head(sources(op, head, i), op.y.as<Bf16>() + head.y + i * shape().head_dim,
                     op.lse.f32() + head.lse + i * shape().tokens, scratch);
    });
  }

  void backward(const AttentionBackward& op) override {
    each_head(shape(), context_.team, [&](const HeadOffsets& head, int thread) {
      const Scratch scratch(*this, context_.workspace.of(thread), thread);
      const Int d = shape().head_dim, stride = shape().qkv_width();
      Bf16* grad = op.dqkv.as<Bf16>();
      std::fill_n(scratch.dk, shape().tokens * d, 0.0F);
      std::fill_n(scratch.dv, shape().tokens * d, 0.0F);
      for (Int i = 0; i < shape().group(); ++i) {
        const Int y = head.y + i * d;
        backward_head(sources(op, head, i), op.y.as<Bf16>() + y, op.dy.as<Bf16>() + y,
                      op.lse.f32() + head.lse + i * shape().tokens, grad + head.q + i * d, scratch);
      }
      const float kept = op.mask.scale();
      loops_.store(scratch.dk, nullptr, 1, shape().tokens, {stride, d}, grad + head.k);
      loops_.store(scratch.dv, nullptr, kept, shape().tokens, {stride, d}, grad + head.v);
    });
  }

 private:
  /// The operands of one query head.
  struct Sources {
    const Bf16 *q, *k, *v;
    Int length;  // number of keys that are not padding
    std::optional<ScoreDropout> drop;
  };
  /// The scratch for computing one head; with null memory, only computes its size.
  struct Scratch {
    float *s, *dp;        // [Q,T]
    Bf16 *p, *ds;         // [Q,T]
    float* out;           // [Q,D]
    float *dk, *dv;       // [T,D]
    float* inverse;       // [Q]
    std::uint32_t* keep;  // see ScoreTile
    int thread;
    std::size_t bytes = 0;

    Scratch(const ProductAttention& a, void* memory, int its_thread) : thread(its_thread) {
      const auto take = [&]<class U>(U*& piece, Int count) {
        piece = memory == nullptr ? nullptr
                                  : reinterpret_cast<U*>(static_cast<std::byte*>(memory) + bytes);
        bytes += align_up(static_cast<std::size_t>(count) * sizeof(U));
      };
      const Int d = a.shape().head_dim;
      take(s, kQueries * a.stride_);
      take(dp, kQueries * a.stride_);
      take(p, kQueries * a.stride_);
      take(ds, kQueries * a.stride_);
      take(out, kQueries * d);
      take(dk, a.shape().tokens * d);
      take(dv, a.shape().tokens * d);
      take(inverse, kQueries);
      take(keep, a.shape().drops ? mask_words(a.shape().tokens) : 0);
    }
  };

  const BlockProducts* products(Int queries, Int keys) {
    for (const Block& block : blocks_)
      if (block.queries == queries && block.keys == keys) return block.products.get();
    blocks_.push_back(
        {queries, keys, std::make_unique<BlockProducts>(shape(), queries, keys, context_)});
    return blocks_.back().products.get();
  }

  /// Returns the operands of the `i`-th query head that shares a key head, for an `op` of either
  /// pass.
  Sources sources(const auto& op, const HeadOffsets& head, Int i) const {
    const Bf16* qkv = op.qkv.template as<Bf16>();
    return {qkv + head.q + i * shape().head_dim, qkv + head.k, qkv + head.v,
            length_of(shape(), op.lengths, head.sample),
            score_dropout(shape(), op.mask, head.sample, head.head + i)};
  }

  /// Only blocks with visible keys are computed, the last one in full whatever the sample's length.
  ScoreTile score_tile(const QueryTile& tile, const Sources& in, std::uint32_t* keep) const {
    const Int keys = std::min(tile.keys, (in.length + kKeys - 1) / kKeys * kKeys);
    const SeenKeys seen =
        shape().causal ? SeenKeys{tile.first + 1, 1, in.length} : SeenKeys{in.length, 0, in.length};
    return {.seen = seen,
            .rows = tile.queries,
            .keys = keys,
            .stride = stride_,
            .scale = 1.0F / std::sqrt(static_cast<float>(shape().head_dim)),
            .drop = in.drop ? &*in.drop : nullptr,
            .first = tile.first,
            .keep = keep};
  }

  /// Calls f(products, first key) for each block of the first `keys` keys of a tile.
  template <class F>
  static void each_block(const QueryTile& tile, Int keys, F&& f) {
    for (Int k = 0; k < keys; k += kKeys) f(*tile.blocks[static_cast<std::size_t>(k / kKeys)], k);
  }

  /// out[Q,D] = weights[Q,K] rows[K,D] over the first `keys` keys of a tile.
  void weighted_rows(const QueryTile& tile, Int keys, const Bf16* weights, const Bf16* rows,
                     const Scratch& scratch) const {
    each_block(tile, keys, [&](const BlockProducts& products, Int k) {
      products.rows[k > 0 ? 1 : 0].run(scratch.thread, weights + k, rows + k * shape().qkv_width(),
                                       scratch.out);
    });
  }

  void forward_head(const Sources& in, Bf16* y, float* lse, const Scratch& scratch) const {
    const Int stride = shape().qkv_width(), width = shape().width();
    const float kept = in.drop ? in.drop->rule.scale : 1;
    for (const QueryTile& tile : tiles_) {
      const ScoreTile scores = score_tile(tile, in, scratch.keep);
      each_block(tile, scores.keys, [&](const BlockProducts& products, Int k) {
        products.scores.run(scratch.thread, in.q + tile.first * stride, in.k + k * stride,
                            scratch.s + k);
      });
      loops_.softmax(scores, scratch.s, scratch.p, scratch.inverse, lse + tile.first);
      weighted_rows(tile, scores.keys, scratch.p, in.v, scratch);
      loops_.store(scratch.out, scratch.inverse, kept, tile.queries, {width, shape().head_dim},
                   y + tile.first * width);
    }
  }

  /// Computes dq and the head's contribution to dk and dv.
  void backward_head(const Sources& in, const Bf16* y, const Bf16* dy, const float* lse, Bf16* dq,
                     const Scratch& scratch) const {
    const Int d = shape().head_dim, stride = shape().qkv_width(), width = shape().width();
    for (const QueryTile& tile : tiles_) {
      const Bf16 *q = in.q + tile.first * stride, *grad = dy + tile.first * width;
      const ScoreTile scores = score_tile(tile, in, scratch.keep);
      each_block(tile, scores.keys, [&](const BlockProducts& products, Int k) {
        products.scores.run(scratch.thread, q, in.k + k * stride, scratch.s + k);
        products.grads.run(scratch.thread, grad, in.v + k * stride, scratch.dp + k);
      });
      loops_.score_grads(scores, scratch.s, scratch.dp, lse + tile.first, y + tile.first * width,
                         grad, {width, d}, scratch.p, scratch.ds);
      each_block(tile, scores.keys, [&](const BlockProducts& products, Int k) {
        products.values.run(scratch.thread, scratch.p + k, grad, scratch.dv + k * d);
        products.keys.run(scratch.thread, scratch.ds + k, q, scratch.dk + k * d);
      });
      weighted_rows(tile, scores.keys, scratch.ds, in.k, scratch);
      loops_.store(scratch.out, nullptr, 1, tile.queries, {stride, d}, dq + tile.first * stride);
    }
  }

  struct Block {
    Int queries = 0, keys = 0;
    std::unique_ptr<BlockProducts> products;
  };

  const AttentionLoops& loops_;
  Context& context_;
  Int stride_;  // row stride of scores
  std::vector<Block> blocks_;
  std::vector<QueryTile> tiles_;
};

}  // namespace

std::unique_ptr<Attention> make_product_attention(const AttentionShape& shape, Context& context) {
  return std::make_unique<ProductAttention>(shape, context);
}

}  // namespace concertina::cpu
