// How short rows of F, I and W can be at best.
// Invariant: pure; never above what RowJudge says of any rows whose stages keep their microbatches
// in order, whatever they may save.
#pragma once

#include "parallel/generate/row_judge.h"

namespace concertina {

/// Seconds by `objective`. Of a span: the work of the busiest rank. Of a step: the longest of its
/// ranks, each by itself, where an action may be interrupted, but not start before the chain of
/// messages to it, nor end with less than the chain after it left (Carlier 1982's bound for one
/// machine, by Jackson's rule).
double least_length(const RowJudge& judge, Objective objective);

}  // namespace concertina
