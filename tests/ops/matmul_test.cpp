// matmul and the sequences around it: every row of the kernel table against float64, over odd shapes.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <cmath>
#include <cstring>

#include "selftest/checks/checks.h"
#include "selftest/checks/matmul_case.h"
#include "support/op_rig.h"

namespace greta::test {

using Catch::Generators::from_range;
TEST_CASE("matmul: every row agrees with float64", "[ops]") {
  OpRig rig(GENERATE(from_range(rig_devices())));
  check_matmul(rig);
}

TEST_CASE("matmul: gathers the rows that have outputs", "[ops]") {
  OpRig rig(GENERATE(from_range(rig_devices())));
  check_matmul_outputs(rig);
}

// As on devices whose launches follow each other by barriers alone: no weights are held there.
TEST_CASE("chain: decode rows without one agree with float64", "[ops]") {
  if (on_cpu()) SKIP("for Vulkan");
  for (const char* name : {"matmul_rows_q4_k_planes", "matmul_rows_q6_k_planes", "matmul_rows_q8_0_planes",
                           "matmul_rows_q2_k", "matmul_rows_normed_q4_k_planes", "matmul_rows_normed_q2_k",
                           "matmul_rows_float_f16", "matmul_rows_float_normed_f16"}) {
    OpRig rig(test_device(), ~kVulkanChains);
    rig.only(name);
    check_matmul(rig);
  }
  OpRig rig(test_device(), ~kVulkanChains);
  rig.only("matmul_expert_rows_q4_k_planes");
  check_matmul_expert(rig);
}

TEST_CASE("matmul: deep rows and a cache of halves", "[ops]") {
  OpRig rig;
  Random random(2);
  for (const Stored& stored : stored_types(rig, Op::Matmul)) {
    check_matmul_shape(rig, stored, {31, 11008, 1, 1, false, Scales::Plain}, random);
    check_matmul_shape(rig, stored, {32, 256, 4, 3, false, Scales::Plain}, random, 1);
  }
}

TEST_CASE("matmul: plain rows give the same bits fused and unfused", "[ops]") {
  OpRig rig;
  Random random(3);
  for (const Stored& stored : stored_types(rig, Op::Matmul)) {
    const MatmulShape shape{48, 512, 8, 7, true, Scales::Plain};
    MatmulCase c(rig, stored, shape, random);
    for (const std::string& sequence : rig.sequences(Op::Matmul)) {
      // No plain row gives two forms, or norms what other groups make.
      if (sequence.ends_with("convert") || sequence.find("matmul+norm") != std::string::npos) continue;
      const std::vector<Call> calls = c.calls(sequence);
      const KernelRow* row = rig.plain_row(calls, shape.bucket);
      INFO(sequence);
      REQUIRE(row);
      rig.poison(c.result(sequence));
      rig.run(calls, *row, shape.bucket);
      const auto fused = rig.get<uint32_t>(c.result(sequence));
      rig.poison(c.result(sequence));
      for (const Call& call : calls) rig.run_plain(call, shape.bucket);
      REQUIRE(fused == rig.get<uint32_t>(c.result(sequence)));
    }
    rig.reset();
  }
}

TEST_CASE("matmul: plain rows give the same bits in pieces of any size", "[ops]") {
  OpRig rig;
  Random random(6);
  const uint32_t n = 20, tokens = 70;
  for (const Stored& stored : stored_types(rig, Op::Matmul)) {
    const uint32_t depth = quant_info(stored.type).block == 1 ? 300 : 512;
    const Matrix matrix = random_matrix(stored.type, n, depth, 1, Scales::Plain, random);
    const std::vector<float> x = with_outliers(size_t(tokens) * depth, random);
    const Tensor weight = put_matrix(rig, matrix, stored.layout);
    std::vector<uint32_t> first;
    for (const uint32_t bucket : {512u, 128u, 32u, 8u, 1u}) {
      std::vector<uint32_t> all;
      for (uint32_t t = 0; t < tokens; t += bucket) {
        const uint32_t live = std::min(bucket, tokens - t);
        StepRows steps;
        for (uint32_t i = 0; i < live; ++i) steps.add(0, 0, t + i);
        const auto from = x.begin() + ptrdiff_t(size_t(t) * depth);
        const Slice piece = rig.put(std::vector<float>(from, from + ptrdiff_t(size_t(live) * depth))),
                    result = rig.room(size_t(live) * n * 4);
        rig.run_plain(CallMaker{steps.put(rig)}.matmul(weight, piece, result), bucket);
        const auto y = rig.get<uint32_t>(result);
        all.insert(all.end(), y.begin(), y.end());
      }
      if (first.empty()) first = all;
      REQUIRE(all == first);
    }
    rig.reset();
  }
}

// A GPU has no threads to choose, and takes long to compile the kernels of a type.
TEST_CASE("matmul: the same bits every time, whatever the threads and the bucket", "[ops]") {
  const auto chosen = [](QuantType type) {
    const QuantType few[] = {QuantType::f16, QuantType::q4_0, QuantType::q8_0, QuantType::q4_k};
    return on_cpu() || std::ranges::find(few, type) != std::end(few);
  };
  for (const char* sequence : {"matmul", "norm+matmul", "norm+matmul+matmul+gate"}) {
    std::vector<std::vector<uint32_t>> first;  // by row
    for (const uint32_t threads : on_cpu() ? std::vector<uint32_t>{1, 2, 3} : std::vector<uint32_t>{2}) {
      OpRig rig(test_device(), ~0u, threads);
      Random same(5);
      size_t index = 0;
      for (const Stored& stored : stored_types(rig, Op::Matmul)) {
        if (!chosen(stored.type)) continue;
        const MatmulShape shape{96, 256, 8, 5, false, Scales::Plain};
        MatmulCase c(rig, stored, shape, same);
        for (const KernelRow* row : rig.rows(c.calls(sequence), shape.bucket)) {
          std::vector<Call> calls = c.calls(sequence);
          if (row->form != Form::F32) c.give_form(&calls, row->form);
          for (int repeat = 0; repeat < (threads == 2 ? 100 : 1); ++repeat) {
            rig.run(calls, *row, shape.bucket);
            const auto bits = rig.get<uint32_t>(c.result(sequence));
            if (first.size() <= index) first.push_back(bits);
            REQUIRE(bits == first[index]);
          }
          ++index;
        }
        rig.reset();
      }
      REQUIRE(index > 0);
    }
  }
}

TEST_CASE("matmul: says what does not fit", "[ops]") {
  OpRig rig;
  Call call = CallMaker{}.matmul({QuantType::q4_k, Layout::Gguf, 4, 100}, {}, {});
  const RowFilter filter{&rig.info(), false};
  const KernelRow* rows[8];
  REQUIRE(find_rows({&call, 1}, 1, filter, rows) == 0);
  const KernelRow* row = nullptr;
  REQUIRE_FALSE(choose_row({&call, 1}, 1, filter, &row).ok());
  REQUIRE(strstr(error_text(), "rows of 100 weights are not whole q4_k blocks of 256"));
  call.weight.depth = 256;
  REQUIRE(find_rows({&call, 1}, 1, filter, rows) > 0);
  REQUIRE(find_rows({&call, 1}, 1024, filter, rows) == 0);  // no such bucket
}

}  // namespace greta::test
