// Extractive question answering (SQuAD, Rajpurkar et al. 2016, as in BERT): two logits per token,
// for the start and the end of the answer.
#include "models/task.h"
#include "models/units/head.h"

namespace concertina::model_tasks {
namespace {

UnitPlan question_answering_head(const Trunk& trunk) {
  require_whole_sample(trunk, "question-answering");
  return head(trunk.shape, {.norm = trunk.norm,
                            .logits = {.name = "span",
                                       .in = trunk.shape.width,
                                       .out = 2,
                                       .std = trunk.std,
                                       .tuned = true},
                            .loss = HeadSpec::Loss::spans,
                            .reads = {start_field(), end_field()}});
}

}  // namespace

Task question_answering() {
  return {.head = question_answering_head,
          .about = "find the span of a text that answers a question"};
}

}  // namespace concertina::model_tasks
