// A layer of a llama, attention and feed-forward, recorded as one graph through greta_compute.h: a prompt and
// the tokens behind it, of two sequences, against float64.
#include <cmath>

#include "support/compute_ops.h"

using namespace greta;
using namespace greta::test;

namespace {

constexpr uint32_t kWidth = 64, kInner = 160, kHeads = 4, kKvHeads = 2, kHead = 32, kPositions = 80,
                   kRows = 8, kSequences = 2;
constexpr float kEpsilon = 1e-5f;

// The layer in float64, over one sequence.
struct Layer {
  Values attention_gain, ffn_gain, table;
  Values query, key, value, output, gate, up, down;  // matrices
  struct Cache {
    Values keys, values;
  } cache[kSequences];

  Values run(const Values& x, uint32_t sequence, const char* cache_type) {
    Cache& past = cache[sequence];
    const uint32_t at = uint32_t(past.keys.size()) / (kKvHeads * kHead), count = uint32_t(x.size()) / kWidth;
    reference::Ids positions;
    for (uint32_t t = 0; t < count; ++t) positions.push_back(at + t);
    const Values in = reference::norm(x, attention_gain, double(kEpsilon));
    const auto rotate = [&](const Values& heads, uint32_t of) {
      return reference::rope(heads, positions, table, {of, kHead, kHead, false});
    };
    const Values q = rotate(reference::matmul(query, in, kWidth), kHeads),
                 k = rotate(reference::matmul(key, in, kWidth), kKvHeads),
                 v = reference::matmul(value, in, kWidth);
    Values attended;
    for (uint32_t t = 0; t < count; ++t) {
      const auto append = [&](Values& to, const Values& all, uint32_t width) {
        std::vector<float> row;
        for (uint32_t i = 0; i < width; ++i) row.push_back(float(all[t * width + i]));
        for (const double stored : reference::cached(row, cache_type)) to.push_back(stored);
      };
      append(past.keys, k, kKvHeads * kHead);
      append(past.values, v, kKvHeads * kHead);
      const Values row(q.begin() + t * kHeads * kHead, q.begin() + (t + 1) * kHeads * kHead);
      const Values y =
          reference::attention(row, past.keys, past.values, {},
                               {kHeads, kKvHeads, kHead, kHead, 1 / std::sqrt(double(kHead)), 0, 0});
      attended.insert(attended.end(), y.begin(), y.end());
    }
    const Values h = reference::add(x, reference::matmul(output, attended, kHeads * kHead), 1);
    const Values normed = reference::norm(h, ffn_gain, double(kEpsilon));
    const Values inner = reference::gate(reference::matmul(gate, normed, kWidth),
                                         reference::matmul(up, normed, kWidth), reference::Activation::Silu);
    return reference::add(h, reference::matmul(down, inner, kInner), 1);
  }
};

// The same through greta_compute.h.
struct Recorded {
  ComputeRig& rig;
  const char* cache_type;
  Random random{21};
  Layer exact;
  greta_step step = {};
  greta_tensor x, y, attention_gain, ffn_gain, table;
  greta_weights query, key, value, output, gate, up, down;
  greta_cache keys, values;

  Recorded(ComputeRig& on, QuantType type, const char* cache) : rig(on), cache_type(cache) {
    // Small gains, so that scores do not exaggerate how x is rounded.
    const auto gain = [&](Values* to) {
      std::vector<float> values_of = gaussians(kWidth, random);
      for (float& value : values_of) value *= 0.1f;
      *to = to_values(values_of);
      return rig.tensor({kWidth}, values_of);
    };
    attention_gain = gain(&exact.attention_gain), ffn_gain = gain(&exact.ffn_gain);
    std::vector<float> turns;
    for (uint32_t i = 0; i < kPositions * kHead / 2; ++i) {
      const double angle =
          double(i / (kHead / 2)) * std::pow(10000.0, -double(i % (kHead / 2)) / (kHead / 2));
      turns.push_back(float(std::cos(angle))), turns.push_back(float(std::sin(angle)));
    }
    exact.table = to_values(turns);
    table = rig.tensor({kPositions, kHead / 2, 2}, turns);
    const auto weights = [&](uint32_t n, uint32_t depth, Values* to) {
      const auto matrix = selftest::random_matrix(type, n, depth, 1, selftest::Scales::Plain, random);
      *to = matrix.values;
      greta_weights made = {};
      uint64_t bytes = 0;
      rig.ok(greta_weights_size(rig.compute, quant_info(type).gguf_id, n, depth, &made, &bytes, nullptr));
      made.buffer = rig.buffer(bytes);
      rig.ok(greta_weights_pack(rig.compute, rig.stream, &made, rig.put(matrix.bytes), 0));
      return made;
    };
    query = weights(kHeads * kHead, kWidth, &exact.query);
    key = weights(kKvHeads * kHead, kWidth, &exact.key);
    value = weights(kKvHeads * kHead, kWidth, &exact.value);
    output = weights(kWidth, kHeads * kHead, &exact.output);
    gate = weights(kInner, kWidth, &exact.gate);
    up = weights(kInner, kWidth, &exact.up);
    down = weights(kWidth, kInner, &exact.down);
    auto options = sized<greta_step_options>();
    options.rows = kRows, options.sequences = kSequences, options.positions = kPositions;
    rig.ok(greta_step_open(rig.compute, &options, &step));
    keys = values = new_cache();
    values.buffer = new_cache().buffer;
    x = rig.tensor({kRows, kWidth}, std::vector<float>(kRows * kWidth)), y = rig.tensor({kRows, kWidth});
    rig.ok(greta_stream_step(rig.compute, rig.stream, step));
  }
  greta_cache new_cache() {
    greta_cache made = {};
    uint64_t bytes = 0;
    rig.ok(greta_type_find(cache_type, &made.type));
    made.heads = kKvHeads, made.width = kHead, made.pages = 4;
    rig.ok(greta_cache_size(rig.compute, &made, &bytes));
    made.buffer = rig.buffer(bytes);
    return made;
  }
  greta_tensor between(uint64_t width) {
    greta_tensor made = {};
    made.rank = 2;
    made.shape[0] = kRows, made.shape[1] = width;
    rig.ok(greta_graph_temporary(rig.compute, rig.stream, kRows * width * 4, &made.buffer));
    return made;
  }
  static greta_tensor heads_of(greta_tensor rows, uint64_t heads) {
    rows.rank = 3;
    rows.shape[1] = heads, rows.shape[2] = kHead;
    return rows;
  }
  greta_tensor norm(const greta_tensor& from, const greta_tensor& gain) {
    auto call = sized<greta_rms_norm_call>();
    call.x = from, call.y = between(kWidth), call.gain = gain, call.epsilon = kEpsilon;
    rig.ok(greta_rms_norm(rig.compute, rig.stream, &call, {}, 0));
    return call.y;
  }
  greta_tensor linear(const greta_weights& weights, const greta_tensor& from) {
    auto call = sized<greta_linear_call>();
    call.weights = weights, call.x = from, call.y = between(weights.n);
    rig.ok(greta_linear(rig.compute, rig.stream, &call, {}, 0));
    return call.y;
  }
  greta_tensor rotated(const greta_tensor& from, uint64_t heads) {
    auto call = sized<greta_rope_call>();
    call.x = call.y = heads_of(from, heads), call.table = table;
    rig.ok(greta_rope(rig.compute, rig.stream, &call, {}, 0));
    return call.y;
  }
  void store(const greta_tensor& from, const greta_cache& cache) {
    auto call = sized<greta_kv_write_call>();
    call.x = heads_of(from, kKvHeads), call.cache = cache;
    if (from.rank == 3) call.x = from;
    rig.ok(greta_kv_write(rig.compute, rig.stream, &call, {}, 0));
  }
  void add(const greta_tensor& a, const greta_tensor& b, const greta_tensor& to) {
    auto call = sized<greta_add_call>();
    call.a = a, call.b = b, call.y = to;
    rig.ok(greta_add(rig.compute, rig.stream, &call, {}, 0));
  }
  greta_graph record() {
    greta_graph graph = {};
    rig.ok(greta_graph_begin(rig.compute, rig.stream));
    const greta_tensor in = norm(x, attention_gain);
    auto attend = sized<greta_attention_call>();
    attend.q = rotated(linear(query, in), kHeads);
    store(rotated(linear(key, in), kKvHeads), keys);
    store(linear(value, in), values);
    attend.keys = keys, attend.values = values;
    const greta_tensor attended = between(kHeads * kHead), h = between(kWidth);
    attend.y = heads_of(attended, kHeads);
    rig.ok(greta_attention(rig.compute, rig.stream, &attend, {}, 0));
    add(x, linear(output, attended), h);
    const greta_tensor normed = norm(h, ffn_gain);
    auto activate = sized<greta_gate_call>();
    activate.gate = activate.y = linear(gate, normed), activate.up = linear(up, normed);
    rig.ok(greta_gate(rig.compute, rig.stream, &activate, {}, 0));
    add(h, linear(down, activate.y), y);
    rig.ok(greta_graph_end(rig.compute, rig.stream, &graph));
    return graph;
  }
  // Runs rows of these sequences, which stand together.
  void check(greta_graph graph, const std::vector<uint32_t>& of, double limit) {
    const std::vector<float> in = gaussians(of.size() * kWidth, random);
    std::vector<greta_row> rows;
    Values expected;
    for (size_t first = 0, end; first < of.size(); first = end) {
      const uint32_t s = of[first], at = uint32_t(exact.cache[s].keys.size()) / (kKvHeads * kHead);
      for (end = first; end < of.size() && of[end] == s; ++end)
        rows.push_back({0, uint32_t(at + end - first), s, 0});
      const Values made = exact.run(
          to_values({in.begin() + long(first * kWidth), in.begin() + long(end * kWidth)}), s, cache_type);
      expected.insert(expected.end(), made.begin(), made.end());
    }
    rig.ok(greta_buffer_write(rig.compute, x.buffer, x.offset, in.data(), in.size() * 4));
    rig.ok(greta_step_set(rig.compute, rig.stream, step, rows.data(), uint32_t(rows.size())));
    rig.ok(greta_graph_run(rig.compute, rig.stream, graph, nullptr, 0));
    rig.wait();
    std::vector<float> out = rig.get(y, kRows * kWidth);
    out.resize(expected.size());
    const double error = nmse(out, expected);
    INFO(of.size() << " rows, error " << error);
    CHECK(error <= limit);
  }
};

void run_steps(ComputeRig& rig, QuantType type, const char* cache, double limit) {
  INFO(quant_info(type).name << " weights, " << cache << " cache");
  Recorded layer(rig, type, cache);
  const greta_graph graph = layer.record();
  layer.check(graph, {0, 0, 0, 0, 0}, limit);
  layer.check(graph, {1, 1, 1, 1, 1, 1, 1, 1}, limit);
  for (int i = 0; i < 3; ++i) layer.check(graph, {0, 1}, limit);
  layer.check(graph, {1}, limit);
  for (int i = 0; i < 8; ++i) layer.check(graph, {0, 0, 0, 0, 0, 0, 0, 1}, limit);  // beyond a page
  rig.ok(greta_stream_step(rig.compute, rig.stream, {}));
}

}  // namespace

TEST_CASE("compute block: a layer of a llama as one graph, for prompts and single tokens", "[compute]") {
  for (const auto& rig : op_rigs()) {
    const bool exact = rig->runtime->exact;
    run_steps(*rig, QuantType::f32, "f32", exact ? 1e-11 : 1e-6);
    run_steps(*rig, QuantType::q8_0, "f16", exact ? 1e-6 : 1e-3);
  }
}
