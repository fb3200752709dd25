// The inference of a head as a graph for other programs.
#pragma once

#include <string>

#include "core/graph.h"
#include "models/units/head.h"

namespace concertina {

/// The head of x[samples,T,C]. Outputs "logits" [samples,T,V], where one row of a sample is read
/// [samples,V]; of spans "start_logits" and "end_logits" [samples,T].
void describe_head(GraphBuilder& graph, const HeadSpec& spec, std::string x);

}  // namespace concertina
