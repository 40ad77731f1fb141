// The sizes of layers that keep a state.
#include "engine/model/shape_reader.h"

namespace greta {

static Status check_state(const ShapeReader& r, const RecurrentShape& shape) {
  if (shape.stride() <= UINT32_MAX / sizeof(float)) return {};
  return fail(Code::Unsupported, "%s: a state of %llu bytes in a layer (ssm.inner_size, ssm.state_size)",
              r.gguf.name(), (unsigned long long)(shape.stride() * sizeof(float)));
}

Status read_recurrent_layers(ShapeReader& r, Shape* s) {
  if (r.arch.recurrence == Recurrence::None) return {};
  uint32_t period = r.arch.attention_period;
  if (period) r.u32("full_attention_interval", 1, kMaxLayers, &period);
  std::vector<uint32_t> recurrent(s->layers);
  for (uint32_t l = 0; l < s->layers; ++l)
    recurrent[l] = period               ? (l + 1) % period != 0
                   : r.arch.beside      ? 1
                   : r.arch.lone_blocks ? !s->each[l].attends() && !s->each[l].ffn_width
                                        : !s->each[l].attends();
  if (period && r.has("attention.recurrent_layers"))
    r.in_layers("attention.recurrent_layers", *s, &recurrent);
  for (uint32_t l = 0; l < s->layers; ++l) {
    if (!recurrent[l]) continue;
    if (!r.arch.beside) s->each[l].heads = s->each[l].kv_heads = 0;
    s->each[l].recurrent = true;
    ++s->recurrent_layers;
  }
  return r.status;
}

Status read_recurrence(ShapeReader& r, Shape* s) {
  RecurrentShape& shape = s->recurrence;
  if (r.arch.recurrence == Recurrence::ShortConv) {
    r.u32("shortconv.l_cache", 2, kMaxConvWidth, &shape.conv_width, true);
    shape.channels = s->width;
    return r.status;
  }
  if (r.arch.recurrence == Recurrence::Selective) {
    bool norms = false;
    r.u32("ssm.conv_kernel", 2, kMaxConvWidth, &shape.conv_width, true);
    r.u32("ssm.state_size", 1, kMaxScanKeys, &shape.key_width, true);
    r.u32("ssm.time_step_rank", 1, kMaxWidth, &shape.rank, true);
    r.u32("ssm.inner_size", 1, kMaxWidth, &shape.channels, true);
    r.flag("ssm.dt_b_c_rms", &norms);
    GRETA_TRY(r.status);
    if (norms)
      return fail(Code::Unsupported, "%s: %sssm.dt_b_c_rms is true, norms without a gain", r.gguf.name(),
                  r.prefix.c_str());
    shape.heads = shape.channels;
    shape.groups = shape.value_width = 1;
    return check_state(r, shape);
  }
  uint32_t inner = 0;
  r.u32("ssm.conv_kernel", 2, kMaxConvWidth, &shape.conv_width, true);
  r.u32("ssm.state_size", 1, kMaxScanKeys, &shape.key_width, true);
  r.u32("ssm.time_step_rank", 1, kMaxHeads, &shape.heads, true);
  r.u32("ssm.group_count", 1, kMaxHeads, &shape.groups, true);
  r.u32("ssm.inner_size", 1, kMaxWidth, &inner, true);
  GRETA_TRY(r.status);
  if (inner % shape.heads || shape.heads % shape.groups)
    return fail(Code::File,
                "%s: %u values in %u heads that share keys in %u groups (ssm.inner_size, ssm.time_step_rank, "
                "ssm.group_count)",
                r.gguf.name(), inner, shape.heads, shape.groups);
  shape.value_width = inner / shape.heads;
  shape.channels = inner + 2 * shape.groups * shape.key_width;
  return check_state(r, shape);
}

}  // namespace greta
