// sample: the next token of each output row, into last_token of its sequence and for the host (kY). Group =
// an output row, or a tile of its vocabulary.
#include "compute/ops/parts.h"

namespace greta {

constexpr uint32_t kMostTiles = 256;  // that one group merges

static bool fits(std::span<const Call> calls, const KernelRow& row, Reason& why) {
  if (!check_single(calls, why)) return false;
  const uint32_t vocab = calls[0].sample.vocab;
  if (row.tile > 1 && tiles_of(row, vocab) > kMostTiles)
    return why.no("sample: a vocabulary of %u, of which %s can take %u", vocab, row.name,
                  kMostTiles * row.tile);
  return check_size("sample", "vocab", vocab, why);
}

static void groups(std::span<const Call> calls, const KernelRow& row, uint32_t bucket, uint32_t (&out)[3]) {
  out[0] = bucket * tiles_of(row, calls[0].sample.vocab);
  out[1] = out[2] = 1;
}

static void pack(std::span<const Call> calls, const KernelRow&, Launch* out) {
  const Call& call = calls[0];
  SampleBlock block = {};
  block.logits = call.slot[kX].address();
  block.step = call.slot[kStep].address();
  block.token_log = call.slot[kLog].address();
  block.scratch = call.slot[kScratch].address();
  block.counters = call.slot[kCounters].address();
  block.drawn = call.slot[kY].address();
  block.vocab = call.sample.vocab;
  out->set_block(block);
  out->read(call.slot[kX]);
  read_step(call, out);
  const auto part = [&](uint64_t offset, uint64_t bytes) {
    return Slice{call.slot[kStep].buffer, call.slot[kStep].offset + offset, bytes};
  };
  out->write(part(offsetof(StepState, last_token), sizeof(StepState::last_token)), true);
  out->write(part(offsetof(StepState, row), sizeof(StepState::row)), true);
  out->write(call.slot[kY], true);
  out->read(call.slot[kLog], true);
  out->note(call.slot[kScratch], Access::kReadWrite, true);
  out->note(call.slot[kCounters], Access::kReadWrite, false);
}

static Cost cost(std::span<const Call> calls, uint32_t rows, uint32_t) {
  const uint64_t values = uint64_t(rows) * calls[0].sample.vocab;
  return {values * kFloatBytes, 2 * values};
}

extern const OpInfo op_sample = {fits, groups, pack, cost};

}  // namespace greta
