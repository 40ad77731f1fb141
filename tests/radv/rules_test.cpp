// The gate's rules see what is planted; .ci/run has the whole gate fail on a baseline that was spoiled.
#include "radv/rules.h"

#include <catch2/catch_test_macros.hpp>

namespace greta::test {

using Lines = std::vector<std::string>;

TEST_CASE("radv: spills, scratch memory, registers and missing instructions break rules", "[radv]") {
  Compiled right;
  right.lanes = 64;
  right.vgprs = 96;
  right.wanted = 1;
  const char* name = "matmul_rows_q4_k_planes 512,4096";
  CHECK(broken_rules(name, "v_dot4", right).empty());
  Compiled spills = right, scalars = right, scratch = right, more = right, none = right;
  spills.spilled_vgprs = 1;
  scalars.spilled_sgprs = 1;
  scratch.scratch_bytes = 16;
  more.vgprs = 97;
  none.wanted = 0;
  CHECK(broken_rules(name, "v_dot4", spills) == Lines{"spills 1 VGPRs and 0 SGPRs"});
  CHECK(broken_rules(name, "v_dot4", scalars) == Lines{"spills 0 VGPRs and 1 SGPRs"});
  CHECK(broken_rules(name, "v_dot4", scratch) == Lines{"16 bytes of scratch memory"});
  CHECK(broken_rules(name, "v_dot4", more) == Lines{"97 VGPRs, at most 96"});
  CHECK(broken_rules(name, "v_dot4", none) == Lines{"no v_dot4"});
  CHECK(broken_rules(name, "", none).empty());
  CHECK(broken_rules("matmul_rows_q5_k 512,4096", "v_dot4", more).empty());  // has a ceiling of its own
}

TEST_CASE("radv: what has grown since the baseline", "[radv]") {
  Compiled before;
  before.lanes = 64;
  before.vgprs = 48;
  before.shared_bytes = 1000;
  before.instructions = 1000;
  before.wanted = 8;
  CHECK(grown_since(before, before).empty());
  Compiled now = before;
  now.vgprs = 60;
  now.instructions = 1116;
  CHECK(grown_since(before, now).empty());
  now = before, now.vgprs = 61;
  CHECK(grown_since(before, now) == Lines{"61 VGPRs, the baseline has 48"});
  now = before, now.instructions = 1117;
  CHECK(grown_since(before, now) == Lines{"1117 instructions, the baseline has 1000"});
  now = before, now.shared_bytes = 1117;
  CHECK(grown_since(before, now).size() == 1);
  now = before, now.lanes = 32;
  CHECK(grown_since(before, now).size() == 1);
  now = before, now.wanted = 7;
  CHECK(grown_since(before, now) == Lines{"7 wanted instructions, the baseline has 8"});
}

}  // namespace greta::test
