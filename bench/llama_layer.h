// A layer of Llama 3 8B as one graph of greta_compute.h, whose weights no cache holds.
#pragma once
#include "compute_rig.h"

namespace greta::bench {

class LlamaLayer {
 public:
  static constexpr uint64_t kWidth = 4096, kInner = 14336, kHeads = 32, kKvHeads = 8, kHead = 128;
  static constexpr uint32_t kPositions = 1088;
  Work work;  // of the products

  // The stream then runs over the step's rows.
  LlamaLayer(Rig& rig, greta_step step, const char* type, uint32_t sequences, uint32_t rows)
      : rig_(rig), rows_(uint64_t(sequences) * rows), lone_rows_(rows == 1) {
    x_ = rig.tensor({rows_, kWidth}), y_ = rig.tensor({rows_, kWidth});
    gain_ = rig.tensor({kWidth}), table_ = rig.tensor({kPositions, kHead / 2, 2});
    const uint64_t kShapes[][2] = {
        {kHeads * kHead, kWidth}, {kKvHeads * kHead, kWidth}, {kKvHeads * kHead, kWidth},
        {kWidth, kHeads * kHead}, {kInner, kWidth},           {kInner, kWidth},
        {kWidth, kInner}};
    for (const auto& [n, depth] : kShapes) {
      weights_.push_back(rig.weights(type, n, depth, false)[0]);
      work.flops += 2.0 * double(rows_ * n * depth), work.bytes += rig.weight_bytes;
    }
    uint64_t bytes = 0;
    keys_.type = GRETA_TYPE_F16, keys_.heads = kKvHeads, keys_.width = kHead;
    keys_.pages = sequences * (kPositions / GRETA_PAGE_POSITIONS);
    Rig::must(greta_cache_size(rig.compute, &keys_, &bytes));
    values_ = keys_;
    keys_.buffer = rig.buffer(bytes), values_.buffer = rig.buffer(bytes);
    Rig::must(greta_stream_step(rig.compute, rig.stream, step));
  }

  greta_graph record() {
    greta_graph graph = {};
    Rig::must(greta_graph_begin(rig_.compute, rig_.stream));
    const greta_tensor h = attention_block(), in = norm(h);
    auto activate = sized<greta_gate_call>();
    activate.gate = activate.y = linear(4, in), activate.up = linear(5, in);
    Rig::must(greta_gate(rig_.compute, rig_.stream, &activate, {}, 0));
    add(h, linear(6, activate.y), y_);
    Rig::must(greta_graph_end(rig_.compute, rig_.stream, &graph));
    return graph;
  }

 private:
  greta_tensor attention_block() {
    const greta_tensor in = norm(x_), q = linear(0, in);
    rotate(q, kHeads);
    const greta_tensor k = linear(1, in);
    rotate(k, kKvHeads), store(k, keys_);
    const greta_tensor v = linear(2, in);
    store(v, values_);
    const greta_tensor attended = between(kHeads * kHead), h = between(kWidth);
    auto attend = sized<greta_attention_call>();
    attend.q = heads_of(q, kHeads), attend.y = heads_of(attended, kHeads);
    attend.keys = keys_, attend.values = values_, attend.lone_rows = lone_rows_;
    Rig::must(greta_attention(rig_.compute, rig_.stream, &attend, {}, 0));
    add(x_, linear(3, attended), h);
    return h;
  }
  greta_tensor between(uint64_t width) {
    greta_tensor made = {};
    made.rank = 2, made.shape[0] = rows_, made.shape[1] = width;
    Rig::must(greta_graph_temporary(rig_.compute, rig_.stream, rows_ * width * 4, &made.buffer));
    return made;
  }
  static greta_tensor heads_of(greta_tensor of, uint64_t heads) {
    of.rank = 3, of.shape[1] = heads, of.shape[2] = kHead;
    return of;
  }
  greta_tensor norm(const greta_tensor& from) {
    auto call = sized<greta_rms_norm_call>();
    call.x = from, call.y = between(kWidth), call.gain = gain_, call.epsilon = 1e-5f;
    Rig::must(greta_rms_norm(rig_.compute, rig_.stream, &call, {}, 0));
    return call.y;
  }
  greta_tensor linear(size_t which, const greta_tensor& from) {
    auto call = sized<greta_linear_call>();
    call.weights = weights_[which], call.x = from, call.y = between(call.weights.n);
    Rig::must(greta_linear(rig_.compute, rig_.stream, &call, {}, 0));
    return call.y;
  }
  void rotate(const greta_tensor& x, uint64_t heads) {
    auto call = sized<greta_rope_call>();
    call.x = call.y = heads_of(x, heads), call.table = table_;
    Rig::must(greta_rope(rig_.compute, rig_.stream, &call, {}, 0));
  }
  void store(const greta_tensor& from, const greta_cache& cache) {
    auto call = sized<greta_kv_write_call>();
    call.x = heads_of(from, kKvHeads), call.cache = cache;
    Rig::must(greta_kv_write(rig_.compute, rig_.stream, &call, {}, 0));
  }
  void add(const greta_tensor& a, const greta_tensor& b, const greta_tensor& to) {
    auto call = sized<greta_add_call>();
    call.a = a, call.b = b, call.y = to;
    Rig::must(greta_add(rig_.compute, rig_.stream, &call, {}, 0));
  }

  Rig& rig_;
  const uint64_t rows_;
  const bool lone_rows_;
  std::vector<greta_weights> weights_;  // q, k, v, output, gate, up, down
  greta_tensor x_, y_, gain_, table_;
  greta_cache keys_ = {}, values_ = {};
};

}  // namespace greta::bench
