// Graphs of greta_compute.h: they do what single calls do, again and again, with other buffers in their
// slots.
#include <catch2/matchers/catch_matchers_string.hpp>
#include <random>

#include "support/compute_ops.h"

using namespace greta;
using namespace greta::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr uint64_t kRows = 20, kWidth = 64, kInner = 96;

// A block of a model: y = x + down . silu(gate . norm(x)) * (up . norm(x)).
struct Block {
  ComputeRig& rig;
  greta_rms_norm_call norm = sized<greta_rms_norm_call>();
  greta_linear_call gate = sized<greta_linear_call>(), up = gate, down = gate;
  greta_gate_call activate = sized<greta_gate_call>();
  greta_add_call add = sized<greta_add_call>();

  greta_tensor in(greta_buffer buffer, uint64_t width) {
    greta_tensor made = {};
    made.rank = 2;
    made.shape[0] = kRows, made.shape[1] = width;
    made.buffer = buffer;
    return made;
  }
  greta_weights weights(uint64_t n, uint64_t depth, Random& random) {
    greta_weights made = {};
    uint64_t bytes;
    rig.ok(greta_weights_size(rig.compute, GRETA_TYPE_F16, n, depth, &made, &bytes, nullptr));
    const auto matrix = selftest::random_matrix(QuantType::f16, uint32_t(n), uint32_t(depth), 1,
                                                selftest::Scales::Plain, random);
    made.buffer = rig.buffer(bytes);
    rig.ok(greta_weights_pack(rig.compute, rig.stream, &made, rig.put(matrix.bytes), 0));
    return made;
  }
  explicit Block(ComputeRig& on) : rig(on) {
    Random random(4);
    norm.gain = rig.tensor({kWidth}, gaussians(kWidth, random));
    norm.epsilon = 1e-5f;
    gate.weights = weights(kInner, kWidth, random);
    up.weights = weights(kInner, kWidth, random);
    down.weights = weights(kWidth, kInner, random);
    rig.wait();
  }
  // `make(bytes)` gives the buffers between the calls.
  template <class Make>
  void record(const greta_tensor& x, const greta_tensor& y, Make&& make) {
    const auto scratch = [&](auto&& of, const auto& call) {
      uint64_t bytes;
      rig.ok(of(rig.compute, &call, &bytes));
      return rig.scratch(bytes);
    };
    norm.x = x;
    norm.y = gate.x = up.x = in(make(kRows * kWidth * 4), kWidth);
    gate.y = activate.gate = activate.y = down.x = in(make(kRows * kInner * 4), kInner);
    up.y = activate.up = in(make(kRows * kInner * 4), kInner);
    down.y = add.b = in(make(kRows * kWidth * 4), kWidth);
    add.a = x;
    add.y = y;
    greta_compute* const c = rig.compute;
    const greta_stream s = rig.stream;
    rig.ok(greta_rms_norm(c, s, &norm, {}, 0));
    rig.ok(greta_linear(c, s, &gate, scratch(greta_linear_scratch, gate), 0));
    rig.ok(greta_linear(c, s, &up, scratch(greta_linear_scratch, up), 0));
    rig.ok(greta_gate(c, s, &activate, {}, 0));
    rig.ok(greta_linear(c, s, &down, scratch(greta_linear_scratch, down), 0));
    rig.ok(greta_add(c, s, &add, {}, 0));
  }
};

std::string text_of(ComputeRig& rig, greta_graph graph) {
  size_t bytes = 0;
  rig.ok(greta_graph_print(rig.compute, graph, nullptr, 0, &bytes));
  std::string text(bytes + 1, 'x');
  rig.ok(greta_graph_print(rig.compute, graph, text.data(), text.size(), &bytes));
  text.resize(bytes);
  return text;
}

greta_buffer temporary(ComputeRig& rig, uint64_t bytes) {
  greta_buffer made = {};
  rig.ok(greta_graph_temporary(rig.compute, rig.stream, bytes, &made));
  return made;
}

greta_buffer slot(ComputeRig& rig, uint64_t bytes) {
  greta_buffer made = {};
  rig.ok(greta_graph_slot(rig.compute, rig.stream, bytes, &made));
  return made;
}

}  // namespace

TEST_CASE("compute graph: a block with temporaries has the bits of single calls, run after run",
          "[compute]") {
  for (const auto& rig : op_rigs()) {
    Block block(*rig);
    Random random(6);
    const greta_tensor x = block.in(rig->buffer(kRows * kWidth * 4), kWidth),
                       y = block.in(rig->buffer(kRows * kWidth * 4), kWidth),
                       single = block.in(rig->buffer(kRows * kWidth * 4), kWidth);
    greta_graph graph = {};
    const auto temporaries = [&](uint64_t bytes) { return temporary(*rig, bytes); };
    rig->ok(greta_graph_begin(rig->compute, rig->stream));
    block.record(x, y, temporaries);
    rig->ok(greta_graph_end(rig->compute, rig->stream, &graph));
    auto info = sized<greta_graph_info>();
    rig->ok(greta_graph_describe(rig->compute, graph, &info));
    CHECK(info.launches >= 4);  // some share one
    CHECK(info.barriers >= 4);
    CHECK(info.captured == 1);
    CHECK(info.temporary_bytes > 0);
    CHECK(info.temporary_bytes < 3 * kRows * (2 * kWidth + 2 * kInner) * 4);  // they share memory
    const std::string text = text_of(*rig, graph);
    CHECK_THAT(text, ContainsSubstring("barrier\n") && ContainsSubstring("f16[96][64]") &&
                         ContainsSubstring("gate"));
    for (int round = 0; round < 5; ++round) {
      const std::vector<float> values = gaussians(kRows * kWidth, random);
      rig->ok(greta_buffer_write(rig->compute, x.buffer, 0, values.data(), values.size() * 4));
      rig->ok(greta_graph_run(rig->compute, rig->stream, graph, nullptr, 0));
      rig->ok(greta_graph_run(rig->compute, rig->stream, graph, nullptr, 0));
      block.record(x, single, [&](uint64_t bytes) { return rig->buffer(bytes); });
      rig->wait();
      CHECK(rig->get<float>(y.buffer, kRows * kWidth) == rig->get<float>(single.buffer, kRows * kWidth));
    }
    rig->ok(greta_graph_close(rig->compute, graph));
    CHECK(greta_graph_run(rig->compute, rig->stream, graph, nullptr, 0) == GRETA_ERROR_ARGUMENT);
  }
}

TEST_CASE("compute graph: slots are other buffers in each run", "[compute]") {
  for (const auto& rig : op_rigs()) {
    Block block(*rig);
    Random random(6);
    constexpr uint64_t kBytes = kRows * kWidth * 4;
    rig->ok(greta_graph_begin(rig->compute, rig->stream));
    const greta_buffer from = slot(*rig, kBytes), to = slot(*rig, kBytes);
    block.record(block.in(from, kWidth), block.in(to, kWidth),
                 [&](uint64_t bytes) { return temporary(*rig, bytes); });
    greta_graph graph = {};
    rig->ok(greta_graph_end(rig->compute, rig->stream, &graph));
    for (int round = 0; round < 3; ++round) {
      const greta_buffer x = rig->put(gaussians(kRows * kWidth, random)), y = rig->buffer(kBytes + 256),
                         single = rig->buffer(kBytes);
      const greta_graph_binding bindings[] = {{to, y, 256}, {from, x, 0}};
      rig->ok(greta_graph_run(rig->compute, rig->stream, graph, bindings, 2));
      block.record(block.in(x, kWidth), block.in(single, kWidth),
                   [&](uint64_t bytes) { return rig->buffer(bytes); });
      rig->wait();
      CHECK(rig->get<float>(y, kRows * kWidth, 256) == rig->get<float>(single, kRows * kWidth));
    }
    const greta_buffer x = rig->buffer(2 * kBytes), y = rig->buffer(kBytes);
    const auto refused = [&](std::vector<greta_graph_binding> bindings, const char* words) {
      CHECK(greta_graph_run(rig->compute, rig->stream, graph, bindings.data(), bindings.size()) ==
            GRETA_ERROR_ARGUMENT);
      CHECK_THAT(greta_error_text(), ContainsSubstring(words));
    };
    refused({}, "is not bound, 0 of 2 are");
    refused({{from, x, 0}}, "is not bound, 1 of 2 are");
    refused({{from, x, 0}, {from, x, 0}}, "bound twice");
    refused({{x, x, 0}, {to, y, 0}}, "is no slot");
    refused({{from, {}, 0}, {to, y, 0}}, "{0}");
    refused({{from, from, 0}, {to, y, 0}}, "part of a graph");
    refused({{from, x, 128}, {to, y, 0}}, "multiple of 256");
    refused({{from, x, 0}, {to, y, 256}}, "outside the buffer");
    refused({{from, x, 0}, {to, x, 1024}}, "overlapping memory");
    refused({{from, x, 0}, {to, block.norm.gain.buffer, 0}}, "");
    greta_graph_binding none = {};
    CHECK(greta_graph_run(rig->compute, rig->stream, graph, nullptr, 2) == GRETA_ERROR_ARGUMENT);
    refused({none, none}, "no slot");
    rig->ok(greta_graph_close(rig->compute, graph));
    CHECK(greta_buffer_close(rig->compute, from) == GRETA_ERROR_ARGUMENT);  // it was closed with the graph
    rig->wait();
  }
}

TEST_CASE("compute graph: a slot over memory that the graph uses by itself is refused", "[compute]") {
  ComputeRig rig;
  const greta_buffer fixed = rig.buffer(1024), other = rig.buffer(1024);
  rig.ok(greta_graph_begin(rig.compute, rig.stream));
  const greta_buffer to = slot(rig, 256);
  rig.ok(greta_stream_copy(rig.compute, rig.stream, to, 0, fixed, 512, 256));
  greta_graph graph = {};
  rig.ok(greta_graph_end(rig.compute, rig.stream, &graph));
  for (const uint64_t offset : {0, 256, 768}) {
    const greta_graph_binding binding = {to, fixed, offset};
    rig.ok(greta_graph_run(rig.compute, rig.stream, graph, &binding, 1));
  }
  greta_graph_binding binding = {to, fixed, 512};
  CHECK(greta_graph_run(rig.compute, rig.stream, graph, &binding, 1) == GRETA_ERROR_ARGUMENT);
  binding = {to, other, 512};
  rig.ok(greta_graph_run(rig.compute, rig.stream, graph, &binding, 1));
  rig.wait();
}

TEST_CASE("compute graph: what is no part of a graph is refused while one is recorded", "[compute]") {
  ComputeRig rig;
  const greta_buffer buffer = rig.buffer(1024);
  greta_compute* const c = rig.compute;
  const greta_stream s = rig.stream;
  greta_graph graph = {};
  greta_timeline timeline;
  greta_buffer made;
  rig.ok(greta_timeline_open(c, nullptr, &timeline));
  CHECK(greta_graph_end(c, s, &graph) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_graph_drop(c, s) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_graph_temporary(c, s, 4, &made) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_graph_slot(c, s, 4, &made) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_graph_close(c, {}) == GRETA_OK);
  CHECK(greta_graph_begin(nullptr, s) == GRETA_ERROR_ARGUMENT);
  rig.ok(greta_graph_begin(c, s));
  CHECK(greta_graph_begin(c, s) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_stream_fill(c, s, buffer, 0, 4, 0) == GRETA_ERROR_ARGUMENT);
  CHECK_THAT(greta_error_text(), ContainsSubstring("a graph is being recorded"));
  CHECK(greta_stream_submit(c, s) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_stream_wait(c, s) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_stream_signal(c, s, timeline, 1) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_stream_wait_for(c, s, timeline, 0) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_graph_temporary(c, s, 0, &made) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_graph_slot(c, s, ~uint64_t(0), &made) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_graph_temporary(c, s, 64, nullptr) == GRETA_ERROR_ARGUMENT);
  const greta_buffer temp = temporary(rig, 256), open = slot(rig, 256);
  float value = 0;
  CHECK(greta_buffer_read(c, temp, 0, &value, 4) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_buffer_write(c, open, 0, &value, 4) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_buffer_close(c, open) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_stream_copy(c, s, temp, 0, buffer, 0, 257) == GRETA_ERROR_ARGUMENT);
  greta_stream other;
  rig.ok(greta_stream_open(c, &other));
  CHECK(greta_stream_copy(c, other, temp, 0, buffer, 0, 4) == GRETA_ERROR_ARGUMENT);
  CHECK_THAT(greta_error_text(), ContainsSubstring("not being recorded on this stream"));
  CHECK(greta_graph_end(c, s, &graph) == GRETA_ERROR_ARGUMENT);                   // nothing was recorded
  CHECK(greta_stream_copy(c, s, temp, 0, buffer, 0, 4) == GRETA_ERROR_ARGUMENT);  // it was dropped
  rig.ok(greta_stream_fill(c, s, buffer, 0, 1024, 3));
  CHECK(rig.info().buffers == 1);
  rig.wait();
}

TEST_CASE("compute graph: it keeps its buffers, and runs on its stream while that is open", "[compute]") {
  ComputeRig rig;
  const greta_buffer buffer = rig.buffer(1024);
  greta_compute* const c = rig.compute;
  const greta_stream s = rig.stream;
  greta_graph graph = {};
  greta_stream other;
  rig.ok(greta_stream_open(c, &other));
  rig.ok(greta_stream_fill(c, s, buffer, 0, 1024, 3));
  rig.ok(greta_graph_begin(c, s));
  const greta_buffer between = temporary(rig, 512);
  rig.ok(greta_stream_copy(c, s, between, 0, buffer, 0, 512));
  rig.ok(greta_stream_copy(c, s, buffer, 512, between, 0, 512));
  auto norm = sized<greta_rms_norm_call>();  // a gain in a temporary has no place
  norm.x.rank = norm.y.rank = norm.gain.rank = 1;
  norm.x.shape[0] = norm.y.shape[0] = norm.gain.shape[0] = 4;
  norm.x.buffer = norm.y.buffer = buffer, norm.gain.buffer = between;
  CHECK(greta_rms_norm(c, s, &norm, {}, 0) == GRETA_ERROR_UNSUPPORTED);
  rig.ok(greta_graph_end(c, s, &graph));
  CHECK(greta_stream_copy(c, s, between, 0, buffer, 0, 4) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_graph_run(c, other, graph, nullptr, 0) == GRETA_ERROR_ARGUMENT);
  CHECK_THAT(greta_error_text(), ContainsSubstring("the graph runs on stream"));
  rig.ok(greta_graph_run(c, s, graph, nullptr, 0));
  rig.ok(greta_buffer_close(c, buffer));  // the graph keeps it
  rig.ok(greta_graph_run(c, s, graph, nullptr, 0));
  rig.ok(greta_stream_close(c, s));
  rig.stream = other;
  rig.ok(greta_graph_run(c, other, graph, nullptr, 0));
  rig.ok(greta_graph_close(c, graph));  // and the stream the graph
  rig.wait();
  CHECK(rig.info().buffers == 0);
  rig.ok(greta_graph_begin(c, other));
  rig.ok(greta_stream_close(c, other));  // with an open recording
  rig.ok(greta_stream_open(c, &rig.stream));
  rig.ok(greta_graph_begin(c, rig.stream));  // and so is the compute's end
}

namespace {

// The same random sequence of operations for a seed, over tensors in these buffers.
struct RandomCalls {
  static constexpr uint32_t kTensors = 5;
  static constexpr uint64_t kCount = 6 * 32;
  ComputeRig& rig;
  greta_tensor gain;
  uint32_t seed = 0, steps = 0;

  static greta_tensor in(greta_buffer buffer) {
    greta_tensor made = {};
    made.rank = 2, made.shape[0] = 6, made.shape[1] = 32, made.buffer = buffer;
    return made;
  }
  void one(uint32_t kind, greta_buffer a, greta_buffer b, greta_buffer y) {
    if (kind == 1) {
      auto call = sized<greta_rms_norm_call>();
      call.epsilon = 1e-3f, call.gain = gain, call.x = in(a), call.y = in(y);
      rig.ok(greta_rms_norm(rig.compute, rig.stream, &call, {}, 0));
    } else if (kind == 2) {
      auto call = sized<greta_gate_call>();
      call.gate = in(a), call.up = in(b), call.y = in(y);
      rig.ok(greta_gate(rig.compute, rig.stream, &call, {}, 0));
    } else {
      auto call = sized<greta_add_call>();
      call.scale = kind == 3 ? 0.5f : -0.25f;
      call.a = in(a), call.b = in(b), call.y = in(y);
      rig.ok(greta_add(rig.compute, rig.stream, &call, {}, 0));
    }
  }
  void record(const std::vector<greta_buffer>& buffers) {
    std::mt19937 random(seed);
    for (uint32_t i = 0; i < steps; ++i) {
      const uint32_t kind = random() % 5, a = random() % kTensors, b = random() % kTensors,
                     y = random() % kTensors;
      if (kind || a == y)
        one(kind, buffers[a], buffers[b], buffers[y]);
      else
        rig.ok(greta_stream_copy(rig.compute, rig.stream, buffers[y], 128, buffers[a], 0, 256));
    }
  }
};

}  // namespace

TEST_CASE("compute graph: random graphs have the bits of single calls", "[compute]") {
  for (const auto& rig : op_rigs()) {
    Random values(2);
    std::mt19937 random(17);
    RandomCalls calls{*rig, rig->tensor({32}, gaussians(32, values))};
    for (int trial = 0; trial < 30; ++trial) {
      std::vector<greta_buffer> single, graphed;
      for (uint32_t i = 0; i < RandomCalls::kTensors; ++i) {
        const std::vector<float> x = gaussians(RandomCalls::kCount, values);
        single.push_back(rig->put(x));
        graphed.push_back(rig->put(x));
      }
      calls.seed = uint32_t(random());
      calls.steps = 3 + random() % 20;
      greta_graph graph = {};
      rig->ok(greta_graph_begin(rig->compute, rig->stream));
      calls.record(graphed);
      rig->ok(greta_graph_end(rig->compute, rig->stream, &graph));
      for (int run = 0; run < trial % 3 + 1; ++run) {
        calls.record(single);
        rig->ok(greta_graph_run(rig->compute, rig->stream, graph, nullptr, 0));
      }
      rig->wait();
      size_t wrong = 0;
      for (uint32_t i = 0; i < RandomCalls::kTensors; ++i)
        wrong += rig->get<uint32_t>(single[i], RandomCalls::kCount) !=
                 rig->get<uint32_t>(graphed[i], RandomCalls::kCount);
      CHECK(wrong == 0);
      rig->ok(greta_graph_close(rig->compute, graph));
    }
  }
}
