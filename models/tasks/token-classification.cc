// Classification of words by their first tokens; all other tokens are ignored, as in transformers'
// ForTokenClassification (named entities: Tjong Kim Sang and De Meulder 2003, as in Devlin et al.
// 2019, section 5.3).
#include "models/task.h"

namespace concertina::model_tasks {
namespace {

UnitPlan token_classification_head(const Trunk& trunk) {
  HeadSpec spec;
  spec.norm = trunk.norm;
  spec.drops = true;
  spec.logits = {.name = "tags",
                 .in = trunk.shape.width,
                 .out = trunk.classes,
                 .std = trunk.std,
                 .tuned = true};
  spec.reads = {tags_field(trunk.shape.tokens)};
  return head(trunk.shape, spec);
}

}  // namespace

Task token_classification() {
  return {.head = token_classification_head,
          .about = "classify each word of a text",
          .targets = TargetKind::tags,
          .classes = true};
}

}  // namespace concertina::model_tasks
