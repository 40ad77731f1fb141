// What the gate holds a pipeline to, and what it compares with the baseline: pure, so that tests can feed it
// anything.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "radv/compiled.h"

namespace greta::test {

// A SIMD has 512 VGPRs of 64 lanes on RDNA 2 and 768 on RDNA 3 and 4; what a subgroup takes says how many
// subgroups run at once, at most 16. The first that fits holds.
struct Ceiling {
  const char* pipeline;  // its name begins so
  uint32_t vgprs;
  const char* end = "";  // and ends so
};
inline constexpr Ceiling kCeilings[] = {
    // For 8 tokens a subgroup has the sums and the values of four at once. Half of the types take 120, which
    // is 4 and 6 subgroups; those with tables most, on RDNA 2.
    {"matmul_rows", 256, ",8"},
    {"matmul_rows_q5_k", 128},         // 4 and 6: a unit of its weights takes 12 words
    {"matmul_rows_q3_k", 128},         // 11 words; on RDNA 2, where rows are rotated
    {"matmul_rows_normed_q3_k", 128},  // the same products
    {"matmul_rows_tq1_0", 128},        // 9 words and two sets of digits; likewise
    {"matmul_rows", 96},               // 5 and 8 subgroups, which must hide the latency of memory
    {"matmul_tiles_cm1", 228},         // shared memory leaves room for 2 subgroups
    {"matmul_tiles_plain", 144},       // 3 and 5
    // The same of experts.
    {"matmul_expert_rows_q5_k", 128},
    {"matmul_expert_rows", 96},
    {"matmul_expert_summed_q5_k", 128},
    {"matmul_expert_summed", 96},
    {"matmul_expert_tiles_cm1", 228},
    {"matmul_expert_tiles_plain_iq",
     192},  // with grids, by Mesa 26.2 for RDNA 4, which has matrix units; else 144
    {"matmul_expert_tiles_plain", 144},
    {"gemm_cm1", 256},    // 8 matrices of sums and 6 of operands: 3 subgroups on RDNA 3
    {"gemm_tiles", 144},  // 3 and 5
    {"products_cm1", 144},  // operands and sums of matrices alone, four that do not wait for each other; 5
    {"attention", 256},     // sums of up to 8 heads
    {"scan_chunks", 256},   // a state of 64 values, 32 sums and the next rows; there are few groups
    {"", 120},
};

// What may differ from the baseline without a word: a step in which VGPRs are given (12 on RDNA 3), and as
// much code as another glslc makes.
inline constexpr uint32_t kMoreVgprs = 12, kMorePercent = 10;

inline bool grown(uint32_t now, uint32_t before) { return now > before + before * kMorePercent / 100 + 16; }

// What holds with every version of Mesa; `wanted` is the instruction that the pipeline must have, "" for
// none.
inline std::vector<std::string> broken_rules(const std::string& name, const std::string& wanted,
                                             const Compiled& c) {
  std::vector<std::string> wrong;
  const auto named = [&](const auto& entry) {
    return name.starts_with(entry.pipeline) && name.ends_with(entry.end);
  };
  // sample_plain runs once a step, and keeps a few scalars in vector lanes (no memory) where all are taken.
  const uint32_t scalars_in_lanes = name.starts_with("sample_plain") ? 8 : 0;
  if (c.spilled_vgprs || c.spilled_sgprs > scalars_in_lanes)
    wrong.push_back("spills " + std::to_string(c.spilled_vgprs) + " VGPRs and " +
                    std::to_string(c.spilled_sgprs) + " SGPRs");
  else if (c.scratch_bytes)
    wrong.push_back(std::to_string(c.scratch_bytes) + " bytes of scratch memory");
  const Ceiling& ceiling = *std::find_if(std::begin(kCeilings), std::end(kCeilings), named);
  if (c.vgprs > ceiling.vgprs)
    wrong.push_back(std::to_string(c.vgprs) + " VGPRs, at most " + std::to_string(ceiling.vgprs));
  if (!wanted.empty() && !c.wanted) wrong.push_back("no " + wanted);
  return wrong;
}

inline std::vector<std::string> grown_since(const Compiled& before, const Compiled& c) {
  const struct {
    const char* what;
    uint32_t now, before;
    bool bad;
  } lines[] = {
      {"lanes", c.lanes, before.lanes, c.lanes != before.lanes},
      {"VGPRs", c.vgprs, before.vgprs, c.vgprs > before.vgprs + kMoreVgprs},
      {"bytes of shared memory", c.shared_bytes, before.shared_bytes,
       grown(c.shared_bytes, before.shared_bytes)},
      {"instructions", c.instructions, before.instructions, grown(c.instructions, before.instructions)},
      {"wanted instructions", c.wanted, before.wanted, c.wanted < before.wanted}};
  std::vector<std::string> wrong;
  for (const auto& line : lines)
    if (line.bad)
      wrong.push_back(std::to_string(line.now) + " " + line.what + ", the baseline has " +
                      std::to_string(line.before));
  return wrong;
}

}  // namespace greta::test
