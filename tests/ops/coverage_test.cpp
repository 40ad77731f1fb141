// No gaps in the kernel table: whatever a model's weights are stored as, every bucket has a row.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstring>

#include "selftest/selftest.h"
#include "support/failing_memory.h"
#include "support/failing_threads.h"
#include "support/op_rig.h"

namespace greta::test {

TEST_CASE("kernel table: every bucket has a row for each type in its preferred layout", "[ops]") {
  OpRig rig;
  const std::vector<Stored> stored = stored_types(rig, Op::Matmul);
  std::vector<QuantType> types;
  for (const Stored& s : stored)
    if (std::find(types.begin(), types.end(), s.type) == types.end()) types.push_back(s.type);
  REQUIRE(types.size() >= 10);
  // Instruction sets that a processor may have; the order of the bits in CpuFeature.
  for (const uint32_t features : {0u, uint32_t(kCpuAvx2), uint32_t(kCpuAvx2 | kCpuAvx512Vnni),
                                  uint32_t(kCpuAvx2 | kCpuAvx512Vnni | kCpuAmx)})
    for (const bool exact : {false, true})
      for (const QuantType type : types)
        for (const uint32_t bucket : {1u, 2u, 4u, 8u, 16u, 32u, 64u, 128u, 256u, 512u})
          for (const Op op : {Op::Matmul, Op::Embed, Op::MatmulExpert}) {
            DeviceInfo info = rig.info();
            info.features = features;
            const RowFilter filter{&info, exact};
            const uint32_t depth = quant_info(type).block == 1 ? 33 : quant_info(type).block;
            const Tensor weight = {type, preferred_layout(type, filter), 33,  // rows, which fit no tile
                                   depth, op == Op::MatmulExpert ? 4u : 1u};
            const CallMaker make;
            const Call call = op == Op::Matmul  ? make.matmul(weight, {}, {})
                              : op == Op::Embed ? make.embed(weight, {})
                                                : make.matmul_each(weight, {}, {}, {}, 2, 1);
            const KernelRow* rows[16];
            INFO(op_name(op) << " " << quant_info(type).name << " bucket " << bucket << " features "
                             << features << (exact ? " exact" : "") << ": " << error_text());
            const uint32_t count = find_rows({&call, 1}, bucket, filter, rows);
            CHECK(count > 0);
            for (uint32_t i = 0; exact && i < count; ++i) CHECK(rows[i]->rank == 0);
          }
}

TEST_CASE("kernel table: plain rows cover every op, and names say what a row is", "[ops]") {
  for (uint32_t op = 0; op < uint32_t(Op::count); ++op) {
    const auto rows = kernel_table();
    INFO(op_name(Op(op)));
    CHECK(std::any_of(rows.begin(), rows.end(), [&](const KernelRow& row) {
      return row.op_count == 1 && row.ops[0] == Op(op) && row.rank == 0 && !row.needs &&
             !strcmp(row.backend, "cpu");
    }));
  }
  for (const KernelRow& row : kernel_table()) {
    INFO(row.name);
    CHECK(row.tokens_min >= 1);
    CHECK(row.tokens_max <= kMaxStepTokens);
    CHECK((row.rank > 0 || row.form == Form::F32 || row.ops[0] == Op::Convert));
  }
}

TEST_CASE("kernel table: a sequence's rows stand together, and each is found by its sequence", "[ops]") {
  for (const KernelRow& row : kernel_table()) {
    std::vector<Call> calls(row.op_count);
    for (uint32_t i = 0; i < row.op_count; ++i) calls[i].op = row.ops[i];
    const std::span<const KernelRow> found = rows_of(rows_of(row.backend), calls);
    INFO(row.name);
    REQUIRE((!found.empty() && &row >= found.data() && &row < found.data() + found.size()));
    REQUIRE(std::ranges::all_of(found, [&](const KernelRow& other) {
      return std::ranges::equal(std::span(other.ops, other.op_count), std::span(row.ops, row.op_count));
    }));
  }
}

TEST_CASE("kernel table: a layout's bytes are those of GGUF order but for the tile's tail", "[ops]") {
  for (uint32_t t = 0; t < uint32_t(QuantType::count); ++t) {
    const QuantType type = QuantType(t);
    const uint64_t depth = quant_info(type).block * 4;
    CHECK(tensor_bytes(type, Layout::Packed, 48, depth, 3) == tensor_bytes(type, Layout::Gguf, 48, depth, 3));
    CHECK(tensor_bytes(type, Layout::Packed, 33, depth, 1) == tensor_bytes(type, Layout::Gguf, 48, depth, 1));
    // Each row is a multiple of 16 bytes; a long one has grown by less than 1 %.
    const uint64_t gguf = tensor_bytes(type, Layout::Gguf, 1, 8192, 1);
    const uint64_t planes = tensor_bytes(type, Layout::Planes, 1, 8192, 1);
    CHECK(planes % 16 == 0);
    CHECK((planes >= gguf && planes - gguf < gguf / 100));
    CHECK(tensor_bytes(type, Layout::Planes, 33, 8192, 2) == 66 * planes);
  }
}

// A device that every Vulkan kernel can run on.
static DeviceInfo able_vulkan_device() {
  DeviceInfo info;
  snprintf(info.backend, sizeof info.backend, "vulkan");
  info.features = ~0u;
  info.shared_bytes = 64 << 10;
  return info;
}

// Tiled rows of one code differ in their tile alone, so what is chosen must not depend on their order.
TEST_CASE(
    "kernel table: the least padding, then the largest tile that keeps all units busy, else the one with "
    "most groups",
    "[ops]") {
  DeviceInfo info = able_vulkan_device();
  const RowFilter filter{&info, false};
  Call call = CallMaker{}.matmul({QuantType::q4_k, Layout::Gguf, 0, 4096}, {}, {});
  uint32_t seen = 0;
  for (const uint32_t units : {1u, 60u, 132u, 100000u})
    for (const uint32_t n : {64u, 1024u, 4096u, 14336u})
      for (const uint32_t bucket : {16u, 64u, 128u, 512u}) {
        info.unit_count = units;
        call.weight.n = n;
        const KernelRow* rows[64];
        const KernelRow* chosen = nullptr;
        const uint32_t count = find_rows({&call, 1}, bucket, filter, rows);
        if (!count) continue;
        REQUIRE(choose_row({&call, 1}, bucket, filter, &chosen).ok());
        const auto groups = [&](const KernelRow& row) {
          return uint64_t(tile_count(call, row, bucket)) * choose_splits({&call, 1}, row, bucket, filter);
        };
        const auto padded = [&](const KernelRow& row) { return round_up(bucket, row.tile_tokens); };
        for (uint32_t i = 0; i < count; ++i) {
          const KernelRow& other = *rows[i];
          if (other.code.name != chosen->code.name || &other == chosen) continue;
          ++seen;
          INFO("n " << n << " bucket " << bucket << " units " << units << " tile " << chosen->tile);
          CHECK(padded(*chosen) <= padded(other));
          if (padded(*chosen) < padded(other)) continue;
          if (groups(other) >= units) CHECK(groups(*chosen) >= units);
          if (groups(other) >= units)
            CHECK(chosen->tile * chosen->tile_tokens >= other.tile * other.tile_tokens);
          else
            CHECK((groups(*chosen) >= units || groups(*chosen) >= groups(other)));
        }
      }
  if (!seen) SKIP("no compiler of shaders that knows cooperative matrices");
}

TEST_CASE("kernel table: experts with few slots each take the rows of a few tokens, others take tiles",
          "[ops]") {
  const DeviceInfo info = able_vulkan_device();
  const RowFilter filter{&info, false};
  const auto reads_each_slot = [&](uint32_t experts, uint32_t used, uint32_t bucket) {
    Call call = CallMaker{}.matmul_each({QuantType::q4_k, Layout::Planes, 0, 2048}, {}, {}, {}, used, 1);
    call.weight.n = 768;
    call.weight.count = call.experts.count = experts;
    const KernelRow* row = nullptr;
    REQUIRE(choose_row({&call, 1}, bucket, filter, &row).ok());
    return row->form == Form::Q8X16;
  };
  const KernelRow* rows[1];
  Call any = CallMaker{}.matmul({QuantType::q4_k, Layout::Planes, 0, 2048}, {}, {});
  any.weight.n = 768;
  if (!find_rows({&any, 1}, 1, filter, rows)) SKIP("no compiler of shaders");
  CHECK(reads_each_slot(8, 2, 8));
  CHECK(reads_each_slot(8, 2, 16));  // four slots of each
  CHECK(!reads_each_slot(8, 2, 32));
  CHECK(reads_each_slot(128, 8, 16));
  CHECK(reads_each_slot(128, 8, 64));
  CHECK(!reads_each_slot(127, 8, 64));
  CHECK(!reads_each_slot(128, 8, 128));
}

static bool keep_result(void* user, const OpResult& result) {
  static_cast<std::vector<OpResult>*>(user)->push_back(result);
  return true;
}

TEST_CASE("self-test: of an op, of kernels by their names, or says that there are none", "[ops]") {
  const RigDevice device(test_device(), ~0u, 0);
  const auto run = [&](const char* name, std::vector<OpResult>* out) {
    return run_selftest(*device.device, name, keep_result, out);
  };
  std::vector<OpResult> op, one, some, all, none;
  REQUIRE(run("softcap", &op).ok());
  REQUIRE(run("softcap_plain", &one).ok());
  REQUIRE(run("embed_plain_q4_*", &some).ok());
  REQUIRE(run("embed", &all).ok());
  CHECK(run("softcap_plai", &none).code == Code::Argument);
  CHECK(run("nothing_*", &none).code == Code::Argument);
  CHECK(none.empty());
  REQUIRE((op.size() == 1 && one.size() == 1 && some.size() == 1 && all.size() == 1));
  for (const OpResult& result : {op[0], one[0], some[0]}) CHECK(result.failure == "");
  CHECK(one[0].launches == op[0].launches);
  CHECK(some[0].op == std::string("embed"));
  // Besides those of embed, what brings weights into the layout of planes.
  CHECK(some[0].kernels >= 3);
  CHECK(some[0].kernels < all[0].kernels);
  if (on_cpu()) CHECK(some[0].kernels < 10);
}

TEST_CASE("self-test: runs where the system refuses threads", "[ops]") {
  if (!on_cpu()) SKIP("drivers start threads");
  if (!GRETA_THREADS_CAN_FAIL) SKIP("a sanitizer starts the threads");
  const RigDevice device(test_device(), ~0u, 0);
  std::vector<OpResult> with, without;
  REQUIRE(run_selftest(*device.device, "gate", keep_result, &with, nullptr, true).ok());
  const FailingThreads refused;
  REQUIRE(run_selftest(*device.device, "gate", keep_result, &without, nullptr, true).ok());
  REQUIRE((with.size() == 1 && without.size() == 1));
  CHECK(without[0].failure == "");
  CHECK(without[0].kernels == with[0].kernels);
}

TEST_CASE("self-test: a lack of memory is no wrong kernel", "[ops]") {
  if (!on_cpu()) SKIP("drivers have memory of their own");
  if (!GRETA_THREADS_CAN_FAIL) SKIP("a sanitizer starts the threads");
  const RigDevice device(test_device(), ~0u, 0);
  std::vector<OpResult> results;
  results.reserve(1);
  const FailingThreads refused;  // so that all allocations are this thread's
  bool all_were_there = false;
  int failed = 0;
  for (uint64_t fail_at = 1; !all_were_there; fail_at += 1 + fail_at / 8) {
    results.clear();
    const FailingMemory memory(fail_at);
    try {
      (void)run_selftest(*device.device, "softcap", keep_result, &results, nullptr, true);
    } catch (const std::bad_alloc&) {
      ++failed;
    }
    all_were_there = !memory.failed();
    for (const OpResult& result : results) CHECK(result.failure == "");
  }
  CHECK(failed > 10);
}

TEST_CASE("self-test: a quick one launches every kernel that a whole one launches, less often", "[ops]") {
  const RigDevice device(test_device(), ~0u, 0);
  for (const char* name : {"embed", "norm", "gate", "route", "convert", "softcap", "sample",
                           "matmul_plain_q4_*", "matmul_rows_q4_k*", "matmul_expert_rows_q4_k*"}) {
    std::vector<OpResult> whole, quick;
    const Status found = run_selftest(*device.device, name, keep_result, &whole);
    if (found.code == Code::Argument) continue;  // this device has no such kernels
    REQUIRE(run_selftest(*device.device, name, keep_result, &quick, nullptr, true).ok());
    INFO(name << ": " << quick[0].failure);
    CHECK(quick[0].failure == "");
    CHECK(quick[0].kernels == whole[0].kernels);
    CHECK(quick[0].launches < whole[0].launches);
  }
}

}  // namespace greta::test
