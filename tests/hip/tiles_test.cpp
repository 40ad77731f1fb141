// The tiles of products on CDNA: which are chosen, how they are dealt out over the dies of a GPU
// (make_launch), and the kernel whose waves multiply in turns, on the mock runtime.
#include <array>
#include <map>
#include <set>

#include "selftest/checks/checks.h"
#include "selftest/checks/matmul_case.h"
#include "support/hip_orders.h"
#include "tune/tune.h"

using namespace greta;
using namespace greta::selftest;

namespace {

DeviceInfo device_of(const char* arch, uint32_t units, uint32_t dies = 1) {
  DeviceInfo info;
  snprintf(info.backend, sizeof info.backend, "hip");
  snprintf(info.arch, sizeof info.arch, "%s", arch);
  info.unit_count = units;
  info.die_count = dies;
  info.shared_bytes = 64 << 10;
  return info;
}

Call product_of(uint32_t n, uint32_t depth) {
  Call call = CallMaker{}.matmul({QuantType::q4_k, Layout::Planes, n, depth}, {}, {});
  call.form = Form::F16;
  return call;
}

// The rows in tiles that such a device has for Q4_K.
std::vector<const KernelRow*> tile_rows(const DeviceInfo& info) {
  std::vector<const KernelRow*> found;
  for (const KernelRow& row : kernel_table())
    if (row.tile_tokens && row.op_count == 1 && row.ops[0] == Op::Matmul && row.type == QuantType::q4_k &&
        row.form == Form::F16 && usable(row, {&info, false}))
      found.push_back(&row);
  return found;
}

struct Tile {
  uint32_t token, row, die;
};

// The tiles that the groups of a launch make, as choose_tile of kernels/hip/gemm/matmul_tiles.h has it, and
// the dies that run them.
std::vector<Tile> tiles_of(const Launch& launch, const KernelRow& row, uint32_t n, uint32_t live,
                           uint32_t dies) {
  std::vector<Tile> made;
  const uint32_t across = launch.groups[0], down = launch.groups[1];
  const uint32_t token_tiles = uint32_t(divide_up(live, row.tile_tokens));
  for (uint32_t group = 0; group < across * down; ++group) {
    const uint32_t index = group % across * down + group / across;
    const Tile tile = {index % token_tiles, index / token_tiles, group % dies};
    if (tile.row < divide_up(n, row.tile)) made.push_back(tile);
  }
  return made;
}

// Blocks of weights and of x that the dies read, each die for itself.
template <class Tiles>
std::pair<size_t, size_t> blocks_read(const Tiles& tiles) {
  std::set<std::pair<uint32_t, uint32_t>> weights, x;
  for (const Tile& tile : tiles) {
    weights.insert({tile.die, tile.row});
    x.insert({tile.die, tile.token});
  }
  return {weights.size(), x.size()};
}

}  // namespace

TEST_CASE("tiles: each is made once, whatever the dies and the live tokens", "[hip]") {
  uint32_t seen = 0;
  for (const auto& [arch, units, dies] :
       {std::tuple("gfx942", 304u, 8u), {"gfx942", 228u, 6u}, {"gfx950", 96u, 3u}, {"gfx90a", 104u, 1u}}) {
    const DeviceInfo info = device_of(arch, units, dies);
    for (const KernelRow* row : tile_rows(info))
      for (const uint32_t n : {1u, 130u, 1111u, 28672u})
        for (const uint32_t live : {1u, 16u, 17u, 200u, 512u}) {
          const Call call = product_of(n, 4096);
          Launch launch;
          make_launch({&call, 1}, *row, 512, &info, &launch);
          INFO(row->name << " on " << units << " units of " << arch << ", n " << n << ", live " << live);
          CHECK(launch.groups[0] * launch.groups[1] >= tile_count(call, *row, 512));
          std::map<std::pair<uint32_t, uint32_t>, uint32_t> made;
          for (const Tile& tile : tiles_of(launch, *row, n, live, info.die_count))
            ++made[{tile.row, tile.token}];
          CHECK(made.size() == divide_up(n, row->tile) * divide_up(live, row->tile_tokens));
          CHECK(std::ranges::all_of(made, [](const auto& tile) { return tile.second == 1; }));
          ++seen;
        }
  }
  if (!seen) SKIP("no HIP kernels");
}

TEST_CASE("tiles: a die reads few blocks of weights", "[hip]") {
  const DeviceInfo info = device_of("gfx942", 304, 8);
  const std::vector<const KernelRow*> rows = tile_rows(info);
  if (rows.empty()) SKIP("no HIP kernels");
  // Of all dies together: blocks of weights, then of x. Dealt out, and in the order of the grid.
  const std::map<uint32_t, std::array<size_t, 4>> expected = {{128, {224, 32, 896, 8}},
                                                              {256, {112, 16, 224, 8}}};
  for (const KernelRow* row : rows) {
    if (row->tile != row->tile_tokens) continue;
    const Call call = product_of(28672, 4096);
    Launch dealt, plain;
    make_launch({&call, 1}, *row, 512, &info, &dealt);
    make_launch({&call, 1}, *row, 512, nullptr, &plain);
    const auto [weights, x] = blocks_read(tiles_of(dealt, *row, 28672, 512, 8));
    const auto [weights_before, x_before] = blocks_read(tiles_of(plain, *row, 28672, 512, 8));
    CHECK(std::array{weights, x, weights_before, x_before} == expected.at(row->tile));
  }
}

TEST_CASE("tiles: those of all shared memory are chosen where units are as busy with them", "[hip]") {
  const Call call = product_of(28672, 4096);
  uint32_t seen = 0;
  for (const auto& [arch, units, tile] : {std::tuple("gfx942", 304u, 128u),
                                          {"gfx942", 228u, 256u},
                                          {"gfx950", 256u, 256u},
                                          {"gfx90a", 104u, 128u}}) {
    const DeviceInfo info = device_of(arch, units);
    if (tile_rows(info).empty()) continue;
    const KernelRow* row = best_row({&call, 1}, 512, {&info, false});
    REQUIRE(row);
    INFO(units << " units of " << arch);
    CHECK(row->tile == tile);
    row = best_row({&call, 1}, 128, {&info, false});  // it would be half empty
    REQUIRE(row);
    CHECK(row->tile == 128);
    ++seen;
  }
  if (!seen) SKIP("no HIP kernels");
}

// gfx950 has an instruction that gfx942, of the same family, lacks.
TEST_CASE("tiles: a device takes code for itself before that for its family", "[hip]") {
  const Call call = product_of(28672, 4096);
  uint32_t seen = 0;
  for (const auto& [arch, units] : {std::pair("gfx942", 304u), {"gfx950", 256u}}) {
    const DeviceInfo info = device_of(arch, units);
    const std::vector<const KernelRow*> rows = tile_rows(info);
    const auto is_exact = [&](const KernelRow* row) { return std::string_view(row->target) == arch; };
    const bool exact = std::ranges::any_of(rows, is_exact);
    for (const uint32_t bucket : {16u, 64u, 128u, 256u, 512u}) {
      if (rows.empty()) continue;
      const KernelRow* row = best_row({&call, 1}, bucket, {&info, false});
      REQUIRE(row);
      INFO(row->name << " for " << row->target << " on " << arch << ", bucket " << bucket);
      CHECK(row->target == (exact ? arch : gfx_family(arch)));
      ++seen;
    }
  }
  if (!seen) SKIP("no HIP kernels");
}

// A tile that two groups make adds its residual twice, since that lies where the result does.
TEST_CASE("tiles: results are those of float64 on several dies", "[hip]") {
  HipOrders orders;
  for (const char* units : {"228", "304"}) {
    orders.set("UNITS", units);
    orders.set("SEED", units);
    const OpenDevice device = open_mock_hip();
    REQUIRE(device->info().die_count > 1);
    Rig rig(*device);
    Random random(1);
    const uint32_t n = 523, depth = 320, bucket = 512, live = 257;
    const Matrix matrix = random_matrix(QuantType::f16, n, depth, 1, Scales::Plain, random);
    const Values x = reference::halves(to_values(gaussians(size_t(live) * depth, random)));
    const std::vector<float> before = gaussians(size_t(live) * n, random);
    const Values expected = reference::add(to_values(before), reference::matmul(matrix.values, x, depth), 1);
    StepRows steps;
    steps.add_tokens(live);
    const CallMaker make{steps.put(rig)};
    const Slice y = rig.room(size_t(bucket) * n * 4);
    const Slice halves = rig.put(reference::half_bytes(x));
    std::vector<Call> calls = {make.matmul(put_matrix(rig, matrix, Layout::Gguf), halves, y)};
    calls[0].form = Form::F16;
    uint32_t ran = 0;
    for (const KernelRow* row : rig.rows(calls, bucket)) {
      if (!row->tile_tokens) continue;
      const Slice sum = rig.put_padded(before, size_t(bucket) * n);
      const std::vector<Call> adding = {calls[0], make.add(sum, y, sum, n)};
      for (const KernelRow* other : rig.rows(adding, bucket)) {
        if (!same_code(*row, *other) || row->tile_tokens != other->tile_tokens) continue;
        rig.run(adding, *other, bucket);
        std::vector<float> result = rig.get<float>(sum);
        result.resize(expected.size());
        CHECK(nmse(result, expected) < 1e-9);
        ++ran;
      }
    }
    CHECK(ran == 4);
  }
}

TEST_CASE("tiles: waves that multiply in turns are right in every order", "[hip]") {
  HipOrders orders;
  struct {
    QuantType type;
    Layout layout;
    uint32_t depth;
  } const cases[] = {{QuantType::q4_k, Layout::Planes, 768},  // split-K with up to three ranges
                     {QuantType::q6_k, Layout::Planes, 256},
                     {QuantType::q8_0, Layout::Planes, 320},
                     {QuantType::q4_0, Layout::Planes, 64},
                     {QuantType::f16, Layout::Gguf, 192}};
  const char* seeds[] = {"1", "2", "3", "4", "5"};
  for (size_t i = 0; i < std::size(cases); ++i) {
    orders.set("SEED", seeds[i]);
    const OpenDevice device = open_mock_hip();
    Rig rig(*device);
    rig.only("matmul_wide_mfma_*");
    Random random(i + 1);
    const auto& [type, layout, depth] = cases[i];
    // Rows and tokens that do not fill their last tile: by far, and by all but one.
    check_matmul_shape(rig, {type, layout}, {270, depth, 512, 257, true, Scales::Plain}, random);
    if (depth < 256)
      check_matmul_shape(rig, {type, layout}, {511, depth, 256, 255, false, Scales::Extreme}, random);
    CHECK(rig.launches() > 0);
  }
}
