// The ops with a state of each sequence: conv1d and scan.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include "selftest/checks/checks.h"
#include "support/op_rig.h"

namespace greta::test {

using Catch::Generators::from_range;

TEST_CASE("conv1d: every row agrees with float64", "[ops]") {
  OpRig rig(GENERATE(from_range(rig_devices())));
  check_conv1d(rig);
  check_conv1d_of_not_finite(rig);
}

TEST_CASE("scan: every row of each form agrees with float64", "[ops]") {
  OpRig rig(GENERATE(from_range(rig_devices())));
  check_scan(rig);
}

TEST_CASE("scan: what is not finite stays so, and goes nowhere else", "[ops]") {
  OpRig rig(GENERATE(from_range(rig_devices())));
  check_scan_of_not_finite(rig);
}

TEST_CASE("scan: plain rows give the same bits however a text is cut", "[ops]") {
  OpRig rig(GENERATE(from_range(rig_devices())));
  check_scan_cuts(rig);
}

TEST_CASE("conv1d, scan: shapes that do not fit are refused in words", "[ops]") {
  OpRig rig;
  const Slice x = rig.room(4096);
  Tensor weight;
  weight.n = 4, weight.depth = 4, weight.slice = x;
  const CallMaker make{x};
  const auto refused = [&](const Call& call) {
    const KernelRow* row = nullptr;
    const Status status = choose_row({&call, 1}, 8, {&rig.info(), false}, &row);
    return status.ok() ? std::string() : std::string(error_text());
  };
  const auto names = [&](const Call& call, const char* words) {
    const std::string said = refused(call);
    INFO(said);
    return said.find(words) != std::string::npos;
  };
  Call conv = make.conv1d(x, weight, {}, true, x, x, x);
  CHECK(refused(conv).empty());
  for (const uint32_t width : {0u, 1u, 9u, 1u << 31}) {
    conv.weight.depth = width;
    CHECK(names(conv, "conv1d: a width of"));
  }
  Call::Scan shape;
  shape.heads = 6, shape.groups = 3, shape.key_width = shape.value_width = 4;
  const Call scan = make.scan({x, x, x, x, x, x, {}}, shape, x, x, x);
  CHECK(refused(scan).empty());
  const auto changed = [&](auto change) {
    Call call = scan;
    change(call.scan);
    return call;
  };
  CHECK(names(changed([](Call::Scan& s) { s.groups = 4; }), "scan: 6 heads in 4 groups"));
  CHECK(names(changed([](Call::Scan& s) { s.groups = 0; }), "scan: 6 heads in 0 groups"));
  CHECK(names(changed([](Call::Scan& s) { s.key_width = 257; }), "scan: keys of 257 values"));
  CHECK(names(changed([](Call::Scan& s) { s.form = 3; }), "scan: no form 3"));
  CHECK(names(changed([](Call::Scan& s) { s.form = kScanSelective; }), "scan: channels of 4 values"));
  CHECK(names(changed([](Call::Scan& s) { s.state_stride = 95; }), "96 values every 95"));
  CHECK(names(changed([](Call::Scan& s) { s.heads = 3u << 30; }), "scan: a state of"));
  Call weak = scan;
  weak.slot[kX5] = {};
  CHECK(names(weak, "without strengths"));
}

}  // namespace greta::test
