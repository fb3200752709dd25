// Where in a text the answer to a question starts and ends (SQuAD, Rajpurkar et al. 2016, as BERT
// does it): two logits per token.
#include "models/task.h"
#include "models/units/head.h"

namespace concertina::model_tasks {
namespace {

UnitPlan question_answering_head(const Trunk& trunk) {
  require_whole_sample(trunk, "question-answering");
  return head(trunk.shape,
              {.norm = trunk.norm,
               .logits = {.name = "span", .in = trunk.shape.width, .out = 2, .std = trunk.std},
               .loss = HeadSpec::Loss::spans,
               .reads = {start_field(), end_field()}});
}

}  // namespace

Task question_answering() {
  return {.head = question_answering_head, .about = "find the answer to a question in a text"};
}

}  // namespace concertina::model_tasks
