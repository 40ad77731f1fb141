// Checks that cast gives the nearest values of each type, to the bit, with gaps between rows.
#include <cmath>
#include <cstring>
#include <limits>

#include "selftest/checks/checks.h"

namespace greta::selftest {

namespace {

Values in_type(const Values& x, uint32_t type) {
  if (type == kCastF16) return reference::cast(x, 11, -14, 65504);
  if (type == kCastBf16) return reference::cast(x, 8, -126, std::ldexp(255.0, 120));
  return x;
}

// Values that the type has, as it stores them.
std::vector<uint8_t> stored(const Values& values, uint32_t type) {
  std::vector<uint8_t> bytes;
  for (const double value : values) {
    const float number = float(value);
    uint32_t word;
    memcpy(&word, &number, sizeof word);
    if (type == kCastBf16) word >>= 16;
    if (type == kCastF16) {
      const std::vector<uint8_t> half = reference::half_bytes({value});
      word = half[0] | uint32_t(half[1]) << 8;
      if (std::isinf(value)) word = value > 0 ? 0x7c00 : 0xfc00;
      if (std::isnan(value)) word = 0x7e00;
    }
    for (uint32_t b = 0; b < (type == kCastF32 ? 4u : 2u); ++b) bytes.push_back(uint8_t(word >> 8 * b));
  }
  return bytes;
}

float loaded(const uint8_t* from, uint32_t type) {
  if (type == kCastF16) return float(reference::half_at(from));
  uint32_t word = 0;
  memcpy(&word, from, type == kCastF32 ? 4 : 2);
  if (type == kCastBf16) word <<= 16;
  float value;
  memcpy(&value, &word, sizeof value);
  return value;
}

// Of all sizes, with what is half-way between two float16 or bfloat16, too large, denormal and not finite.
Values wide_values(size_t count, Random& random) {
  Values x = to_values(gaussians(count, random));
  for (size_t i = 0; i < x.size(); ++i) x[i] = double(float(std::ldexp(x[i], int(i % 40) - 24)));
  const double odd[] = {0, -0.0, 65504, 65519, 65520, -65520, 1 + 0x1p-11, 1 + 0x1.8p-10, 1 + 0x1p-8,
                        1 + 0x1.8p-7, 0x1p-24, 0x1p-25, 0x1.8p-25, -0x1.ep-15, double(0x1.fffffep127f),
                        std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
                        std::nan("")};
  for (size_t i = 0; i < std::size(odd) && i < count; ++i) x[count - 1 - i] = odd[i];
  return x;
}

bool same(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }

}  // namespace

void check_cast(Rig& rig) {
  Random random(33);
  for (const Live& live : live_rows(rig))
    for (const uint32_t width : {2052u, 33u, 1u})
      for (uint32_t from = 0; from < kCastCount; ++from)
        for (uint32_t to = 0; to < kCastCount; ++to) {
          StepRows steps;
          steps.add_tokens(live.tokens);
          const uint32_t x_stride = width + 3 * (width == 33), y_stride = width + 8 * (width == 33);
          const Values x = in_type(wide_values(size_t(live.tokens) * x_stride, random), from);
          const uint32_t y_bytes = to == kCastF32 ? 4 : 2;
          Call call = CallMaker{steps.put(rig)}.cast(
              rig.put(stored(x, from)), rig.room(uint64_t(live.bucket) * y_stride * y_bytes), width,
              {from, to});
          call.x_stride = x_stride, call.y_stride = y_stride;
          for (const KernelRow* row : rig.rows({&call, 1}, live.bucket)) {
            rig.poison(call.slot[kY]);
            rig.run({&call, 1}, *row, live.bucket);
            const auto y = rig.get<uint8_t>(call.slot[kY]);
            const Values expected = in_type(x, to);
            for (size_t i = 0; i < y.size() / y_bytes; ++i) {
              const size_t t = i / y_stride, k = i % y_stride;
              const float made = loaded(&y[i * y_bytes], to);
              const bool there = t < live.tokens && k < width;
              if (!(there ? same(made, float(expected[t * x_stride + k])) : std::isnan(made)))
                expect(false, std::string(row->name) + ": value " + std::to_string(i) + " is wrong");
            }
          }
          rig.reset();
        }
  rig.require_all_run(Op::Cast);
}

}  // namespace greta::selftest
