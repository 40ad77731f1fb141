/* Multiplies by weights of a type of GGUF, and says how fast: usage: linear [DEVICE [TYPE [N [DEPTH
 * [ROWS]]]]], by default cpu q8_0 1024 1024 16. The weights are random bits, so the results mean nothing. */
#include <greta_compute.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPTIONS(type, name)      \
  type name;                     \
  memset(&name, 0, sizeof name); \
  name.struct_size = sizeof name

static greta_runtime* runtime;
static greta_compute* compute;

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

static greta_tensor matrix_of(uint64_t rows, uint64_t width) {
  greta_tensor tensor;
  memset(&tensor, 0, sizeof tensor);
  tensor.type = GRETA_TYPE_F32;
  tensor.rank = 2;
  tensor.shape[0] = rows;
  tensor.shape[1] = width;
  tensor.buffer = buffer_of(rows * width * sizeof(float));
  return tensor;
}

/* Packs small random bytes as weights. In any type most of them are small numbers. */
static greta_weights random_weights(greta_stream stream, uint32_t type, uint64_t n, uint64_t depth) {
  greta_weights weights;
  uint64_t bytes, source_bytes, i;
  greta_buffer source;
  uint8_t* data;
  need(greta_weights_size(compute, type, n, depth, &weights, &bytes, &source_bytes));
  data = malloc(source_bytes);
  if (!data) exit(1);
  for (i = 0; i < source_bytes; ++i) data[i] = (uint8_t)(rand() & 0x1f);
  source = buffer_of(source_bytes);
  weights.buffer = buffer_of(bytes);
  need(greta_buffer_write(compute, source, 0, data, source_bytes));
  free(data);
  need(greta_weights_pack(compute, stream, &weights, source, 0));
  need(greta_buffer_close(compute, source)); /* it is kept until it has been read */
  return weights;
}

int main(int argc, char** argv) {
  enum { kCalls = 10 };
  const char* const type_name = argc > 2 ? argv[2] : "q8_0";
  const uint64_t n = argc > 3 ? strtoull(argv[3], NULL, 10) : 1024;
  const uint64_t depth = argc > 4 ? strtoull(argv[4], NULL, 10) : 1024;
  const uint64_t rows = argc > 5 ? strtoull(argv[5], NULL, 10) : 16;
  uint32_t type, i;
  uint64_t scratch_bytes, ns;
  greta_stream stream;
  greta_timeline timeline;
  greta_buffer scratch = {0, 0};
  OPTIONS(greta_runtime_options, options);
  OPTIONS(greta_timeline_options, timed);
  OPTIONS(greta_linear_call, call);
  options.device = argc > 1 ? argv[1] : "cpu";
  timed.timed = 1;
  need(greta_runtime_open(&options, &runtime));
  need(greta_compute_open(runtime, NULL, &compute));
  need(greta_stream_open(compute, &stream));
  need(greta_timeline_open(compute, &timed, &timeline));
  need(greta_type_find(type_name, &type));
  call.weights = random_weights(stream, type, n, depth);
  call.x = matrix_of(rows, depth);
  call.y = matrix_of(rows, n);
  need(greta_stream_fill(compute, stream, call.x.buffer, 0, rows * depth * sizeof(float), 0x3f000000));
  need(greta_linear_scratch(compute, &call, &scratch_bytes));
  if (scratch_bytes) scratch = buffer_of(scratch_bytes);
  need(greta_linear(compute, stream, &call, scratch, 0)); /* caches and clocks are warm after it */
  need(greta_stream_signal(compute, stream, timeline, 1));
  for (i = 0; i < kCalls; ++i) need(greta_linear(compute, stream, &call, scratch, 0));
  need(greta_stream_signal(compute, stream, timeline, 2));
  need(greta_timeline_wait(compute, timeline, 2));
  need(greta_timeline_elapsed(compute, timeline, 1, 2, &ns));
  printf("%s [%llu][%llu], %llu rows: %.1f us a call, %.1f Gop/s, %llu bytes of scratch\n", type_name,
         (unsigned long long)n, (unsigned long long)depth, (unsigned long long)rows,
         (double)ns / 1e3 / kCalls,
         2.0 * (double)n * (double)depth * (double)rows * kCalls / (double)(ns ? ns : 1),
         (unsigned long long)scratch_bytes);
  greta_compute_close(compute);
  greta_runtime_close(runtime);
  return 0;
}
