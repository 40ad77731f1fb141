/* A layer of a llama as a graph: attention over a cache, then a feed-forward block. It is recorded once and
 * printed. Then it runs for a token after the other of several sequences: each step says where its rows
 * stand, and the graph stays. Usage: block [DEVICE [SEQUENCES]], by default cpu 4. */
#include <greta_compute.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPTIONS(type, name)      \
  type name;                     \
  memset(&name, 0, sizeof name); \
  name.struct_size = sizeof name

enum { kWidth = 256, kInner = 512, kHeads = 8, kKvHeads = 2, kHead = 32, kPositions = 128, kRuns = 100 };

static greta_runtime* runtime;
static greta_compute* compute;
static greta_stream stream;

static void need(greta_status status) {
  if (!status) return;
  fprintf(stderr, "%s\n", greta_error_text());
  greta_compute_close(compute);
  greta_runtime_close(runtime);
  exit(1);
}

static greta_buffer buffer_of(uint64_t bytes) {
  OPTIONS(greta_buffer_options, options);
  greta_buffer buffer;
  options.bytes = bytes;
  need(greta_buffer_open(compute, &options, &buffer));
  return buffer;
}

/* A tensor of one row or of several, in this buffer. */
static greta_tensor rows_in(greta_buffer buffer, uint64_t rows, uint64_t width) {
  greta_tensor tensor;
  memset(&tensor, 0, sizeof tensor);
  tensor.type = GRETA_TYPE_F32;
  tensor.rank = rows ? 2 : 1;
  tensor.shape[0] = rows ? rows : width;
  tensor.shape[1] = rows ? width : 0;
  tensor.buffer = buffer;
  return tensor;
}

/* Between two calls of the graph. */
static greta_tensor between(uint64_t rows, uint64_t width) {
  greta_buffer buffer;
  need(greta_graph_temporary(compute, stream, rows * width * sizeof(float), &buffer));
  return rows_in(buffer, rows, width);
}

static greta_weights random_weights(uint64_t n, uint64_t depth) {
  greta_weights weights;
  uint64_t bytes, i;
  float* values = malloc(n * depth * sizeof *values);
  greta_buffer source = buffer_of(n * depth * sizeof *values);
  if (!values) exit(1);
  for (i = 0; i < n * depth; ++i) values[i] = ((float)rand() / (float)RAND_MAX - 0.5f) / 8;
  need(greta_buffer_write(compute, source, 0, values, n * depth * sizeof *values));
  free(values);
  need(greta_weights_size(compute, GRETA_TYPE_F32, n, depth, &weights, &bytes, NULL));
  weights.buffer = buffer_of(bytes);
  need(greta_weights_pack(compute, stream, &weights, source, 0));
  need(greta_buffer_close(compute, source));
  return weights;
}

static greta_tensor linear(const greta_weights* weights, greta_tensor x, uint64_t rows) {
  OPTIONS(greta_linear_call, call);
  greta_buffer none = {0, 0};
  call.weights = *weights;
  call.x = x;
  call.y = between(rows, weights->n);
  need(greta_linear(compute, stream, &call, none, 0)); /* a graph has its own scratch */
  return call.y;
}

/* The same rows as heads. */
static greta_tensor heads_of(greta_tensor rows, uint64_t heads) {
  rows.rank = 3;
  rows.shape[1] = heads;
  rows.shape[2] = kHead;
  return rows;
}

static greta_tensor norm(greta_tensor x, greta_tensor gain) {
  OPTIONS(greta_rms_norm_call, call);
  greta_buffer none = {0, 0};
  call.epsilon = 1e-5f, call.gain = gain, call.x = x, call.y = between(x.shape[0], kWidth);
  need(greta_rms_norm(compute, stream, &call, none, 0));
  return call.y;
}

static void rotate(greta_tensor x, uint64_t heads, greta_tensor table) {
  OPTIONS(greta_rope_call, call);
  greta_buffer none = {0, 0};
  call.x = call.y = heads_of(x, heads), call.table = table;
  need(greta_rope(compute, stream, &call, none, 0));
}

static void store(greta_tensor x, greta_cache cache) {
  OPTIONS(greta_kv_write_call, call);
  greta_buffer none = {0, 0};
  call.x = heads_of(x, kKvHeads), call.cache = cache;
  need(greta_kv_write(compute, stream, &call, none, 0));
}

static void add(greta_tensor a, greta_tensor b, greta_tensor y) {
  OPTIONS(greta_add_call, call);
  greta_buffer none = {0, 0};
  call.a = a, call.b = b, call.y = y;
  need(greta_add(compute, stream, &call, none, 0));
}

static greta_tensor attention(greta_tensor q, greta_cache keys, greta_cache values) {
  OPTIONS(greta_attention_call, call);
  greta_buffer none = {0, 0};
  greta_tensor y = between(q.shape[0], kHeads * kHead);
  call.q = heads_of(q, kHeads), call.keys = keys, call.values = values, call.y = heads_of(y, kHeads);
  need(greta_attention(compute, stream, &call, none, 0));
  return y;
}

static greta_cache new_cache(uint64_t sequences) {
  greta_cache cache;
  uint64_t bytes;
  memset(&cache, 0, sizeof cache);
  cache.type = GRETA_TYPE_F16, cache.heads = kKvHeads, cache.width = kHead;
  cache.pages = (uint32_t)sequences * (kPositions / GRETA_PAGE_POSITIONS);
  need(greta_cache_size(compute, &cache, &bytes));
  cache.buffer = buffer_of(bytes);
  return cache;
}

/* The cosines and sines of pairs i at each position: of position / 10000^(2 i / head). */
static greta_tensor turns(void) {
  static float values[kPositions][kHead / 2][2];
  greta_tensor table = rows_in(buffer_of(sizeof values), kPositions, kHead / 2);
  int p, i;
  for (p = 0; p < kPositions; ++p)
    for (i = 0; i < kHead / 2; ++i) {
      const double angle = p * pow(10000, -2.0 * i / kHead);
      values[p][i][0] = (float)cos(angle), values[p][i][1] = (float)sin(angle);
    }
  need(greta_buffer_write(compute, table.buffer, 0, values, sizeof values));
  table.rank = 3;
  table.shape[2] = 2;
  return table;
}

struct layer {
  greta_weights query, key, value, output, gate, up, down;
  greta_tensor gain, table;
  greta_cache keys, values;
};

static greta_graph record(greta_tensor x, greta_tensor y, const struct layer* l) {
  const uint64_t rows = x.shape[0];
  greta_graph graph;
  greta_tensor in, q, k, v, h;
  greta_buffer none = {0, 0};
  OPTIONS(greta_gate_call, activate);
  need(greta_graph_begin(compute, stream));
  in = norm(x, l->gain);
  q = linear(&l->query, in, rows), rotate(q, kHeads, l->table); /* calls in a row may be one launch */
  k = linear(&l->key, in, rows), rotate(k, kKvHeads, l->table), store(k, l->keys);
  v = linear(&l->value, in, rows), store(v, l->values);
  h = between(rows, kWidth);
  add(x, linear(&l->output, attention(q, l->keys, l->values), rows), h);
  in = norm(h, l->gain);
  activate.gate = activate.y = linear(&l->gate, in, rows), activate.up = linear(&l->up, in, rows);
  need(greta_gate(compute, stream, &activate, none, 0));
  add(h, linear(&l->down, activate.y, rows), y);
  need(greta_graph_end(compute, stream, &graph));
  return graph;
}

int main(int argc, char** argv) {
  const uint32_t sequences = argc > 2 ? (uint32_t)atoi(argv[2]) : 4;
  static char text[4096];
  static greta_row list[256];
  size_t bytes;
  uint64_t ns;
  uint32_t run, s;
  float first;
  struct layer layer;
  greta_tensor x, y;
  greta_step step;
  greta_graph graph;
  greta_timeline timeline;
  OPTIONS(greta_runtime_options, options);
  OPTIONS(greta_timeline_options, timed);
  OPTIONS(greta_step_options, of);
  OPTIONS(greta_graph_info, info);
  options.device = argc > 1 ? argv[1] : "cpu";
  timed.timed = 1;
  need(greta_runtime_open(&options, &runtime));
  need(greta_compute_open(runtime, NULL, &compute));
  need(greta_stream_open(compute, &stream));
  need(greta_timeline_open(compute, &timed, &timeline));
  of.rows = of.sequences = sequences, of.positions = kPositions;
  need(greta_step_open(compute, &of, &step)); /* refuses more than 256 sequences */
  layer.query = random_weights(kHeads * kHead, kWidth), layer.key = random_weights(kKvHeads * kHead, kWidth);
  layer.value = random_weights(kKvHeads * kHead, kWidth),
  layer.output = random_weights(kWidth, kHeads * kHead);
  layer.gate = random_weights(kInner, kWidth), layer.up = random_weights(kInner, kWidth);
  layer.down = random_weights(kWidth, kInner);
  layer.keys = new_cache(sequences), layer.values = new_cache(sequences), layer.table = turns();
  x = rows_in(buffer_of(sequences * kWidth * sizeof(float)), sequences, kWidth);
  y = rows_in(buffer_of(sequences * kWidth * sizeof(float)), sequences, kWidth);
  layer.gain = rows_in(buffer_of(kWidth * sizeof(float)), 0, kWidth);
  need(greta_stream_fill(compute, stream, x.buffer, 0, sequences * kWidth * sizeof(float), 0x3e800000));
  need(greta_stream_fill(compute, stream, layer.gain.buffer, 0, kWidth * sizeof(float), 0x3f800000));
  need(greta_stream_step(compute, stream, step));
  graph = record(x, y, &layer);
  need(greta_graph_describe(compute, graph, &info));
  need(greta_graph_print(compute, graph, text, sizeof text, &bytes));
  printf("%u launches, %u barriers, %llu bytes of temporaries\n%s", info.launches, info.barriers,
         (unsigned long long)info.temporary_bytes, text);
  need(greta_stream_signal(compute, stream, timeline, 1));
  for (run = 0; run < kRuns; ++run) {
    for (s = 0; s < sequences; ++s)
      list[s].token = 0, list[s].position = run, list[s].sequence = s, list[s].output = 0;
    need(greta_step_set(compute, stream, step, list, sequences));
    need(greta_graph_run(compute, stream, graph, NULL, 0));
    if (run % 32 == 31) need(greta_stream_wait(compute, stream)); /* so many steps may be on the way */
  }
  need(greta_stream_signal(compute, stream, timeline, 2));
  need(greta_timeline_wait(compute, timeline, 2));
  need(greta_timeline_elapsed(compute, timeline, 1, 2, &ns));
  need(greta_buffer_read(compute, y.buffer, 0, &first, sizeof first));
  printf("%.1f us a step, y[0][0] = %g\n", (double)ns / 1e3 / kRuns, (double)first);
  greta_compute_close(compute);
  greta_runtime_close(runtime);
  return 0;
}
