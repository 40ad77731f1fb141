// sample: the next token of each output row, into last_token of its sequence. Group = an output row.
#include "compute/ops/parts.h"

namespace greta {

static Status check(std::span<const Call> calls, const KernelRow&) {
  GRETA_TRY(check_single(calls));
  return check_size("sample", "vocab", calls[0].vocab);
}

static void pack(std::span<const Call> calls, const KernelRow&, Launch* out) {
  const Call& call = calls[0];
  SampleBlock block = {};
  block.logits = call.slot[kX].address();
  block.step = call.slot[kStep].address();
  block.token_log = call.slot[kLog].address();
  block.scratch = call.slot[kScratch].address();
  block.vocab = call.vocab;
  out->set_block(block);
  out->read(call.slot[kX]);
  read_step(call, out);
  Slice last_token = call.slot[kStep];
  last_token.offset += offsetof(StepState, last_token);
  last_token.bytes = sizeof(StepState::last_token);
  out->write(last_token, true);
  out->read(call.slot[kLog], true);
  out->note(call.slot[kScratch], Access::kReadWrite, true);
}

static Cost cost(std::span<const Call> calls, uint32_t rows, uint32_t) {
  const uint64_t values = uint64_t(rows) * calls[0].vocab;
  return {values * kFloatBytes, 2 * values};
}

extern const OpInfo op_sample = {check, groups_rows, pack, cost};

}  // namespace greta
