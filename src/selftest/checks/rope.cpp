// Checks rope against float64: alone, and fused with a norm before it and kv_write after it.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "selftest/checks/cache_types.h"
#include "selftest/checks/checks.h"
#include "selftest/checks/sequences.h"

namespace greta::selftest {

void check_rope(Rig& rig) {
  Random random(1);
  struct Shape {
    uint32_t heads, head_width, rope_width;
  };
  for (const Live& live : live_rows(rig))
    for (const Shape& shape : {Shape{4, 48, 20}, Shape{1, 2, 2}, Shape{3, 64, 64}})
      for (const uint32_t halves : {0u, 1u}) {
        const uint32_t width = shape.heads * shape.head_width, context = 300;
        StepRows steps;
        Ids positions;
        for (uint32_t t = 0; t < live.tokens; ++t) {
          positions.push_back((t * 37 + 250) % context);
          steps.add(t, t % 3, positions.back());
        }
        const std::vector<float> table = turns(context, shape.rope_width);
        const auto x = gaussians(size_t(live.tokens) * width, random);
        const Slice step = steps.put(rig), cosines = rig.put(table);
        Call call =
            CallMaker{step}.rope({}, {shape.heads, shape.head_width}, {cosines, shape.rope_width, halves});
        const Values expected =
            reference::rope(to_values(x), positions, to_values(table),
                            {shape.heads, shape.head_width, shape.rope_width, halves == 1});
        for (const KernelRow* row : rig.rows({&call, 1}, live.bucket)) {
          std::vector<float> rows = x;
          rows.resize(live.bucket * width, 7.f);  // rows that are not live must stay as they are
          call.slot[kX] = call.slot[kY] = rig.put(rows);
          rig.run({&call, 1}, *row, live.bucket);
          std::vector<float> y = rig.get<float>(call.slot[kX]);
          expect(std::equal(y.begin() + ptrdiff_t(x.size()), y.end(), rows.begin() + ptrdiff_t(x.size())),
                 std::string(row->name) + ": rows that are not live were written");
          y.resize(x.size());
          require_close(y, expected, 1e-13, row->name);
        }
        rig.reset();
      }
}

void check_rope_strides(Rig& rig) {
  Random random(2);
  const uint32_t heads = 3, rope_width = 8, x_stride = 24, y_stride = 40, tokens = 7;
  StepRows steps;
  Ids positions;
  for (uint32_t t = 0; t < tokens; ++t) positions.push_back(t * 5), steps.add(t, 0, t * 5);
  const std::vector<float> table = turns(64, rope_width);
  const auto x = gaussians(size_t(tokens) * heads * x_stride, random);
  const Values turned =
      reference::rope(to_values(x), positions, to_values(table), {heads, x_stride, rope_width, false});
  Values expected(size_t(tokens) * heads * y_stride, 7);
  for (size_t head = 0; head < size_t(tokens) * heads; ++head)
    for (uint32_t i = 0; i < rope_width; ++i) expected[head * y_stride + i] = turned[head * x_stride + i];
  const Slice x_slice = rig.put_padded(x, 8 * heads * x_stride);
  const CallMaker make{steps.put(rig)};
  Call call = make.rope(x_slice, {heads, x_stride}, {rig.put(table), rope_width, 0});
  call.x_stride = x_stride;
  call.y_stride = y_stride;
  for (const KernelRow* row : rig.rows({&call, 1}, 8)) {
    call.slot[kY] = rig.put(std::vector<float>(size_t(8) * heads * y_stride, 7.f));
    rig.run({&call, 1}, *row, 8);
    auto y = rig.get<float>(call.slot[kY]);
    y.resize(expected.size());
    require_close(y, expected, 1e-13, row->name);
  }
  check_repeats(rig, call, 8);
}

namespace {

struct HeadShape {
  uint32_t heads, width, rope_width;
};
constexpr uint32_t kNoCache = kCacheTypeCount;

// The heads of a step's tokens before and after norm and rotation.
struct HeadCase {
  Rig& rig;
  Live live;
  HeadShape shape;
  StepRows steps;
  Ids positions;
  std::vector<float> x, table, gain;
  Slice step, table_slice;

  HeadCase(Rig& rig, const Live& live, const HeadShape& shape, Random& random)
      : rig(rig), live(live), shape(shape) {
    for (uint32_t t = 0; t < live.tokens; ++t) {
      positions.push_back(t / 3 * 5);
      steps.add(t, t % 3, positions.back());
    }
    x = gaussians(size_t(live.tokens) * width(), random, 3);
    gain = gaussians(width(), random);
    table = turns(300, shape.rope_width);
    step = steps.put(rig);
    table_slice = rig.put(table);
  }
  uint32_t width() const { return shape.heads * shape.width; }

  // `halves` says how heads are rotated, if they are.
  std::vector<Call> calls(Normed normed, std::optional<bool> halves, uint32_t cache_type) {
    std::vector<Call> calls;
    const Slice in = rig.put_padded(x, size_t(live.bucket) * width());
    const CallMaker make{step};
    const uint32_t normed_heads = normed == Normed::AllHeads ? 1 : shape.heads;
    if (normed != Normed::Not)
      calls.push_back(make.norm(put_vector(rig, {gain.begin(), gain.begin() + width() / normed_heads}), in,
                                in, 1e-5f, normed_heads));
    if (halves)
      calls.push_back(make.rope(in, {shape.heads, shape.width}, {table_slice, shape.rope_width, *halves}));
    if (cache_type == kNoCache) return calls;
    const uint32_t bytes =
        cache_page_bytes(cache_type, shape.heads, shape.width) + 64;  // a page may be larger than its heads
    calls.push_back(make.kv_write(in, {shape.heads, shape.width},
                                  {rig.room(uint64_t(bytes) * steps.pool_pages()), bytes, cache_type}));
    return calls;
  }

  Values expected(Normed normed, std::optional<bool> halves) const {
    Values y = to_values(x);
    const auto end = gain.begin() + (normed == Normed::AllHeads ? width() : shape.width);
    if (normed != Normed::Not) y = reference::norm(y, to_values({gain.begin(), end}), double(1e-5f));
    if (!halves) return y;
    return reference::rope(y, positions, to_values(table),
                           {shape.heads, shape.width, shape.rope_width, *halves});
  }

  // What lies in the pages, [t][heads][width]. Fails if anything else of them was written.
  std::vector<float> from_pages(const Call& write) {
    std::vector<uint8_t> pool = rig.get<uint8_t>(write.slot[kPool]);
    QuantType type;
    cache_quant(write.kv_write.pages.type, &type);
    const reference::Quant& quant = *reference::find_quant(quant_info(type).name);
    const size_t head_bytes = quant_bytes(type, shape.width);
    std::vector<float> y;
    for (const StepRow& row : steps.rows)
      for (uint32_t h = 0; h < shape.heads; ++h) {
        const size_t slot = size_t(h) * kPageTokens + row.position % kPageTokens;
        uint8_t* head = &pool[size_t(steps.page(row.sequence, row.position)) * write.kv_write.pages.bytes +
                              slot * head_bytes];
        for (uint32_t i = 0; i < shape.width; ++i)
          y.push_back(float(quant.weight(head + i / quant.block * quant.bytes, i % quant.block)));
        memset(head, 0xff, head_bytes);
      }
    expect(std::ranges::all_of(pool, [](uint8_t b) { return b == 0xff; }),
           "bytes of a page that are no head's were written");
    return y;
  }

  // Without kv_write, norm and rope change their input.
  bool repeated(uint32_t cache_type) const {
    return rig.repeats() && cache_type != kNoCache && live.bucket == 8 && shape.width == 128;
  }

  void check(Normed normed, std::optional<bool> halves, uint32_t cache_type) {
    std::vector<Call> sequence = calls(normed, halves, cache_type);
    const Values y = expected(normed, halves);
    for (const KernelRow* row : rig.rows(sequence, live.bucket)) {
      const std::string what = std::string(row->name) + ", " + std::to_string(shape.heads) + " heads of " +
                               std::to_string(shape.width) + ", " + std::to_string(shape.rope_width) +
                               " rotated" +
                               (!halves   ? ""
                                : *halves ? " in halves"
                                          : " in pairs") +
                               (normed == Normed::Not ? "" : ", normed") +
                               (cache_type == kNoCache ? "" : std::string(", ") + kCacheTypes[cache_type]);
      rig.run(sequence, *row, live.bucket);
      if (repeated(cache_type)) check_repeats(rig, sequence, *row, live.bucket, sequence.back().slot[kPool]);
      if (cache_type == kNoCache) {
        std::vector<float> all = rig.get<float>(sequence[0].slot[kX]);
        expect(std::all_of(all.begin() + ptrdiff_t(y.size()), all.end(),
                           [](float value) { return std::isnan(value); }),
               what + ": rows that are not live were written");
        all.resize(y.size());
        require_close(all, y, 1e-12, what);
        continue;
      }
      // A value may round to the neighbour of the one that float64 rounds to.
      const Values held = reference::cached({y.begin(), y.end()}, kCacheTypes[cache_type]);
      require_close(from_pages(sequence.back()), held, strcmp(kCacheTypes[cache_type], "f32") ? 1e-6 : 1e-12,
                    what);
    }
  }
};

}  // namespace

constexpr HeadShape kHeadShapes[] = {{9, 64, 32}, {2, 6, 4},     {1, 64, 64},   {5, 80, 80},
                                     {4, 96, 24}, {6, 128, 128}, {3, 256, 256}, {2, 576, 64}};

void check_normed_values(Rig& rig) {
  Random random(4);
  for (const Live& live : live_rows(rig))
    for (const HeadShape& shape : kHeadShapes) {
      HeadCase c(rig, live, shape, random);
      for (uint32_t type = 0; type < kCacheTypeCount; ++type)
        if (shape.width % cache_block_of(type) == 0) c.check(Normed::EachHead, {}, type);
      rig.reset();
    }
}

void check_rope_sequences(Rig& rig) {
  Random random(3);
  for (const Live& live : live_rows(rig))
    for (const HeadShape& shape : kHeadShapes)
      for (const Normed normed : {Normed::Not, Normed::EachHead, Normed::AllHeads})
        for (const bool halves : {false, true}) {
          HeadCase c(rig, live, shape, random);
          for (uint32_t type = 0; type <= kCacheTypeCount; ++type)
            if (type == kNoCache || shape.width % cache_block_of(type) == 0) c.check(normed, halves, type);
          rig.reset();
        }
  rig.require_all_run(Op::Rope);
}

}  // namespace greta::selftest
