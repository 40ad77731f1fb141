// gemm: y = alpha * a . b + beta * y, over a batch of matrices. Group = a tile of y of one matrix.
#include "compute/ops/parts.h"

namespace greta {

constexpr uint32_t kMostGroups = 65535;     // along y and z of a grid; also along x, for simplicity
constexpr uint32_t kMostStride = 1u << 22;  // of matrices whose tiles are reached by offsets of 32 bits
constexpr uint32_t kBandRows = 2048;        // of y, see GemmBlock::band

static uint64_t value_bytes(uint32_t type) { return type == kGemmF32 ? 4 : 2; }

// Values from the first to the last of `batch` matrices.
static uint64_t span_of(uint64_t rows, uint64_t columns, uint64_t stride, uint64_t batch,
                        uint64_t batch_stride) {
  return (batch - 1) * batch_stride + (rows - 1) * stride + columns;
}

static bool check_operand(const char* name, const Slice& slice, uint64_t values, uint64_t bytes,
                          Reason& why) {
  if (!slice.buffer || slice.bytes >= values * bytes) return true;
  return why.no("gemm: %s reaches over %llu values of %llu bytes, its slice has %llu bytes", name,
                (unsigned long long)values, (unsigned long long)bytes, (unsigned long long)slice.bytes);
}

static bool check_shape(const Call& call, Reason& why) {
  const Call::Gemm& g = call.gemm;
  if (!g.m || !g.n || !g.k || !g.batch)
    return why.no("gemm: %u matrices [%u][%u] . [%u][%u] are empty", g.batch, g.m, g.k, g.k, g.n);
  if (g.type >= kGemmTypes || (g.y_type != kGemmF32 && g.y_type != g.type))
    return why.no("gemm: y of type %u for operands of type %u", g.y_type, g.type);
  const uint32_t a_rows = g.a_turned ? g.k : g.m, a_columns = g.a_turned ? g.m : g.k;
  const uint32_t b_rows = g.b_turned ? g.n : g.k, b_columns = g.b_turned ? g.k : g.n;
  if (g.a_stride < a_columns || g.b_stride < b_columns || g.y_stride < g.n)
    return why.no("gemm: rows of %u, %u and %u values every %u, %u and %u", a_columns, b_columns, g.n,
                  g.a_stride, g.b_stride, g.y_stride);
  if (g.batch > 1 && g.y_batch < span_of(g.m, g.n, g.y_stride, 1, 0))
    return why.no("gemm: matrices y [%u] rows every %u values, every %u values", g.m, g.y_stride, g.y_batch);
  const uint64_t bytes = value_bytes(g.type);
  return check_operand("a", call.slot[kX], span_of(a_rows, a_columns, g.a_stride, g.batch, g.a_batch), bytes,
                       why) &&
         check_operand("b", call.slot[kX2], span_of(b_rows, b_columns, g.b_stride, g.batch, g.b_batch), bytes,
                       why) &&
         check_operand("y", call.slot[kY], span_of(g.m, g.n, g.y_stride, g.batch, g.y_batch),
                       value_bytes(g.y_type), why);
}

static bool fits(std::span<const Call> calls, const KernelRow& row, Reason& why) {
  if (!check_single(calls, why) || !check_shape(calls[0], why)) return false;
  const Call::Gemm& g = calls[0].gemm;
  if (row.arithmetic == Arithmetic::Matrices && g.type != kGemmF16)
    return why.no("gemm: its matrices are float16, these of type %u", g.type);
  if (row.arithmetic == Arithmetic::Brain && g.type != kGemmBf16)
    return why.no("gemm: its matrices are bfloat16, these of type %u", g.type);
  if (row.rank && std::max({g.a_stride, g.b_stride, g.y_stride}) > kMostStride)
    return why.no("gemm: rows every %u, %u and %u values, it takes at most %u", g.a_stride, g.b_stride,
                  g.y_stride, kMostStride);
  const uint64_t down = divide_up(g.m, row.tile), across = divide_up(g.n, row.tile_tokens);
  if (std::max({down, across, uint64_t(g.batch)}) > kMostGroups)
    return why.no("gemm: %llu x %llu tiles of %u matrices, at most %u each way", (unsigned long long)down,
                  (unsigned long long)across, g.batch, kMostGroups);
  return true;
}

static void groups(std::span<const Call> calls, const KernelRow& row, uint32_t, uint32_t (&out)[3]) {
  const Call::Gemm& g = calls[0].gemm;
  out[0] = uint32_t(divide_up(g.n, row.tile_tokens));
  out[1] = uint32_t(divide_up(g.m, row.tile));
  out[2] = g.batch;
}

// Columns of A that are brought at a time. On an H100 8192 cubed ran at 296 TFLOP/s with 32 columns and at
// 244 with 64; 1024 cubed at 155 with 64 columns and tiles of 128 x 64.
static uint32_t step_of(const KernelRow& row) {
  if (row.arithmetic == Arithmetic::Lanes) return 16;  // gemm_tiles.comp
  return row.tile * row.tile_tokens < 128 * 128 ? 64 : 32;
}

static bool is_whole(const Call::Gemm& g, const KernelRow& row) {
  const auto starts_words = [](uint32_t stride, uint32_t batch, uint64_t bytes) {
    return stride * bytes % 16 == 0 && batch * bytes % 16 == 0;
  };
  return g.m % row.tile == 0 && g.n % row.tile_tokens == 0 && g.k % step_of(row) == 0 &&
         starts_words(g.a_stride, g.a_batch, value_bytes(g.type)) &&
         starts_words(g.b_stride, g.b_batch, value_bytes(g.type)) &&
         starts_words(g.y_stride, g.y_batch, value_bytes(g.y_type));
}

static void pack(std::span<const Call> calls, const KernelRow& row, Launch* out) {
  const Call& call = calls[0];
  const Call::Gemm& g = call.gemm;
  GemmBlock block = {};
  block.a = call.slot[kX].address();
  block.b = call.slot[kX2].address();
  block.y = call.slot[kY].address();
  block.m = g.m, block.n = g.n, block.k = g.k;
  block.a_stride = g.a_stride, block.b_stride = g.b_stride, block.y_stride = g.y_stride;
  block.a_batch = g.a_batch, block.b_batch = g.b_batch, block.y_batch = g.y_batch;
  block.alpha = g.alpha, block.beta = g.beta;
  block.type = g.type, block.y_type = g.y_type;
  block.a_turned = g.a_turned, block.b_turned = g.b_turned;
  block.tile = row.tile, block.tile_tokens = row.tile_tokens;
  block.whole = is_whole(g, row);
  block.step = step_of(row);
  block.band = row.arithmetic == Arithmetic::Lanes ? 1 : std::max(kBandRows / row.tile, 1u);
  out->set_block(block);
  out->read(call.slot[kX]);
  out->read(call.slot[kX2]);
  out->note(call.slot[kY], g.beta != 0 ? Access::kReadWrite : Access::kWrite, false);
}

static Cost cost(std::span<const Call> calls, uint32_t, uint32_t) {
  const Call::Gemm& g = calls[0].gemm;
  const uint64_t m = g.m, n = g.n, k = g.k, y_times = g.beta != 0 ? 2 : 1;
  return {g.batch * ((m + n) * k * value_bytes(g.type) + y_times * m * n * value_bytes(g.y_type)),
          2 * g.batch * m * n * k};
}

extern const OpInfo op_gemm = {fits, groups, pack, cost};

}  // namespace greta
