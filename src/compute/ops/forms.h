// What the ops share whose kernels also give y in the form that the next product reads.
#pragma once
#include "compute/ops/parts.h"
#include "kernels/abi/sequences.h"

namespace greta {

// What follows rounds all that `call` made, without a gain.
inline bool makes_rounded(const Call& call, const Call& convert, uint32_t width) {
  return convert.op == Op::Convert && convert.form == Form::Q8X16 &&
         same_place(convert.slot[kX], call.slot[kY]) && convert.width == width && width % 32 == 0 &&
         !convert.weight.n;
}

// A norm of heads, the gate whose activation multiplies it, and a convert where there is one (norm.cpp).
bool check_gated_norm(std::span<const Call> calls, Reason& why);

// Tells a launch where y goes in the form that the next product reads.
template <class Block>
void pack_form(const Call& convert, Block* block, Launch* out) {
  (convert.form == Form::Q8X16 ? block->rounded : block->halves) = convert.slot[kY].address();
  out->write(convert.slot[kY]);
}

}  // namespace greta
