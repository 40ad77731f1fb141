# The sequences of calls that one kernel may cover, for all backends. A kernel's line names those that its
# code covers: COVERS decode. The planner (src/graph/plan.cpp) takes the longest sequence of calls that has a
# kernel, and the self-test (src/selftest) runs every sequence of every kernel.
#
# A word is an op (src/compute/ops.def); what stands in brackets may be absent: "matmul [add] [convert]" is
# four sequences. A `convert` at the end gives the result also in the form that the next product reads.

# Products of a matrix: of any number of tokens; of few tokens; of few whose results are rounded; with a norm
# of the result; and the router's.
greta_sequences(product "matmul [add]")
greta_sequences(decode "matmul add" "norm matmul [rope] [kv_write]" "[norm] matmul matmul gate")
greta_sequences(decode_rounding "matmul add convert" "[norm] matmul matmul gate convert")
greta_sequences(product_normed "matmul norm add [convert]")
greta_sequences(product_normed_scaled "matmul norm add scale [convert]")
greta_sequences(router "[norm] matmul route")

# Products of the matrices of experts.
greta_sequences(experts "matmul_expert" "[norm] matmul_expert matmul_expert gate [convert]")
greta_sequences(experts_summed "matmul_expert combine [add] [convert]")

# What comes before attention, each head by itself, and attention with it.
greta_sequences(heads "norm rope [kv_write]" "rope kv_write" "norm kv_write")
greta_sequences(attention_rounding "attention [convert]")
greta_sequences(attention_heads "norm rope norm rope kv_write [kv_write] attention [convert]"
  "norm norm kv_write [kv_write] attention [convert]" "kv_write kv_write attention [convert]")
greta_sequences(attention_normed_values "norm rope norm rope kv_write norm kv_write attention [convert]")
greta_sequences(attention_roped "rope rope kv_write [kv_write] attention [convert]")

# Ops that only pass over rows.
greta_sequences(embed_rounding "embed [convert]")
greta_sequences(norm_adding "norm [add] [convert]")
greta_sequences(norm_gate "norm gate [convert]")
greta_sequences(norm_pair "norm norm add norm add [scale] [convert]")
greta_sequences(gate_rounding "gate [convert]")
greta_sequences(combine_adding "combine add [convert]")
greta_sequences(multiply_rounding "multiply convert")
greta_sequences(gated_scan "conv1d scan norm gate [convert]")
greta_sequences(gated_conv1d "multiply conv1d multiply [convert]")
