#include "parallel/plan/schedule.h"

#include "core/error.h"

namespace concertina {
bool is_compute(Kind kind) {
  return kind <= Kind::B;
}
bool is_transfer(Kind kind) {
  return kind >= Kind::SEND_F && kind <= Kind::RECV_B;
}

bool makes_input_gradient(Kind kind) {
  return kind == Kind::I || kind == Kind::B;
}

bool makes_weight_gradient(Kind kind) {
  return kind == Kind::W || kind == Kind::B;
}
bool is_send(Kind kind) {
  return kind == Kind::SEND_F || kind == Kind::SEND_B;
}

Action counterpart(const Action& transfer) {
  const Kind kind = transfer.kind;
  const int stage = transfer.stage, microbatch = transfer.microbatch;
  if (kind == Kind::SEND_F) return {Kind::RECV_F, stage + 1, microbatch};
  if (kind == Kind::RECV_F) return {Kind::SEND_F, stage - 1, microbatch};
  if (kind == Kind::SEND_B) return {Kind::RECV_B, stage - 1, microbatch};
  CONCERTINA_CHECK(kind == Kind::RECV_B, "{} is not a transfer", to_text(transfer));
  return {Kind::SEND_B, stage + 1, microbatch};
}

}  // namespace concertina
