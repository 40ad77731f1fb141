// The functions of greta_compute.h for weights in groups of 4 bits.
#include "api/handles.h"
#include "compute/groups.h"
#include "greta_compute.h"

using namespace greta;

static_assert(uint32_t(GroupOrder::Compressed) == GRETA_GROUP_ORDER_COMPRESSED &&
              uint32_t(GroupOrder::Awq) == GRETA_GROUP_ORDER_AWQ);

static Status read_groups(const greta_groups* given, GroupedWeights* out) {
  greta_groups g;
  GRETA_TRY(need(given, "groups"));
  GRETA_TRY(read_options(given, &g));
  GRETA_TRY(check_reserved(g.reserved));
  if (enum_number(g.order) < 0 || enum_number(g.order) >= int(GroupOrder::count))
    return fail(Code::Argument, "order is %d, expected a greta_group_order", enum_number(g.order));
  if (g.scale_type != GRETA_TYPE_F16 && g.scale_type != GRETA_TYPE_BF16)
    return fail(Code::Argument, "scale_type is %u, expected %d (float16) or %d (bfloat16)", g.scale_type,
                GRETA_TYPE_F16, GRETA_TYPE_BF16);
  GRETA_TRY(need(g.quants, "quants"));
  GRETA_TRY(need(g.scales, "scales"));
  GRETA_TRY(read_flag(g.round_scales, "round_scales", &out->round_scales));
  out->order = GroupOrder(g.order);
  out->n = g.n, out->depth = g.depth, out->group = g.group;
  out->bfloat_scales = g.scale_type == GRETA_TYPE_BF16;
  out->quants = static_cast<const uint8_t*>(g.quants), out->quant_bytes = g.quant_bytes;
  out->scales = static_cast<const uint8_t*>(g.scales), out->scale_bytes = g.scale_bytes;
  out->zeros = static_cast<const uint8_t*>(g.zeros), out->zero_bytes = g.zero_bytes;
  return {};
}

greta_status greta_groups_type(const greta_groups* given, uint32_t* out_type) {
  return fenced([&]() -> Status {
    GroupedWeights weights;
    GRETA_TRY(need(out_type, "out_type"));
    GRETA_TRY(read_groups(given, &weights));
    GRETA_TRY(check_groups(weights));
    *out_type = quant_info(type_of_groups(weights)).gguf_id;
    return {};
  });
}

greta_status greta_groups_write(const greta_groups* given, uint32_t type, uint64_t first, uint64_t count,
                                void* out, uint64_t out_bytes) {
  return fenced([&]() -> Status {
    GroupedWeights weights;
    QuantType to;
    GRETA_TRY(need(out, "out"));
    GRETA_TRY(read_groups(given, &weights));
    GRETA_TRY(check_group_sizes(weights));
    if (!quant_from_gguf(type, &to)) return fail(Code::Argument, "groups: there is no type %u", type);
    if (first > weights.n || count > weights.n - first)
      return fail(Code::Argument, "rows %llu + %llu are outside the %llu rows", (unsigned long long)first,
                  (unsigned long long)count, (unsigned long long)weights.n);
    const uint64_t wanted = quant_bytes(to, count * weights.depth);
    if (out_bytes != wanted)
      return fail(Code::Argument, "out: %llu bytes, %llu rows of %llu values of %s have %llu",
                  (unsigned long long)out_bytes, (unsigned long long)count, (unsigned long long)weights.depth,
                  quant_info(to).name, (unsigned long long)wanted);
    return write_groups(weights, to, first, count, static_cast<uint8_t*>(out));
  });
}
