// Checks gemm: types, turned operands, strides with gaps, batches, alpha and beta.
#include <cmath>
#include <cstring>

#include "selftest/checks/checks.h"

namespace greta::selftest {

namespace {

struct Operands {
  bool a_turned, b_turned;
};
struct Case {
  uint32_t m, n, k;
  Operands turned = {};
  uint32_t gap = 0;  // values behind each row
  uint32_t batch = 1;
  bool one_b = false;  // all matrices of the batch have the same b
  float alpha = 1, beta = 0;
};

uint32_t bytes_of(uint32_t type) { return type == kGemmF32 ? 4 : 2; }

// A value as the type has it, which float32 gives exactly.
float rounded(uint32_t type, float value) {
  if (type == kGemmF32) return value;
  if (type == kGemmF16) return float(reference::halves({value})[0]);
  return __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, value) & 0xffff0000u);
}

void write_value(uint32_t type, float value, uint8_t* to) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  const auto brain = uint16_t(bits >> 16);
  if (type == kGemmF32) memcpy(to, &bits, 4);
  if (type == kGemmF16) memcpy(to, reference::half_bytes({value}).data(), 2);
  if (type == kGemmBf16) memcpy(to, &brain, 2);
}

double read_value(uint32_t type, const uint8_t* from) {
  float value;
  uint16_t bits;
  if (type == kGemmF32) return memcpy(&value, from, 4), double(value);
  memcpy(&bits, from, 2);
  if (type == kGemmBf16) return double(__builtin_bit_cast(float, uint32_t(bits) << 16));
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const double size = exponent == 31 ? (mantissa ? NAN : INFINITY)
                      : exponent     ? std::ldexp(1024 + mantissa, exponent - 25)
                                     : std::ldexp(mantissa, -24);
  return bits & 0x8000 ? -size : size;
}

// Matrices in memory, with gaps that hold 0xff: NaN.
struct Memory {
  uint32_t type, rows, columns, stride, count;
  std::vector<uint8_t> bytes;
  std::vector<Values> values;  // of each matrix, without gaps

  uint64_t matrix_values() const { return uint64_t(rows) * stride; }
  void each(const auto& visit) {
    for (uint32_t i = 0; i < count; ++i)
      for (uint32_t r = 0; r < rows; ++r)
        for (uint32_t c = 0; c < columns; ++c)
          visit(i, &bytes[(i * matrix_values() + uint64_t(r) * stride + c) * bytes_of(type)]);
  }
};

Memory random_memory(uint32_t type, uint32_t rows, uint32_t columns, uint32_t gap, uint32_t count,
                     Random& random) {
  Memory made = {type, rows, columns, columns + gap, count, {}, {}};
  made.bytes.assign(count * made.matrix_values() * bytes_of(type), 0xff);
  made.values.resize(count);
  made.each([&](uint32_t i, uint8_t* at) {
    const float value = rounded(type, gaussians(1, random)[0]);
    write_value(type, value, at);
    made.values[i].push_back(double(value));
  });
  return made;
}

// Rounding errors of y's type, and of sums in float32. A few results may all be sums that cancel.
double limit_of(uint32_t y_type, const KernelRow& row, size_t count) {
  const double unit = y_type == kGemmF32 ? 0 : y_type == kGemmF16 ? 0x1p-11 : 0x1p-8;
  return unit * unit + (row.arithmetic == Arithmetic::Lanes ? 1e-11 : 1e-9) * (count < 16 ? 100 : 1);
}

class GemmCase {
 public:
  GemmCase(Rig& rig, const Case& of, uint32_t type, uint32_t y_type, Random& random) : rig_(rig), case_(of) {
    const auto memory = [&](uint32_t of_type, uint32_t rows, uint32_t columns, uint32_t count) {
      return random_memory(of_type, rows, columns, of.gap, count, random);
    };
    const auto [a_turned, b_turned] = of.turned;
    a_ = memory(type, a_turned ? of.k : of.m, a_turned ? of.m : of.k, of.batch);
    b_ = memory(type, b_turned ? of.n : of.k, b_turned ? of.k : of.n, of.one_b ? 1 : of.batch);
    y_ = memory(y_type, of.m, of.n, of.batch);
    Call::Gemm shape = {.m = of.m,
                        .n = of.n,
                        .k = of.k,
                        .batch = of.batch,
                        .type = type,
                        .y_type = y_type,
                        .a_turned = a_turned,
                        .b_turned = b_turned};
    shape.a_stride = a_.stride, shape.b_stride = b_.stride, shape.y_stride = y_.stride;
    if (of.batch > 1) {
      shape.a_batch = uint32_t(a_.matrix_values()), shape.y_batch = uint32_t(y_.matrix_values());
      shape.b_batch = of.one_b ? 0 : uint32_t(b_.matrix_values());
    }
    shape.alpha = of.alpha, shape.beta = of.beta;
    call_ = CallMaker{}.gemm(rig.put(a_.bytes), rig.put(b_.bytes), rig.put(y_.bytes), shape);
    for (uint32_t i = 0; i < of.batch; ++i) {
      const Values one = reference::gemm(a_.values[i], b_.values[of.one_b ? 0 : i], y_.values[i],
                                         {of.m, of.n, of.k, a_turned, b_turned, of.alpha, of.beta});
      expected_.insert(expected_.end(), one.begin(), one.end());
    }
  }

  Call& call() { return call_; }

  void run(const KernelRow& row) {
    restore();
    rig_.run({&call_, 1}, row, 1);
    const std::vector<uint8_t> first = rig_.get<uint8_t>(call_.slot[kY]);
    require_right(first, row);
    if (!rig_.repeats() || case_.beta != 0) return;
    rig_.run({&call_, 1}, row, 1);
    expect(rig_.get<uint8_t>(call_.slot[kY]) == first, std::string(row.name) + ": other bits in another run");
  }

 private:
  void restore() {
    const Slice before = rig_.put(y_.bytes);
    call_.slot[kY] = before;
  }

  void require_right(std::vector<uint8_t> bytes, const KernelRow& row) {
    Memory after = y_;
    after.bytes.swap(bytes);
    double error = 0, size = 0;
    size_t at = 0;
    after.each([&](uint32_t, uint8_t* value) {
      const double y = read_value(after.type, value), right = expected_[at++];
      error += (y - right) * (y - right), size += right * right;
      memset(value, 0xff, bytes_of(after.type));
    });
    char text[160];
    const double limit = limit_of(after.type, row, at);
    format_text(text, sizeof text, "%s: [%u][%u] . [%u][%u] of type %u: NMSE %.3g of at most %.3g", row.name,
                case_.m, case_.k, case_.k, case_.n, a_.type, error / size, limit);
    expect(error / size <= limit, text);
    const auto is_gap = [](uint8_t byte) { return byte == 0xff; };
    expect(std::all_of(after.bytes.begin(), after.bytes.end(), is_gap),
           std::string(row.name) + ": wrote between the rows of y");
  }

  Rig& rig_;
  const Case case_;
  Memory a_, b_, y_;
  Call call_;
  Values expected_;
};

constexpr struct {
  uint32_t type, y_type;
} kTypes[] = {{kGemmF32, kGemmF32},
              {kGemmF16, kGemmF32},
              {kGemmF16, kGemmF16},
              {kGemmBf16, kGemmF32},
              {kGemmBf16, kGemmBf16}};

void run_case(Rig& rig, const Case& each, uint32_t type, uint32_t y_type, Random& random) {
  GemmCase one(rig, each, type, y_type, random);
  for (const KernelRow* row : rig.rows({&one.call(), 1}, 1)) one.run(*row);
  rig.reset();
}

}  // namespace

void check_gemm(Rig& rig) {
  Random random(43);
  constexpr Case kCases[] = {{128, 128, 64},
                             {1, 1, 1},
                             {3, 5, 7, {}, 3},
                             {17, 33, 9, {}, 1, 3},
                             {65, 130, 100, {}, 0, 2, true, 0.5f, -1.25f},
                             {64, 256, 96, {}, 8, 2, false, 2},
                             {130, 70, 41, {}, 2, 1, false, 1, 0.5f},
                             {1, 200, 300},
                             {200, 1, 33, {}, 7}};
  uint32_t turn = 0;  // every type and shape has two of the four ways in which operands lie, and a type all
  for (const auto& [type, y_type] : kTypes)
    for (Case each : kCases)
      for (uint32_t way = 0; way < 2; ++way) {
        const uint32_t ways = turn++ + way;
        each.turned = {(ways & 1) != 0, (ways & 2) != 0};
        run_case(rig, each, type, y_type, random);
      }
  rig.require_all_run(Op::Gemm);
}

}  // namespace greta::selftest
