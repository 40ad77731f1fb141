// The functions of greta_compute.h for embeddings, caches and attention: what reads a step's rows.
#include <cmath>

#include "api/compute/work.h"

using namespace greta;

static_assert(GRETA_TYPE_F32 == 0 && GRETA_TYPE_F16 == 1);

namespace greta {
namespace {

// A cache of the caller's, in its pages.
struct CacheView {
  std::shared_ptr<BufferObject> buffer;
  Slice pool;
  CachePages pages;
};

// Which of the kernels' cache types has this number in GGUF.
bool find_cache_type(uint32_t gguf_id, uint32_t* out, QuantType* type) {
  for (*out = 0; cache_quant(*out, type); ++*out)
    if (quant_info(*type).gguf_id == gguf_id) return true;
  return false;
}

// Gives the pages that a cache has, and its bytes.
Status read_pages(const greta_cache& given, const char* role, CachePages* out, uint64_t* out_bytes) {
  QuantType type = QuantType::f32;
  if (!find_cache_type(given.type, &out->type, &type))
    return fail(Code::Unsupported, "%s: a cache of type %u; f32, f16 and q8_0 are computed with", role,
                given.type);
  const uint32_t block = quant_info(type).block;
  const uint64_t values = uint64_t(given.heads) * given.width;
  if (!values || given.width > kMaxHeadWidth || given.width % block || !given.pages || values > 1u << 22)
    return fail(Code::Argument,
                "%s: %u pages of %u heads of %u values of %s; widths are multiples of %u up to %u", role,
                given.pages, given.heads, given.width, quant_info(type).name, block, kMaxHeadWidth);
  out->bytes = uint32_t(quant_bytes(type, values * kPageTokens));
  *out_bytes = uint64_t(out->bytes) * given.pages;
  return {};
}

Status read_cache(const greta_compute& compute, const greta_cache& given, const char* role, CacheView* out) {
  uint64_t bytes = 0;
  GRETA_TRY(read_pages(given, role, &out->pages, &bytes));
  GRETA_TRY(within(compute.find(given.buffer, &out->buffer), "%s", role));
  if (given.offset % kWeightAlignment)
    return fail(Code::Argument, "%s: the offset %llu is no multiple of %llu", role,
                (unsigned long long)given.offset, (unsigned long long)kWeightAlignment);
  return slice_of(*out->buffer, role, given.offset, bytes, &out->pool);
}

Status need_apart_from_cache(const TensorView& y, const CacheView& cache, const char* role) {
  if (!overlaps(y.slice, cache.pool)) return {};
  return fail(Code::Argument, "%s and %s overlap in one buffer", y.role, role);
}

// [rows][heads][width] without gaps.
Status read_heads(const greta_compute& compute, const greta_tensor& given, const char* role, uint64_t width,
                  TensorView* out) {
  RowsView rows;
  GRETA_TRY(read_tensor(compute, given, role, out));
  GRETA_TRY(read_rows(*out, &rows));
  GRETA_TRY(need_dense(*out, rows));
  if (out->rank == 3 && out->width() == width && out->shape[0] <= kMaxStepTokens) return {};
  return fail(Code::Argument,
              "%s: rank %u, rows of %llu values; [rows][heads][%llu] is wanted, of at most %u rows", role,
              out->rank, (unsigned long long)out->width(), (unsigned long long)width, kMaxStepTokens);
}

}  // namespace
}  // namespace greta

greta_status greta_cache_size(const greta_compute* compute, const greta_cache* cache, uint64_t* out_bytes) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(compute));
    GRETA_TRY(need(cache, "cache"));
    GRETA_TRY(need(out_bytes, "out_bytes"));
    CachePages unused;
    return read_pages(*cache, "cache", &unused, out_bytes);
  });
}

static Status read_embed(const greta_compute& compute, const greta_embed_call& given, Work* work) {
  TensorView y;
  RowsView rows;
  Tensor table;
  std::shared_ptr<BufferObject> buffer;
  GRETA_TRY(read_weights(compute, given.table, false, &buffer, &table));
  GRETA_TRY(read_tensor(compute, given.y, "y", &y));
  GRETA_TRY(read_rows(y, &rows));
  GRETA_TRY(need_dense(y, rows));
  if (y.rank != 2 || y.width() != table.depth || rows.rows > kMaxStepTokens)
    return fail(Code::Argument, "embed: a table [%u][%u], and y of %llu rows of %llu; at most %u rows",
                table.n, table.depth, (unsigned long long)rows.rows, (unsigned long long)y.width(),
                kMaxStepTokens);
  if (overlaps(y.slice, table.slice)) return fail(Code::Argument, "y and the table overlap");
  work->call = CallMaker{}.embed(table, {}, {}, given.scale ? given.scale : 1);
  work->use(buffer);
  work->operand(kY, y, y.width());
  work->rows = rows.rows;
  work->needs_step = true;
  return {};
}
GRETA_OPERATION(embed)

static Status read_kv_write(const greta_compute& compute, const greta_kv_write_call& given, Work* work) {
  TensorView x;
  CacheView cache;
  GRETA_TRY(check_reserved(given.reserved));
  GRETA_TRY(read_cache(compute, given.cache, "cache", &cache));
  GRETA_TRY(read_heads(compute, given.x, "x", given.cache.width, &x));
  GRETA_TRY(need_apart_from_cache(x, cache, "the cache"));
  if (x.shape[1] != given.cache.heads)
    return fail(Code::Argument, "kv_write: x has %llu heads, the cache %u", (unsigned long long)x.shape[1],
                given.cache.heads);
  work->call = CallMaker{}.kv_write({}, {given.cache.heads, given.cache.width},
                                    {cache.pool, cache.pages.bytes, cache.pages.type});
  work->use(cache.buffer);
  work->operand(kX, x, x.shape[1] * x.width());
  work->rows = x.shape[0];
  work->needs_step = true;
  work->most_pages = given.cache.pages;
  return {};
}
GRETA_OPERATION(kv_write)

static Status read_attention(const greta_compute& compute, const greta_attention_call& given, Work* work) {
  TensorView q, y, sinks;
  CacheView keys, values;
  bool lone_rows = false;
  GRETA_TRY(check_reserved(given.reserved));
  GRETA_TRY(read_flag(given.lone_rows, "lone_rows", &lone_rows));
  GRETA_TRY(read_cache(compute, given.keys, "keys", &keys));
  GRETA_TRY(read_cache(compute, given.values, "values", &values));
  GRETA_TRY(read_heads(compute, given.q, "q", given.keys.width, &q));
  GRETA_TRY(read_heads(compute, given.y, "y", given.values.width, &y));
  const uint64_t heads = q.shape[1];
  GRETA_TRY(read_vector(compute, given.sinks, "sinks", heads, true, &sinks));
  if (y.shape[0] != q.shape[0] || y.shape[1] != heads || given.keys.heads != given.values.heads ||
      heads % given.keys.heads || heads > UINT32_MAX)
    return fail(Code::Argument,
                "attention: q of %llu rows of %llu heads, y of %llu of %llu; keys have %u heads, values %u",
                (unsigned long long)q.shape[0], (unsigned long long)heads, (unsigned long long)y.shape[0],
                (unsigned long long)y.shape[1], given.keys.heads, given.values.heads);
  if (!std::isfinite(given.scale) || !(given.cap >= 0))
    return fail(Code::Argument, "attention: a scale of %g and a cap of %g", double(given.scale),
                double(given.cap));
  GRETA_TRY(need_apart(y, q, false));
  GRETA_TRY(need_apart(y, sinks, false));
  GRETA_TRY(need_apart_from_cache(y, keys, "the keys"));
  GRETA_TRY(need_apart_from_cache(y, values, "the values"));
  const float scale = given.scale ? given.scale : 1 / std::sqrt(float(given.keys.width));
  work->call = CallMaker{}.attention({}, {},
                                     {uint32_t(heads), given.keys.heads, given.keys.width, given.values.width,
                                      scale, given.cap, given.window},
                                     {keys.pool, keys.pages.bytes, keys.pages.type},
                                     {values.pool, values.pages.bytes, values.pages.type}, {});
  // Of a few rows each splits its positions anyway.
  if (lone_rows && q.shape[0] > kMaxSplitTokens) work->call.attention.rows = AttentionRows::Lone;
  work->use(keys.buffer);
  work->use(values.buffer);
  work->operand(kX, q, heads * q.width());
  work->operand(kY, y, heads * y.width());
  work->operand(kTable, sinks, 0);
  work->rows = q.shape[0];
  work->needs_step = true;
  work->needs_lone_rows = lone_rows;
  work->most_pages = std::min(given.keys.pages, given.values.pages);
  return {};
}
GRETA_OPERATION(attention)
