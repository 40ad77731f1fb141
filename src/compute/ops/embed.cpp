// embed: rows of the embedding table, and the step's tokens into the token log; where a kernel row does so,
// also the form that the next matmul reads. Group = a token.
#include "compute/ops/parts.h"

namespace greta {

static uint32_t vocab_of(const Call& call) { return call.embed.vocab ? call.embed.vocab : call.weight.n; }

static bool check_convert(const Call& call, const Call& convert, Reason& why) {
  const Tensor& gain = convert.weight;
  if (convert.op != Op::Convert || convert.form != Form::Q8X16 ||
      !same_place(convert.slot[kX], call.slot[kY]) || convert.width != call.weight.depth ||
      convert.width % 32 || (gain.n && gain.depth != convert.width))
    return why.no("embed: rows of %u values do not fuse with %s of %u", call.weight.depth,
                  op_name(convert.op), convert.width);
  if (call.embed.first || call.weight.n != vocab_of(call))
    return why.no("embed: %u of %u rows, others make the rest", call.weight.n, call.embed.vocab);
  return true;
}

static bool fits(std::span<const Call> calls, const KernelRow&, Reason& why) {
  const Call& call = calls[0];
  if (calls.size() > 2) return check_single(calls, why);
  if (calls.size() == 2 && !check_convert(call, calls[1], why)) return false;
  const uint32_t vocab = call.embed.vocab, first = call.embed.first;
  if (vocab && (first > vocab || call.weight.n > vocab - first))
    return why.no("embed: %u rows from %u on in a table of %u", call.weight.n, first, vocab);
  return check_weight("embed", call.weight, why);
}

static void pack(std::span<const Call> calls, const KernelRow&, Launch* out) {
  const Call& call = calls[0];
  EmbedBlock block = {};
  block.weight = call.weight.slice.address();
  block.y = call.slot[kY].address();
  block.step = call.slot[kStep].address();
  block.token_log = call.slot[kLog].address();
  block.width = call.weight.depth;
  block.vocab = vocab_of(call);
  block.first = call.embed.first;
  block.rows = call.weight.n;
  block.scale = call.embed.scale;
  if (calls.size() == 2) {
    block.rounded = calls[1].slot[kY].address();
    block.next_gain = calls[1].weight.slice.address();
    out->write(calls[1].slot[kY]);
    out->read(calls[1].weight.slice);
  }
  out->set_block(block);
  out->read(call.weight.slice);
  out->write(call.slot[kY]);
  read_step(call, out);
  out->write(call.slot[kLog], true);
}

static Cost cost(std::span<const Call> calls, uint32_t rows, uint32_t) {
  const Tensor& weight = calls[0].weight;
  return {rows * (quant_bytes(weight.type, weight.depth) + weight.depth * kFloatBytes),
          uint64_t(rows) * weight.depth};
}

extern const OpInfo op_embed = {fits, groups_rows, pack, cost};

}  // namespace greta
