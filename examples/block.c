/* A feed-forward block of a transformer as a graph: y = x + down . (silu(gate . norm(x)) * (up . norm(x))).
 * It is recorded once, printed, and run for each x. Usage: block [DEVICE [ROWS]], by default cpu 4. */
#include <greta_compute.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPTIONS(type, name)      \
  type name;                     \
  memset(&name, 0, sizeof name); \
  name.struct_size = sizeof name

enum { kWidth = 256, kInner = 512, kRuns = 100 };

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

static greta_graph record(greta_tensor x, greta_tensor y, greta_tensor gain, const greta_weights* gate,
                          const greta_weights* up, const greta_weights* down) {
  const uint64_t rows = x.shape[0];
  greta_graph graph;
  greta_buffer none = {0, 0};
  OPTIONS(greta_rms_norm_call, norm);
  OPTIONS(greta_gate_call, activate);
  OPTIONS(greta_add_call, add);
  need(greta_graph_begin(compute, stream));
  norm.epsilon = 1e-5f, norm.gain = gain, norm.x = x, norm.y = between(rows, kWidth);
  need(greta_rms_norm(compute, stream, &norm, none, 0));
  activate.gate = activate.y = linear(gate, norm.y, rows), activate.up = linear(up, norm.y, rows);
  need(greta_gate(compute, stream, &activate, none, 0));
  add.a = x, add.b = linear(down, activate.y, rows), add.y = y;
  need(greta_add(compute, stream, &add, none, 0));
  need(greta_graph_end(compute, stream, &graph));
  return graph;
}

int main(int argc, char** argv) {
  const uint64_t rows = argc > 2 ? strtoull(argv[2], NULL, 10) : 4;
  static char text[4096];
  size_t bytes;
  uint64_t ns;
  int run;
  float first;
  greta_weights gate, up, down;
  greta_tensor x, y, gain;
  greta_graph graph;
  greta_timeline timeline;
  OPTIONS(greta_runtime_options, options);
  OPTIONS(greta_timeline_options, timed);
  OPTIONS(greta_graph_info, info);
  options.device = argc > 1 ? argv[1] : "cpu";
  timed.timed = 1;
  need(greta_runtime_open(&options, &runtime));
  need(greta_compute_open(runtime, NULL, &compute));
  need(greta_stream_open(compute, &stream));
  need(greta_timeline_open(compute, &timed, &timeline));
  gate = random_weights(kInner, kWidth), up = random_weights(kInner, kWidth);
  down = random_weights(kWidth, kInner);
  x = rows_in(buffer_of(rows * kWidth * sizeof(float)), rows, kWidth);
  y = rows_in(buffer_of(rows * kWidth * sizeof(float)), rows, kWidth);
  gain = rows_in(buffer_of(kWidth * sizeof(float)), 0, kWidth);
  need(greta_stream_fill(compute, stream, x.buffer, 0, rows * kWidth * sizeof(float), 0x3e800000));
  need(greta_stream_fill(compute, stream, gain.buffer, 0, kWidth * sizeof(float), 0x3f800000));
  graph = record(x, y, gain, &gate, &up, &down);
  need(greta_graph_describe(compute, graph, &info));
  need(greta_graph_print(compute, graph, text, sizeof text, &bytes));
  printf("%u launches, %u barriers, %llu bytes of temporaries\n%s", info.launches, info.barriers,
         (unsigned long long)info.temporary_bytes, text);
  need(greta_stream_signal(compute, stream, timeline, 1));
  for (run = 0; run < kRuns; ++run) need(greta_graph_run(compute, stream, graph, NULL, 0));
  need(greta_stream_signal(compute, stream, timeline, 2));
  need(greta_timeline_wait(compute, timeline, 2));
  need(greta_timeline_elapsed(compute, timeline, 1, 2, &ns));
  need(greta_buffer_read(compute, y.buffer, 0, &first, sizeof first));
  printf("%.1f us a run, y[0][0] = %g\n", (double)ns / 1e3 / kRuns, (double)first);
  greta_compute_close(compute);
  greta_runtime_close(runtime);
  return 0;
}
