// Steps, caches and attention of greta_compute.h against float64: sequences of several lengths, whole and in
// pages that lie anywhere, by single calls and by a graph that serves all steps.
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>

#include "support/compute_ops.h"

using namespace greta;
using namespace greta::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr uint32_t kPositions = 200, kSequences = 3, kRows = 6;
constexpr uint32_t kLoneRows = 20;  // sequences of a step that has one row of each

struct CacheShape {
  uint32_t heads, kv_heads, key_width, value_width;
  const char* type = "f32";
  uint32_t window = 0;
  float cap = 0;
  bool sinks = false;
};

greta_step open_step(ComputeRig& rig, uint32_t pages = 0, uint32_t rows = kRows) {
  auto options = sized<greta_step_options>();
  options.rows = rows, options.sequences = rows == kLoneRows ? rows : kSequences;
  options.positions = kPositions, options.pages = pages;
  options.lone_rows = rows == kLoneRows;
  greta_step step = {};
  rig.ok(greta_step_open(rig.compute, &options, &step));
  return step;
}

greta_cache cache_of(ComputeRig& rig, const char* type, uint32_t heads, uint32_t width, uint32_t pages) {
  greta_cache cache = {};
  uint64_t bytes = 0;
  rig.ok(greta_type_find(type, &cache.type));
  cache.heads = heads, cache.width = width, cache.pages = pages;
  rig.ok(greta_cache_size(rig.compute, &cache, &bytes));
  cache.buffer = rig.buffer(bytes + 256);
  cache.offset = 256;
  return cache;
}

// Positions of each sequence so far, and what attention must find in the caches.
struct Sequences {
  const CacheShape& shape;
  std::vector<float> keys[kLoneRows], values[kLoneRows];
  uint32_t length(uint32_t s) const { return uint32_t(keys[s].size() / (shape.kv_heads * shape.key_width)); }
};

// A step of rows: x are random keys and values, which are written, and then read by random queries.
struct Attention {
  ComputeRig& rig;
  const CacheShape& shape;
  const uint32_t rows;
  Sequences sequences{shape, {}, {}};
  greta_kv_write_call keys = sized<greta_kv_write_call>(), values = keys;
  greta_attention_call attend = sized<greta_attention_call>();
  std::vector<float> sinks;
  Random random{11};

  Attention(ComputeRig& on, const CacheShape& of, uint32_t pages, uint32_t rows_of = kRows)
      : rig(on), shape(of), rows(rows_of) {
    keys.cache = attend.keys = cache_of(rig, shape.type, shape.kv_heads, shape.key_width, pages);
    values.cache = attend.values = cache_of(rig, shape.type, shape.kv_heads, shape.value_width, pages);
    keys.x = rig.tensor({rows, shape.kv_heads, shape.key_width}, zeros(shape.kv_heads * shape.key_width));
    values.x =
        rig.tensor({rows, shape.kv_heads, shape.value_width}, zeros(shape.kv_heads * shape.value_width));
    attend.q = rig.tensor({rows, shape.heads, shape.key_width}, zeros(shape.heads * shape.key_width));
    attend.y = rig.tensor({rows, shape.heads, shape.value_width});
    attend.window = shape.window;
    attend.cap = shape.cap;
    if (shape.sinks) sinks = gaussians(shape.heads, random), attend.sinks = rig.tensor({shape.heads}, sinks);
  }
  std::vector<float> zeros(uint64_t width) const { return std::vector<float>(rows * width); }
  void put(const greta_tensor& to, const std::vector<float>& values_of) {
    rig.ok(greta_buffer_write(rig.compute, to.buffer, to.offset, values_of.data(), values_of.size() * 4));
  }
  void record() {
    uint64_t bytes = 0;
    rig.ok(greta_kv_write(rig.compute, rig.stream, &keys, {}, 0));
    rig.ok(greta_kv_write(rig.compute, rig.stream, &values, {}, 0));
    rig.ok(greta_attention_check(rig.compute, &attend));
    rig.ok(greta_attention_scratch(rig.compute, &attend, &bytes));
    rig.ok(greta_attention(rig.compute, rig.stream, &attend, rig.scratch(bytes), 0));
  }
  // Adds a token to each of these sequences, one after the other, by run().
  template <class Run>
  void step(greta_step step, const std::vector<uint32_t>& of, double limit, Run&& run) {
    const std::vector<float> q = gaussians(of.size() * shape.heads * shape.key_width, random),
                             k = gaussians(of.size() * shape.kv_heads * shape.key_width, random),
                             v = gaussians(of.size() * shape.kv_heads * shape.value_width, random);
    std::vector<greta_row> list;
    Values expected;
    const auto part = [&](const std::vector<float>& all, uint32_t width, size_t t) {
      return std::vector<float>(all.begin() + long(t * width), all.begin() + long((t + 1) * width));
    };
    const auto append = [](std::vector<float>& to, const std::vector<float>& more) {
      to.insert(to.end(), more.begin(), more.end());
    };
    for (size_t t = 0; t < of.size(); ++t) {
      const uint32_t s = of[t];
      list.push_back({0, sequences.length(s), s, 0});
      append(sequences.keys[s], part(k, shape.kv_heads * shape.key_width, t));
      append(sequences.values[s], part(v, shape.kv_heads * shape.value_width, t));
      const Values made =
          reference::attention(to_values(part(q, shape.heads * shape.key_width, t)),
                               reference::cached(sequences.keys[s], shape.type),
                               reference::cached(sequences.values[s], shape.type), to_values(sinks),
                               {shape.heads, shape.kv_heads, shape.key_width, shape.value_width,
                                1 / std::sqrt(double(shape.key_width)), double(shape.cap), shape.window});
      expected.insert(expected.end(), made.begin(), made.end());
    }
    put(attend.q, q), put(keys.x, k), put(values.x, v);
    rig.ok(greta_step_set(rig.compute, rig.stream, step, list.data(), uint32_t(list.size())));
    run();
    rig.wait();
    std::vector<float> y = rig.get(attend.y, rows * shape.heads * shape.value_width);
    y.resize(expected.size());
    const double error = nmse(y, expected);
    INFO("error " << error);
    CHECK(error <= limit);
  }
};

const CacheShape kCacheShapes[] = {
    {4, 4, 16, 16},
    {6, 2, 32, 64, "f16"},
    {8, 2, 64, 32, "q8_0", 0, 0, true},
    {4, 1, 32, 32, "f32", 70, 5.f},
    {2, 2, 128, 128, "f16", 3, 0, true},
};

double limit_of(const ComputeRig& rig, const CacheShape& shape) {
  return rig.runtime->exact && std::string(shape.type) != "q8_0" ? 1e-10 : 1e-5;
}

}  // namespace

TEST_CASE("compute attention: types, windows, caps, sinks and shared heads", "[compute]") {
  for (const auto& rig : op_rigs())
    for (const CacheShape& shape : kCacheShapes) {
      INFO(shape.heads << " heads of " << shape.key_width << " in " << shape.type);
      const greta_step step = open_step(*rig);
      Attention attention(*rig, shape, 12);
      const double limit = limit_of(*rig, shape);
      const auto run = [&] { attention.record(); };
      rig->ok(greta_stream_step(rig->compute, rig->stream, step));
      attention.step(step, {0}, limit, run);
      attention.step(step, {0, 0, 0, 0, 0, 0}, limit, run);
      attention.step(step, {2, 1, 0}, limit, run);
      for (int i = 0; i < 20; ++i) attention.step(step, {1, 1, 1, 1, 1, 1}, limit, run);
      attention.step(step, {0, 1, 2}, limit, run);
      rig->ok(greta_stream_step(rig->compute, rig->stream, {}));
      rig->ok(greta_step_close(rig->compute, step));
    }
}

TEST_CASE("compute attention: a row of each sequence, in a step that promises it", "[compute]") {
  for (const auto& rig : op_rigs())
    for (const CacheShape& shape : kCacheShapes) {
      INFO(shape.heads << " heads of " << shape.key_width << " in " << shape.type);
      const greta_step step = open_step(*rig, 0, kLoneRows);
      Attention attention(*rig, shape, 4 * kLoneRows, kLoneRows);
      attention.attend.lone_rows = 1;
      const double limit = limit_of(*rig, shape);
      const auto run = [&] { attention.record(); };
      std::vector<uint32_t> all(kLoneRows);
      for (uint32_t s = 0; s < kLoneRows; ++s) all[s] = (s * 7) % kLoneRows;
      rig->ok(greta_stream_step(rig->compute, rig->stream, step));
      attention.step(step, {2}, limit, run);
      for (int i = 0; i < 140; ++i) attention.step(step, {1, 5}, limit, run);
      for (int i = 0; i < 10; ++i) attention.step(step, all, limit, run);
      const greta_row twice[] = {{0, 90, 0, 0}, {0, 90, 1, 0}, {0, 91, 0, 0}};
      CHECK(greta_step_set(rig->compute, rig->stream, step, twice, 3) == GRETA_ERROR_ARGUMENT);
      CHECK_THAT(greta_error_text(), ContainsSubstring("row 2: another one of sequence 0"));
      attention.step(step, {0, 1}, limit, run);
      rig->ok(greta_stream_step(rig->compute, rig->stream, {}));
      rig->ok(greta_step_close(rig->compute, step));
    }
}

TEST_CASE("compute attention: pages lie anywhere, and sequences share them", "[compute]") {
  for (const auto& rig : op_rigs()) {
    const CacheShape& shape = kCacheShapes[1];
    const greta_step step = open_step(*rig, 5);
    Attention attention(*rig, shape, 7);  // more than the step has
    const double limit = limit_of(*rig, shape);
    const auto run = [&] { attention.record(); };
    const auto pages = [&](uint32_t sequence, uint32_t first, std::vector<uint32_t> list) {
      rig->ok(greta_step_pages(rig->compute, rig->stream, step, sequence, first, list.data(),
                               uint32_t(list.size())));
    };
    rig->ok(greta_stream_step(rig->compute, rig->stream, step));
    pages(0, 0, {4, 1});
    pages(2, 0, {3});
    attention.step(step, {2, 2}, limit, run);
    while (attention.sequences.length(0) < 64) attention.step(step, {0, 0, 0, 0}, limit, run);
    // Sequence 1 begins as sequence 0 does, and goes on in a page of its own.
    pages(1, 0, {4, 2});
    attention.sequences.keys[1] = attention.sequences.keys[0];
    attention.sequences.values[1] = attention.sequences.values[0];
    for (int i = 0; i < 4; ++i) attention.step(step, {0, 1, 2}, limit, run);
  }
}

TEST_CASE("compute attention: a graph that was recorded once serves all steps", "[compute]") {
  for (const auto& rig : op_rigs()) {
    const CacheShape& shape = kCacheShapes[0];
    const greta_step step = open_step(*rig);
    Attention attention(*rig, shape, 12);
    greta_graph graph = {};
    rig->ok(greta_stream_step(rig->compute, rig->stream, step));
    rig->ok(greta_graph_begin(rig->compute, rig->stream));
    CHECK(greta_step_set(rig->compute, rig->stream, step, nullptr, 0) == GRETA_ERROR_ARGUMENT);
    attention.record();
    rig->ok(greta_graph_end(rig->compute, rig->stream, &graph));
    auto info = sized<greta_graph_info>();
    rig->ok(greta_graph_describe(rig->compute, graph, &info));
    CHECK(info.captured == 1);
    const auto run = [&] { rig->ok(greta_graph_run(rig->compute, rig->stream, graph, nullptr, 0)); };
    for (const auto& of : {std::vector<uint32_t>{0}, {0, 0, 1}, {2, 1, 0}, {1, 1, 1, 1, 1, 1}, {0, 2}})
      attention.step(step, of, limit_of(*rig, shape), run);
  }
}

TEST_CASE("compute embed and rope: rows have the tokens and positions of the step", "[compute]") {
  const QuantType type = GENERATE(QuantType::q8_0, QuantType::f16, QuantType::bf16, QuantType::f32);
  INFO("a table of " << quant_info(type).name);
  for (const auto& rig : op_rigs()) {
    constexpr uint32_t kTokens = 37, kWidth = 64, kHeads = 2, kHead = 32;
    Random random(3);
    const greta_step step = open_step(*rig);
    const auto matrix = selftest::random_matrix(type, kTokens, kWidth, 1, selftest::Scales::Plain, random);
    auto embed = sized<greta_embed_call>();
    uint64_t bytes = 0;
    rig->ok(greta_weights_size(rig->compute, quant_info(matrix.type).gguf_id, kTokens, kWidth, &embed.table,
                               &bytes, nullptr));
    embed.table.buffer = rig->buffer(bytes);
    rig->ok(greta_weights_pack(rig->compute, rig->stream, &embed.table, rig->put(matrix.bytes), 0));
    embed.scale = 2;
    embed.y = rig->tensor({kRows, kWidth}, std::vector<float>(kRows * kWidth));
    const std::vector<float> table = gaussians(kPositions * kHead, random);
    auto rope = sized<greta_rope_call>();
    rope.table = rig->tensor({kPositions, kHead / 2, 2}, table);
    rope.x = rope.y = embed.y;
    rope.x.rank = rope.y.rank = 3;
    rope.x.shape[1] = rope.y.shape[1] = kHeads, rope.x.shape[2] = rope.y.shape[2] = kHead;
    CHECK(greta_embed(rig->compute, rig->stream, &embed, {}, 0) == GRETA_ERROR_ARGUMENT);
    CHECK_THAT(greta_error_text(), ContainsSubstring("embed: the stream has no step"));
    rig->ok(greta_stream_step(rig->compute, rig->stream, step));
    const greta_row rows[] = {{5, 7, 0, 0}, {36, 199, 2, 0}, {99, 0, 1, 0}, {0, 1, 1, 0}};
    rig->ok(greta_step_set(rig->compute, rig->stream, step, rows, 4));
    GRETA_RUN(*rig, embed, embed);
    GRETA_RUN(*rig, rope, rope);
    const Values all = reference::rope(reference::embed(matrix.values, kWidth, {5, 36, 0, 0}, 2),
                                       {7, 199, 0, 1}, to_values(table), {kHeads, kHead, kHead, false});
    std::vector<float> y = rig->get(rope.y, kRows * kWidth);
    CHECK(std::vector<float>(y.begin() + 4 * kWidth, y.end()) == std::vector<float>(2 * kWidth));
    y.resize(4 * kWidth);
    CHECK(nmse(y, all) <= 1e-11);
    rope.first_position = 1;
    CHECK(greta_rope(rig->compute, rig->stream, &rope, {}, 0) == GRETA_ERROR_ARGUMENT);
    CHECK_THAT(greta_error_text(), ContainsSubstring("room for 0 positions, the stream's step has 200"));
  }
}

TEST_CASE("compute step: only live rows of any operation are computed", "[compute]") {
  for (const auto& rig : op_rigs()) {
    constexpr uint32_t kWidth = 32;
    Random random(4);
    const greta_step step = open_step(*rig);
    const auto matrix =
        selftest::random_matrix(QuantType::f32, 8, kWidth, 1, selftest::Scales::Plain, random);
    const std::vector<float> x = gaussians(kRows * kWidth, random), gain = gaussians(kWidth / 2, random);
    auto linear = sized<greta_linear_call>();
    uint64_t bytes = 0;
    rig->ok(greta_weights_size(rig->compute, GRETA_TYPE_F32, 8, kWidth, &linear.weights, &bytes, nullptr));
    linear.weights.buffer = rig->buffer(bytes);
    rig->ok(greta_weights_pack(rig->compute, rig->stream, &linear.weights, rig->put(matrix.bytes), 0));
    linear.x = rig->tensor({kRows, kWidth}, x);
    linear.y = rig->tensor({kRows, 8}, std::vector<float>(kRows * 8));
    auto norm = sized<greta_rms_norm_call>();
    norm.gain = rig->tensor({kWidth / 2}, gain);
    norm.x = rig->tensor({kRows, 2, kWidth / 2}, x);
    norm.y = rig->tensor({kRows, 2, kWidth / 2}, std::vector<float>(kRows * kWidth));
    linear.outputs = 1;
    CHECK(greta_linear(rig->compute, rig->stream, &linear, {}, 0) == GRETA_ERROR_ARGUMENT);
    rig->ok(greta_stream_step(rig->compute, rig->stream, step));
    const greta_row rows[] = {{0, 0, 0, 0}, {0, 1, 0, 1}, {0, 0, 1, 1}};
    rig->ok(greta_step_set(rig->compute, rig->stream, step, rows, 3));
    const auto check = [&](const greta_tensor& y, uint64_t width, Values expected) {
      expected.resize(kRows * width);
      CHECK(nmse(rig->get(y, kRows * width), expected) <= 1e-9);
    };
    const Values product = reference::matmul(matrix.values, to_values(x), kWidth);
    GRETA_RUN(*rig, linear, linear);
    check(linear.y, 8, {product.begin() + 8, product.begin() + 24});
    linear.outputs = 0;
    GRETA_RUN(*rig, linear, linear);
    check(linear.y, 8, {product.begin(), product.begin() + 24});
    GRETA_RUN(*rig, rms_norm, norm);
    const Values normed = reference::norm(to_values(x), to_values(gain), 0);
    check(norm.y, kWidth, {normed.begin(), normed.begin() + 3 * kWidth});
    rig->ok(greta_step_set(rig->compute, rig->stream, step, nullptr, 0));
    GRETA_RUN(*rig, linear, linear);
    linear.x.shape[0] = linear.y.shape[0] = 3;
    CHECK(greta_linear(rig->compute, rig->stream, &linear, {}, 0) == GRETA_ERROR_ARGUMENT);
    CHECK_THAT(greta_error_text(), ContainsSubstring("tensors of 3 rows, the stream's step has 6"));
  }
}

TEST_CASE("compute step: what does not fit is refused with its numbers", "[compute]") {
  ComputeRig rig;
  greta_step none = {};
  const auto open = [&](uint32_t rows, uint32_t sequences, uint32_t positions) {
    auto options = sized<greta_step_options>();
    options.rows = rows, options.sequences = sequences, options.positions = positions;
    return greta_step_open(rig.compute, &options, &none);
  };
  CHECK(open(0, 1, 1) == GRETA_ERROR_ARGUMENT);
  CHECK(open(513, 1, 1) == GRETA_ERROR_ARGUMENT);
  CHECK_THAT(greta_error_text(), ContainsSubstring("513 rows of 1 sequences of 1 positions"));
  CHECK(open(1, 257, 1) == GRETA_ERROR_ARGUMENT);
  CHECK(open(1, 1, 0) == GRETA_ERROR_ARGUMENT);
  CHECK(open(1, 1, 1 << 25) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_step_open(rig.compute, nullptr, &none) == GRETA_ERROR_ARGUMENT);
  const greta_step step = open_step(rig, 5);
  const auto refused = [&](greta_status status, const char* words) {
    CHECK(status == GRETA_ERROR_ARGUMENT);
    CHECK_THAT(greta_error_text(), ContainsSubstring(words));
  };
  const auto set = [&](greta_row row, uint32_t count = 1) {
    return greta_step_set(rig.compute, rig.stream, step, &row, count);
  };
  refused(set({}, 7), "7 rows, at most 6 may live");
  refused(set({0, kPositions, 0, 0}), "row 0: position 200 of sequence 0, there are 200 of 3");
  refused(set({0, 0, kSequences, 0}), "position 0 of sequence 3");
  refused(set({0, 0, 0, 2}), "output is 2");
  refused(greta_step_set(rig.compute, rig.stream, step, nullptr, 1), "list is NULL");
  const auto pages = [&](uint32_t sequence, uint32_t first, std::vector<uint32_t> list) {
    return greta_step_pages(rig.compute, rig.stream, step, sequence, first, list.data(),
                            uint32_t(list.size()));
  };
  refused(pages(0, 0, {5}), "entry 0 is page 5, caches have 5");
  refused(pages(0, 3, {0, 0}), "2 pages from entry 3 on");
  refused(pages(3, 0, {0}), "of sequence 3");
  rig.ok(pages(0, 4, {}));
  for (int i = 0; i < 64; ++i) rig.ok(set({}));
  CHECK(set({}) == GRETA_ERROR_FULL);
  CHECK_THAT(greta_error_text(), ContainsSubstring("64 changes"));
  rig.wait();
  rig.ok(set({}));
}

TEST_CASE("compute attention: what does not fit is refused with its numbers", "[compute]") {
  ComputeRig rig;
  const greta_step step = open_step(rig, 5);
  const auto refused = [&](greta_status status, const char* words) {
    CHECK(status == GRETA_ERROR_ARGUMENT);
    CHECK_THAT(greta_error_text(), ContainsSubstring(words));
  };
  const CacheShape& shape = kCacheShapes[0];
  Attention attention(rig, shape, 5);
  const auto check = [&](const greta_attention_call& call, greta_status status, const char* words) {
    CHECK(greta_attention_check(rig.compute, &call) == status);
    CHECK_THAT(greta_error_text(), ContainsSubstring(words));
  };
  const greta_attention_call right = attention.attend;
  greta_attention_call call = right;
  call.keys.type = 2;
  check(call, GRETA_ERROR_UNSUPPORTED, "a cache of type 2");
  call = right, call.values.heads = 2;
  check(call, GRETA_ERROR_ARGUMENT, "keys have 4 heads, values 2");
  call = right, call.keys.width = 8;
  check(call, GRETA_ERROR_ARGUMENT, "[rows][heads][8] is wanted");
  call = right, call.keys.pages = 1000;
  check(call, GRETA_ERROR_ARGUMENT, "outside the buffer");
  call = right, call.keys.pages = 0;
  check(call, GRETA_ERROR_ARGUMENT, "0 pages of 4 heads");
  call = right, call.cap = -1;
  check(call, GRETA_ERROR_ARGUMENT, "a cap of -1");
  call = right, call.y = right.q;
  check(call, GRETA_ERROR_ARGUMENT, "overlap");
  call = right, call.y.buffer = right.keys.buffer, call.y.offset = 256;
  check(call, GRETA_ERROR_ARGUMENT, "y and the keys overlap");
  call = right, call.q.shape[0] = 4;
  check(call, GRETA_ERROR_ARGUMENT, "q of 4 rows");
  call = right, call.keys.offset = 16;
  check(call, GRETA_ERROR_ARGUMENT, "multiple of 256");
  refused(greta_attention(rig.compute, rig.stream, &right, {}, 0), "the stream has no step");
  call = right, call.keys.pages = 4;
  rig.ok(greta_stream_step(rig.compute, rig.stream, step));
  refused(greta_attention(rig.compute, rig.stream, &call, {}, 0),
          "room for 4 pages, the stream's step has 5");
  call = right, call.lone_rows = 1;
  refused(greta_attention(rig.compute, rig.stream, &call, {}, 0), "lone_rows, the stream's step was opened");
  call.lone_rows = 2;
  check(call, GRETA_ERROR_ARGUMENT, "lone_rows");
  // A closed step stays with its stream.
  rig.ok(greta_step_close(rig.compute, step));
  refused(greta_stream_step(rig.compute, rig.stream, step), "was closed");
  CHECK(greta_kv_write_check(rig.compute, &attention.keys) == GRETA_OK);
  rig.ok(greta_kv_write(rig.compute, rig.stream, &attention.keys, {}, 0));
  rig.wait();
}
