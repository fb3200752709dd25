#!/usr/bin/env bash
# Every family and task trains to the same bits with every layout of 1, 2, 3 and 4 ranks, with frozen
# units, dropout and recomputed activations: families_test.sh PROGRAM MPIRUN OPTIONS...
. "$(dirname -- "$0")/common.sh" "$@"

sizes=(model.layers=3 model.width=32 model.heads=4 model.context=16 batch.global=24
  batch.microbatches=12 run.threads=1 model.vocab=50) # without data, no tokenizer decides

same() { # ranks, keys of the model
  local ranks=$1
  shift
  run "$ranks" verify --layouts all --steps 2 "${sizes[@]}" "$@"
  echo "same bits: $ranks ranks, $(grep -c '' out) lines, $*"
}

for ranks in 1 2 3 4; do
  same "$ranks" model.family=gpt parallel.recompute=full model.dropout=0.1 model.attention_dropout=0.1
  same "$ranks" model.family=llama model.llama.kv_heads=2 model.llama.head_dim=12 model.llama.head_norms=true \
    model.llama.attention_bias=all parallel.recompute=attention model.attention_dropout=0.2
  same "$ranks" model.family=neox model.dropout=0.1 model.attention_dropout=0.1 parallel.recompute=full freeze.units=2
  same "$ranks" model.family=gpt model.task=classification model.classes=3 freeze.units=2
  same "$ranks" model.family=llama model.task=classification parallel.recompute=mlp
  same "$ranks" model.family=bert model.bert.types=0 model.dropout=0.1 freeze.units=3
  same "$ranks" model.family=bert model.task=classification parallel.recompute=full model.attention_dropout=0.1
  same "$ranks" model.family=bert model.task=question-answering parallel.recompute=mlp 'freeze.tensors=["*", "!*.bias", "!*.head/*"]'
  same "$ranks" model.family=bert model.task=regression model.classes=3 freeze.units=1
  same "$ranks" model.family=gpt model.task=multi-label model.dropout=0.1
  same "$ranks" model.family=llama model.task=token-classification model.classes=5 model.dropout=0.1
  same "$ranks" model.family=vit model.classes=5 freeze.units=2 parallel.recompute=3-5 model.attention_dropout=0.1
done
echo "1 passed, 0 failed"
