// How the replicas of a bucket meet: which holder sends what to whom, step by step, until the owner
// of each chunk has all of its gradient; weights return by the same way backwards.
// Invariant: a scheme moves shares, and has no means to alter them. Shares are added up in the one
// tree of the run (parallel/plan/reduction_tree.h), and what rounds or compresses gradients would
// do so to leaves, before any of them moves. So every scheme gives the same bits at every layout.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/registry.h"
#include "parallel/plan/reduction_tree.h"

namespace concertina {

/// The holders of a bucket, 0 to n - 1, as a scheme sees them. Holder h owns chunk h.
struct ExchangeShape {
  std::vector<int> hosts;  // of each holder: any numbers
  int holders() const { return static_cast<int>(hosts.size()); }
  bool operator==(const ExchangeShape&) const = default;
};

/// All that a holder has of `chunk`, sent to `peer` or received from it.
struct ShareMove {
  int step = 1;  // of its phase, ascending; a holder sends to one peer in a step, and receives from
                 // one
  int peer = 0, chunk = 0;
  bool operator==(const ShareMove&) const = default;
};

/// Moves that do not wait for each other. A phase begins on a holder when the one before is over
/// there, and shares are added up in between.
struct ExchangePhase {
  std::vector<ShareMove> sends, receives;  // each by ascending step
  bool operator==(const ExchangePhase&) const = default;
};

/// The moves of one holder, by phase: as many phases on each.
using ExchangeRow = std::vector<ExchangePhase>;

struct ExchangeScheme {
  ExchangeRow (*row)(const ExchangeShape& shape, int holder) = nullptr;
  const char* about = "";
};

/// Every scheme of the list in meson.build, by name.
std::span<const Entry<ExchangeScheme>> exchange_schemes();

/// The part of an assignment about its exchanges.
struct ExchangeChoice {
  std::string scheme = "all-to-all";
  std::vector<int> hosts{};  // by rank; empty: one
  bool operator==(const ExchangeChoice&) const = default;

  /// Throws bad input if there is no such scheme.
  const ExchangeScheme& find() const;
  ExchangeShape shape(const std::vector<int>& ranks) const;
};

/// The rows of all holders, proven: in each phase what a holder sends in a step its peer receives
/// in that step, in one order; no holder sends to two peers in a step or receives from two; each
/// holder sends each share but its own chunk's once, after all that it receives of that chunk. So
/// every leaf comes to its owner once, and no order of channels without buffers or tags can hang:
/// whatever waits does so for an earlier step or phase. Throws bad input that names the first rule
/// that is broken.
std::vector<ExchangeRow> exchange_rows(const Entry<ExchangeScheme>& scheme,
                                       const ExchangeShape& shape);
std::vector<ExchangeRow> exchange_rows(const ExchangeChoice& choice, const std::vector<int>& ranks);

/// The same way backwards: owners send chunks of the new weights, and each holder sends on what its
/// peers wait for.
ExchangeRow backwards(const ExchangeRow& row);

/// One line a holder: phases separated by ';', steps by ',', "2>1" for chunk 2 to holder 1 and
/// "0<3" for chunk 0 from holder 3.
std::string to_text(const std::vector<ExchangeRow>& rows);

/// A part of a share: a tree node of one use of the bucket.
struct Piece {
  int use = 0;
  TreeNode node;
  auto operator<=>(const Piece&) const = default;
};
using Share = std::vector<Piece>;

struct PieceMerge {
  Piece left, right;
};

/// Returns the additions that `share` allows by itself, in order; the share becomes what is left.
std::vector<PieceMerge> add_up(Share& share, int leaves);

/// Shares on their way through an exchange.
class ShareFlow {
 public:
  /// `own`: what each holder has summed by itself, of every chunk. All outlive it.
  ShareFlow(const ExchangeScheme& scheme, const ExchangeShape& shape, const std::vector<Share>& own,
            int leaves);
  const ExchangeRow& row(int holder);
  /// The share that `holder` has of `chunk` before `phase`, unless it has sent it on.
  Share share(int holder, int chunk, int phase);

 private:
  const ExchangeScheme& scheme_;
  const ExchangeShape& shape_;
  const std::vector<Share>& own_;
  const int leaves_;
  std::vector<std::optional<ExchangeRow>> rows_;
};

}  // namespace concertina
