// Checks that no op swallows NaN or infinity. A maximum, a limit or an integer may give way to another
// number; then a damaged model would speak as if nothing were wrong. Products are checked by MatmulCase and
// the cases of experts.
#include <algorithm>
#include <cmath>

#include "selftest/checks/attention_case.h"
#include "selftest/checks/checks.h"

namespace greta::selftest {

namespace {

constexpr Live kSomeLive[] = {{8, 7}, {32, 29}, {1, 1}};

std::string told_by(const KernelRow& row, uint32_t bucket) {
  return std::string(row.name) + " of what is not finite, bucket " + std::to_string(bucket);
}

std::vector<float> floats_of(const Values& values) { return {values.begin(), values.end()}; }

// The values of rows in an activation format.
std::vector<float> decoded(std::vector<uint8_t> bytes, Form form, uint32_t width, uint32_t rows) {
  bytes.resize(rows * form_row_bytes(form, width));
  if (form == Form::Q8) return floats_of(reference::decode_q8(bytes, width));
  if (form == Form::Q8X16) return floats_of(reference::decode_q8x16(bytes, width));
  std::vector<float> y;
  for (size_t at = 0; at < bytes.size(); at += 2) y.push_back(float(reference::half_at(&bytes[at])));
  return y;
}

// Values that share a scale: those that one of them takes with it.
uint32_t shared_scale(Form form) { return form == Form::Q8 ? 32 : form == Form::Q8X16 ? 16 : 1; }

// Fails unless the group of values of value `at` tells of it, and only that.
void require_told(const std::vector<float>& y, size_t at, size_t group, const std::string& what) {
  const size_t first = at / group * group;
  require_finite(y, 0, first, what);
  require_not_finite(y, first, group, what);
  require_finite(y, first + group, y.size() - first - group, what);
}

// Runs all rows of a call, and of the call with y in an activation format. Value `at` of y must tell of what
// is not finite, and the others must not.
void check_call(Rig& rig, const Call& call, const Live& live, uint32_t width, size_t at) {
  for (const KernelRow* row : rig.rows({&call, 1}, live.bucket)) {
    rig.poison(call.slot[kY]);
    rig.run({&call, 1}, *row, live.bucket);
    std::vector<float> y = rig.get<float>(call.slot[kY]);
    y.resize(size_t(live.tokens) * width);
    require_told(y, at, 1, told_by(*row, live.bucket));
  }
  for (const Form form : {Form::Q8X16, Form::F16})
    run_with_form(rig, call, form, live, width,
                  [&](const KernelRow& row, const std::vector<float>&, const std::vector<uint8_t>& rounded) {
                    require_told(decoded(rounded, form, width, live.tokens), at, shared_scale(form),
                                 told_by(row, live.bucket) + ", rounded");
                  });
}

}  // namespace

void check_norm_of_not_finite(Rig& rig) {
  Random random(21);
  const uint32_t width = 288;
  for (const Live& live : kSomeLive)
    for (const float value : kNotFinite) {
      StepRows steps;
      steps.add_tokens(live.tokens);
      const size_t count = size_t(live.tokens) * width;
      auto x = gaussians(count, random), gain = gaussians(width, random);
      const auto residual = gaussians(count, random);
      const CallMaker make{steps.put(rig)};
      const Slice y = rig.room(uint64_t(live.bucket) * width * 4);
      // One gain: that value of each token, also where the result is added to a residual.
      gain[100] = value;
      const Call norm = make.norm(put_vector(rig, gain), rig.put_padded(x, live.bucket * width), y, 1e-5f);
      if (live.tokens == 1) check_call(rig, norm, live, width, 100);
      Call calls[] = {
          norm, make.add({}, y, {}, width, 0.7f),
          make.convert({}, rig.room(live.bucket * form_row_bytes(Form::Q8X16, width)), Form::Q8X16, width)};
      for (const KernelRow* row : rig.rows(calls, live.bucket)) {
        calls[1].slot[kX] = calls[1].slot[kY] = calls[2].slot[kX] =
            rig.put_padded(residual, live.bucket * width);
        rig.run(calls, *row, live.bucket);
        const auto rounded = decoded(rig.get<uint8_t>(calls[2].slot[kY]), Form::Q8X16, width, live.tokens);
        for (uint32_t t = 0; t < live.tokens; ++t)
          require_told({&rounded[t * width], &rounded[t * width] + width}, 100, 16,
                       told_by(*row, live.bucket) + ", rounded");
      }
      // One value of x: the factor of that token and so all of its values.
      gain[100] = 1;
      x[count - 1] = value;
      const Call of_x = make.norm(put_vector(rig, gain), rig.put_padded(x, live.bucket * width), y, 1e-5f);
      for (const KernelRow* row : rig.rows({&of_x, 1}, live.bucket)) {
        rig.poison(y);
        rig.run({&of_x, 1}, *row, live.bucket);
        const std::vector<float> made = rig.get<float>(y);
        require_finite(made, 0, count - width, told_by(*row, live.bucket));
        require_not_finite(made, count - 1, 1, told_by(*row, live.bucket));
      }
      rig.reset();
    }
}

void check_gate_of_not_finite(Rig& rig) {
  Random random(22);
  const uint32_t width = 96;
  for (const Live& live : kSomeLive)
    for (const uint32_t activation :
         {uint32_t(kActivationSilu), uint32_t(kActivationGelu), uint32_t(kActivationClamped)})
      for (const float value : kNotFinite)
        for (const bool in_up : {false, true}) {
          StepRows steps;
          steps.add_tokens(live.tokens);
          auto gate = gaussians(size_t(live.tokens) * width, random), up = gaussians(gate.size(), random);
          const size_t at = gate.size() - 50;
          (in_up ? up : gate)[at] = value;
          const Slice gate_slice = rig.put_padded(gate, live.bucket * width),
                      up_slice = rig.put_padded(up, live.bucket * width),
                      y = rig.room(uint64_t(live.bucket) * width * 4), step = steps.put(rig);
          check_call(rig, CallMaker{step}.gate(gate_slice, up_slice, y, width, activation), live, width, at);
          rig.reset();
        }
}

void check_softcap_of_not_finite(Rig& rig) {
  Random random(23);
  const uint32_t width = 96;
  for (const Live& live : kSomeLive)
    for (const float value : kNotFinite) {
      StepRows steps;
      for (uint32_t t = 0; t < live.tokens; ++t) steps.add(t, 0, t, true);
      auto x = gaussians(size_t(live.tokens) * width, random, 40);
      const size_t at = x.size() - 50;
      x[at] = value;
      const Slice from = rig.put_padded(x, live.bucket * width),
                  y = rig.room(uint64_t(live.bucket) * width * 4), step = steps.put(rig);
      Call call = CallMaker{step}.softcap(from, y, width, 30, 0.5f);
      call.rows_of = kRowsOutputs;
      check_call(rig, call, live, width, at);
      rig.reset();
    }
}

void check_convert_of_not_finite(Rig& rig) {
  Random random(24);
  const uint32_t width = 256;
  for (const Live& live : kSomeLive)
    for (const float value : kNotFinite) {
      StepRows steps;
      steps.add_tokens(live.tokens);
      auto x = gaussians(size_t(live.tokens) * width, random);
      const size_t at = x.size() - 50;
      x[at] = value;
      const Slice from = rig.put_padded(x, live.bucket * width);
      const CallMaker make{steps.put(rig)};
      for (const Form form : {Form::Q8, Form::Q8X16, Form::F16}) {
        const Call call =
            make.convert(from, rig.room(live.bucket * form_row_bytes(form, width)), form, width);
        for (const KernelRow* row : rig.rows({&call, 1}, live.bucket)) {
          rig.run({&call, 1}, *row, live.bucket);
          require_told(decoded(rig.get<uint8_t>(call.slot[kY]), form, width, live.tokens), at,
                       shared_scale(form), told_by(*row, live.bucket));
        }
      }
      rig.reset();
    }
}

namespace {

// What is not finite: a query, a key or a value of the newest position of a sequence.
enum class Where { Query, Key, Value };

struct AttentionShape {
  uint32_t heads, kv_heads, width, length, tokens, bucket;
  float softcap;
  uint32_t cache_type;
};

// Writes one position of a cache whose head 0 has the value, by each row in turn.
void write_spoiled(Rig& rig, StepRows& steps, Cache& cache, uint32_t position, float value, Random& random) {
  StepRows one = steps;
  one.rows.clear();
  one.add(0, 0, position);
  steps.table = one.table;
  auto x = gaussians(cache.heads * cache.width, random);
  x[3] = value;
  const Call call = CallMaker{one.put(rig)}.kv_write(rig.put_padded(x, x.size()), {cache.heads, cache.width},
                                                     {cache.pool, cache.bytes, cache.type});
  QuantType type;
  cache_quant(cache.type, &type);
  const reference::Quant& quant = *reference::find_quant(quant_info(type).name);
  const size_t at = size_t(one.page(0, position)) * cache.bytes +
                    size_t(position % kPageTokens) * quant_bytes(type, cache.width);
  std::vector<const KernelRow*> rows = rig.rows({&call, 1}, 1);
  if (rows.empty()) rows = {rig.plain_row({&call, 1}, 1)};
  for (const KernelRow* row : rows) {
    rig.run({&call, 1}, *row, 1);
    const auto pool = rig.get<uint8_t>(cache.pool);
    const size_t block = at + 3 / quant.block * quant.bytes;
    expect(!std::isfinite(quant.weight(&pool[block], 3 % quant.block)),
           told_by(*row, 1) + ", " + kCacheTypes[cache.type]);
  }
}

void check_attention_shape(Rig& rig, const AttentionShape& s, Where where, float value, Random& random) {
  StepRows steps(4, uint32_t(divide_up(s.length, kPageTokens)) + 1);
  Cache keys = make_cache(rig, steps, s.kv_heads, s.width, s.cache_type);
  Cache values = make_cache(rig, steps, s.kv_heads, s.width, s.cache_type);
  for (Cache* cache : {&keys, &values}) fill(rig, steps, *cache, 0, 0, s.length, random);
  const uint32_t last = s.length - 1, y_width = s.heads * s.width;
  if (where != Where::Query)
    write_spoiled(rig, steps, where == Where::Key ? keys : values, last, value, random);
  for (uint32_t t = 0; t < s.tokens; ++t) steps.add(0, 0, s.length - s.tokens + t);
  auto q = gaussians(size_t(s.tokens) * y_width, random, 2);
  if (where == Where::Query) q[size_t(s.tokens - 1) * y_width + 5] = value;
  const bool splits = s.bucket <= kMaxSplitTokens;
  const Slice scratch = splits ? rig.room(attention_scratch_bytes(s.bucket, s.heads, s.width)) : Slice{};
  const Slice counters = rig.put(std::vector<uint32_t>(kCounterCount));
  const Slice y = rig.room(uint64_t(s.bucket) * y_width * 4);
  const Call call = CallMaker{steps.put(rig), counters}.attention(
      rig.put_padded(q, s.bucket * y_width), y,
      {s.heads, s.kv_heads, s.width, s.width, 1 / std::sqrt(float(s.width)), s.softcap, 0},
      {keys.pool, keys.bytes, s.cache_type}, {values.pool, values.bytes, s.cache_type}, scratch);
  // A query tells in its own head, keys and values in all heads of the first KV head. Of a value only its own
  // column has to tell; in tiles it may meet other tokens of the step too, with a weight of 0.
  const size_t first = size_t(s.tokens - 1) * y_width;
  const size_t heads = where == Where::Query ? 1 : s.heads / s.kv_heads;
  const auto check = [&](const std::vector<float>& made, const std::string& what) {
    if (where != Where::Value) require_finite(made, 0, first, what);
    for (size_t h = 0; h < heads; ++h)
      if (where == Where::Value)
        require_not_finite(made, first + h * s.width + 3, 1, what);
      else
        require_not_finite(made, first + h * s.width, s.width, what);
    require_finite(made, first + heads * s.width, y_width - heads * s.width, what);
  };
  const char* const places[] = {"query", "key", "value"};
  const auto told = [&](const KernelRow& row) {
    return told_by(row, s.bucket) + ", " + kCacheTypes[s.cache_type] + ", a " + places[int(where)];
  };
  for (const KernelRow* row : rig.rows({&call, 1}, s.bucket)) {
    rig.poison(y);
    rig.run({&call, 1}, *row, s.bucket);
    check(rig.get<float>(y), told(*row));
  }
  const Live live{s.bucket, s.tokens};
  for (const Form form : {Form::Q8X16, Form::F16})
    run_with_form(rig, call, form, live, y_width,
                  [&](const KernelRow& row, const std::vector<float>&, const std::vector<uint8_t>& rounded) {
                    check(decoded(rounded, form, y_width, s.tokens), told(row) + ", rounded");
                  });
  rig.reset();
}

}  // namespace

void check_attention_of_not_finite(Rig& rig) {
  Random random(25);
  for (uint32_t type = 0; type < kCacheTypeCount; ++type)
    for (const Where where : {Where::Query, Where::Key, Where::Value})
      for (const float value : kNotFinite)
        for (const AttentionShape& shape :
             {AttentionShape{4, 2, 64, 150, 1, 1, 0, type}, AttentionShape{4, 2, 64, 150, 5, 8, 0, type},
              AttentionShape{4, 2, 64, 150, 100, 128, 0, type},
              AttentionShape{4, 2, 64, 70, 20, 32, 30, type}})
          // A score of -infinity is a weight of 0, so one infinity in a key may rightly not show.
          if (where != Where::Key || std::isnan(value))
            check_attention_shape(rig, shape, where, value, random);
}

}  // namespace greta::selftest
