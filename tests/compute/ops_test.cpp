// What an op's file promises beside a launch: costs, declared accesses, refusals with their numbers, and
// which row is chosen.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <string>

#include "tune/tune.h"

namespace greta::test {
namespace {

DeviceInfo cpu_device(uint32_t features) {
  DeviceInfo info;
  strcpy(info.backend, "cpu");
  info.features = features;
  return info;
}

Call matmul(QuantType type, uint32_t n, uint32_t depth) {
  return CallMaker{}.matmul({type, Layout::Gguf, n, depth}, {}, {});
}

// A buffer for each operand, so that each access can be told.
struct Operands {
  Buffer x, y, weight, gain, step, residual, pool, table;
  Operands() {
    uint64_t address = 0x10000;
    for (Buffer* buffer : {&x, &y, &weight, &gain, &step, &residual, &pool, &table}) {
      buffer->address = address;
      buffer->bytes = 0x1000;
      address += 0x10000;
    }
  }
  static Slice all(const Buffer& buffer) { return {&buffer, 0, buffer.bytes}; }
};

bool declares(const Launch& launch, const Buffer& buffer, Access::Mode mode) {
  return std::any_of(launch.accesses, launch.accesses + launch.access_count, [&](const Access& access) {
    return access.slice.buffer == &buffer && access.mode == mode;
  });
}

}  // namespace

TEST_CASE("ops: matmul costs its weights once and two operations for each", "[compute]") {
  const Call call = matmul(QuantType::q4_k, 4096, 2048);
  const Cost cost = lead_of({&call, 1}).cost({&call, 1}, 8, 0);
  CHECK(cost.bytes == 4096ull * 2048 / 256 * 144 + 8 * (2048 + 4096) * 4);
  CHECK(cost.flops == 2ull * 8 * 4096 * 2048);
}

TEST_CASE("ops: attention costs the cache that it sees", "[compute]") {
  const PoolPages f16 = {{}, 0, 1};
  Call call = CallMaker{}.attention({}, {}, {8, 2, 64, 64}, f16, f16, {});
  const Cost all = op_info(Op::Attention).cost({&call, 1}, 1, 1000);
  CHECK(all.bytes == 1000ull * 2 * (64 + 64) * 2 + 8 * 128 * 4);
  CHECK(all.flops == 2ull * 8 * 1000 * 128);
  call.attention.window = 100;
  CHECK(op_info(Op::Attention).cost({&call, 1}, 1, 1000).flops == 2ull * 8 * 100 * 128);
}

TEST_CASE("ops: a fused launch declares its operands and not what it keeps to itself", "[compute]") {
  const Operands o;
  const DeviceInfo device = cpu_device(0);
  Buffer normed, q;  // between the calls
  const Slice between = {&normed, 0, 16}, y = {&q, 0, 16};
  const CallMaker make{Operands::all(o.step)};
  Call calls[] = {
      make.norm({QuantType::f32, Layout::Gguf, 1, 64, 1, Operands::all(o.gain)}, Operands::all(o.x), between,
                0),
      make.matmul({QuantType::f32, Layout::Gguf, 32, 64, 1, {&o.weight, 0, 32 * 64 * 4}}, between, y),
      make.rope(y, {2, 16}, {Operands::all(o.table), 16, 0}),
      make.kv_write(y, {2, 16}, {Operands::all(o.pool), 2 * 16 * kPageTokens * 4, 0})};
  calls[1].weight.slice.bytes = 8;
  const KernelRow* row = nullptr;
  const RowFilter filter{&device, true};
  REQUIRE(!choose_row(calls, 1, filter, &row).ok());
  CHECK(strstr(error_text(), "needs 8192 bytes, its slice has 8"));
  calls[1].weight.slice.bytes = 8192;
  REQUIRE(choose_row(calls, 1, filter, &row).ok());
  Launch launch;
  make_launch(calls, *row, 1, nullptr, &launch);
  CHECK(launch.groups[0] == 2);  // a head each
  for (const Buffer* buffer : {&o.x, &o.gain, &o.weight, &o.table, &o.step})
    CHECK(declares(launch, *buffer, Access::kRead));
  CHECK(declares(launch, o.pool, Access::kWrite));
  for (uint32_t i = 0; i < launch.access_count; ++i) {
    CHECK(launch.accesses[i].slice.buffer != &normed);
    CHECK(launch.accesses[i].slice.buffer != &q);
  }
}

TEST_CASE("ops: the residual is whichever operand of add the matmul has not made", "[compute]") {
  const Operands o;
  const DeviceInfo device = cpu_device(0);
  for (const bool swapped : {false, true}) {
    const Slice y = Operands::all(o.y), residual = Operands::all(o.residual);
    const CallMaker make;
    const Call calls[] = {
        make.matmul({QuantType::f32, Layout::Gguf, 32, 64}, Operands::all(o.x), y),
        swapped ? make.add(y, residual, residual, 32) : make.add(residual, y, residual, 32)};
    const KernelRow* row = nullptr;
    REQUIRE(choose_row(calls, 4, {&device, true}, &row).ok());
    Launch launch;
    make_launch(calls, *row, 4, nullptr, &launch);
    MatmulBlock block;
    memcpy(&block, launch.block, sizeof block);
    CHECK(block.residual == o.residual.address);
    CHECK(block.y == o.residual.address);
  }
}

TEST_CASE("ops: what does not fit is refused with its numbers", "[compute]") {
  const DeviceInfo device = cpu_device(0);
  const RowFilter filter{&device, false};
  const auto refused = [&](const Call& call, const char* text) {
    const KernelRow* row = nullptr;
    CHECK(choose_row({&call, 1}, 1, filter, &row).code == Code::Unsupported);
    INFO(error_text());
    CHECK(strstr(error_text(), text));
  };
  refused(matmul(QuantType::q6_k, 8, 320), "rows of 320 weights are not whole q6_k blocks of 256");
  refused(matmul(QuantType::q8_k, 8, 256), "matmul [8][256] q8_k for 1 rows: no kernel of cpu");
  const CallMaker make;
  const auto attention = [&](uint32_t heads, uint32_t cache_type) {
    return make.attention({}, {}, {heads, 2, 64, 64}, {{}, 100, cache_type}, {{}, 0, 0}, {});
  };
  refused(attention(7, 0), "7 heads share 2 KV heads");
  refused(attention(8, 0), "a page of 100 bytes for 2 heads of 64 values, which need 32768");
  refused(attention(8, 9), "no cache type 9");
  refused(make.rope({}, {1, 64}, {{}, 65, 0}), "65 rotated values in heads of 64");
  refused(make.route({}, {}, {}, {4, 5}, {}), "5 of 4 experts");
}

TEST_CASE("ops: the highest rank is chosen, exact takes plain rows", "[compute]") {
  const DeviceInfo plain = cpu_device(0), vector = cpu_device(kCpuAvx2 | kCpuAvx512Vnni);
  const Call call = matmul(QuantType::q4_k, 64, 256);
  const KernelRow* row = nullptr;
  REQUIRE(choose_row({&call, 1}, 1, {&plain, false}, &row).ok());
  CHECK(row->needs == 0);
  REQUIRE(choose_row({&call, 1}, 1, {&vector, true}, &row).ok());
  CHECK(row->rank == 0);
  const KernelRow* rows[32];
  clear_error_text();
  const uint32_t count = find_rows({&call, 1}, 1, {&vector, false}, rows);
  REQUIRE(choose_row({&call, 1}, 1, {&vector, false}, &row).ok());
  for (uint32_t i = 0; i < count; ++i) CHECK(rows[i]->rank <= row->rank);
  CHECK(!error_text()[0]);  // rows that do not fit write no text
}

TEST_CASE("ops: rows too long for a worker's memory go to a plain kernel", "[compute]") {
  const DeviceInfo vector = cpu_device(kCpuAvx2 | kCpuAvx512Vnni);
  for (const QuantType type : {QuantType::q4_k, QuantType::q8_0, QuantType::f16, QuantType::f32}) {
    Call call = matmul(type, 16, kMaxRankedDepth);
    call.weight.layout = preferred_layout(type, {&vector, false});
    const KernelRow* row = nullptr;
    REQUIRE(choose_row({&call, 1}, 1, {&vector, false}, &row).ok());
    CHECK(row->rank > 0);
    call.weight.depth += 256;
    REQUIRE(choose_row({&call, 1}, 1, {&vector, false}, &row).ok());
    CHECK(row->rank == 0);
  }
}

TEST_CASE("constants behind the block are a row's last ones, in the order of their struct", "[compute]") {
  for (const KernelRow& row : kernel_table()) {
    if (strcmp(row.backend, "hip")) continue;  // the others pass no constants behind the block
    CAPTURE(row.name, row.target);
    REQUIRE(row.code.appended <= row.constant_count);
    const uint32_t inside = row.constant_count - row.code.appended;
    for (uint32_t i = 0; i < row.constant_count; ++i) {
      CAPTURE(i, row.constant_fields[i]);
      if (i < inside)
        CHECK(row.constant_fields[i] < kMaxBlockBytes);
      else
        CHECK(row.constant_fields[i] == kMaxBlockBytes + (i - inside) * sizeof(uint32_t));
    }
  }
  STATIC_REQUIRE(offsetof(AttentionHeads, constants) == kMaxBlockBytes);
}

TEST_CASE("ops: rows in tiles do not take a step's lone rows, which they leave out", "[compute]") {
  constexpr uint32_t kF16 = 1, kHeads = 2, kWidth = 64, kBytes = kHeads * kWidth * kPageTokens * 2;
  Buffer memory;
  memory.bytes = 1 << 20;
  const Slice all = {&memory, 0, memory.bytes};
  Call call = CallMaker{all, all}.attention(all, all, {8, kHeads, kWidth, kWidth, 1},
                                            {all, kBytes, kF16}, {all, kBytes, kF16}, all);
  for (const KernelRow& row : kernel_table()) {
    const bool attends = lead_op({row.ops, row.op_count}) == Op::Attention;
    if (!attends || row.op_count > 1 || row.tile == 1 || row.prefix != Prefix::None) continue;
    CAPTURE(row.name, row.target);
    const auto takes = [&](AttentionRows rows) {
      Reason unasked;
      call.attention.rows = rows;
      return op_info(Op::Attention).fits({&call, 1}, row, unasked);
    };
    CHECK(takes(AttentionRows::All));
    CHECK(takes(AttentionRows::Others));
    CHECK_FALSE(takes(AttentionRows::Lone));
  }
}

TEST_CASE("the rows of a backend stand together in the kernel table", "[compute]") {
  size_t elsewhere = 0;
  for (const KernelRow& row : kernel_table()) {
    const std::span<const KernelRow> rows = rows_of(row.backend);
    elsewhere += &row < rows.data() || &row >= rows.data() + rows.size();
  }
  CHECK(elsewhere == 0);
  CHECK(rows_of("none").empty());
}

}  // namespace greta::test
