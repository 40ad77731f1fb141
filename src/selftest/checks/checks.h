// A check of each op compares every row of the kernel table with float64, over odd shapes and all types, on
// the rig's device. It throws Failed.
#pragma once
#include "selftest/checks/rows.h"

namespace greta::selftest {

void check_norm(Rig& rig);
void check_norm_strides(Rig& rig);
void check_layer_norm(Rig& rig);
void check_gate(Rig& rig);
void check_add(Rig& rig);
void check_multiply(Rig& rig);
void check_softcap(Rig& rig);
void check_softmax(Rig& rig);
void check_cast(Rig& rig);
void check_scale(Rig& rig);
void check_combine(Rig& rig);
void check_rope(Rig& rig);
void check_rope_strides(Rig& rig);
void check_rope_sequences(Rig& rig);
void check_embed(Rig& rig);
void check_convert(Rig& rig);
void check_route(Rig& rig);
void check_routers(Rig& rig);
void check_matmul(Rig& rig);
void check_matmul_outputs(Rig& rig);  // only rows of a step that have outputs; float weights
void check_matmul_expert(Rig& rig);
void check_matmul_heads(Rig& rig);
void check_expert_sequences(Rig& rig);
void check_attention(Rig& rig);
void check_attention_heads(Rig& rig);     // one token, fused with norm, rope and kv_write of its heads
void check_attention_prefixes(Rig& rig);  // pages with which several sequences begin
void check_attention_lanes(Rig& rig);     // one shape, and those of check_attention_heads
void check_conv1d(Rig& rig);
void check_scan(Rig& rig);
void check_scan_cuts(Rig& rig);  // plain rows: the same bits however a text is cut into steps
void check_sample(Rig& rig);
// Fail unless NaN and infinity in what an op reads come out of it as NaN or infinity.
void check_norm_of_not_finite(Rig& rig);
void check_gate_of_not_finite(Rig& rig);
void check_softcap_of_not_finite(Rig& rig);
void check_softmax_of_not_finite(Rig& rig);
void check_convert_of_not_finite(Rig& rig);
void check_attention_of_not_finite(Rig& rig);  // through caches of each type
void check_conv1d_of_not_finite(Rig& rig);
void check_scan_of_not_finite(Rig& rig);
void check_sum(Rig& rig);
void check_products(Rig& rig);
void check_gemm(Rig& rig);

}  // namespace greta::selftest
