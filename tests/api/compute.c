/* A program in C99 that uses greta_compute.h alone: copies on a device, and what is refused. Its arguments
 * are not used. */
#include <stdio.h>
#include <string.h>

#include "greta_compute.h"

#define OPTIONS(type, name)      \
  type name;                     \
  memset(&name, 0, sizeof name); \
  name.struct_size = sizeof name

static int failed;

static void expect(int right, const char* what) {
  if (right) return;
  printf("%s: %s\n", what, greta_error_text());
  failed = 1;
}

static void copy_words(greta_compute* compute) {
  enum { kWords = 1000 };
  uint32_t words[kWords], copied[kWords];
  size_t i;
  OPTIONS(greta_buffer_options, options);
  OPTIONS(greta_buffer_info, info);
  greta_buffer upload, device;
  greta_stream stream;
  greta_timeline timeline;
  for (i = 0; i < kWords; ++i) words[i] = (uint32_t)(i * i);
  options.bytes = sizeof words;
  expect(!greta_buffer_open(compute, &options, &device), "a buffer of the device");
  options.memory = GRETA_MEMORY_UPLOAD;
  expect(!greta_buffer_open(compute, &options, &upload), "a buffer for upload");
  expect(!greta_buffer_describe(compute, upload, &info) && info.mapped, "where it is mapped");
  if (failed) return;
  memcpy(info.mapped, words, sizeof words);
  expect(!greta_stream_open(compute, &stream), "a stream");
  expect(!greta_timeline_open(compute, NULL, &timeline), "a timeline");
  expect(!greta_stream_copy(compute, stream, device, 0, upload, 0, sizeof words), "a copy");
  expect(!greta_stream_fill(compute, stream, device, 0, 4, 77), "a fill");
  expect(!greta_stream_signal(compute, stream, timeline, 1), "a signal");
  expect(!greta_timeline_wait(compute, timeline, 1), "a wait");
  expect(!greta_buffer_read(compute, device, 0, copied, sizeof copied), "a read");
  words[0] = 77;
  expect(!memcmp(words, copied, sizeof words), "what was copied");
  expect(greta_stream_copy(compute, stream, device, 4, upload, 0, sizeof words) == GRETA_ERROR_ARGUMENT,
         "a copy that leaves its buffer");
  expect(!greta_buffer_close(compute, device), "the end of a buffer");
  expect(greta_buffer_close(compute, device) == GRETA_ERROR_ARGUMENT, "its second end");
  expect(!greta_stream_close(compute, stream) && !greta_timeline_close(compute, timeline), "the others' end");
}

int main(void) {
  OPTIONS(greta_runtime_options, options);
  greta_runtime* runtime = NULL;
  greta_compute* compute = NULL;
  options.device = "cpu";
  expect(!greta_runtime_open(&options, &runtime), "greta_runtime_open");
  expect(!greta_compute_open(runtime, NULL, &compute), "greta_compute_open");
  if (!failed) copy_words(compute);
  greta_compute_close(compute);
  greta_runtime_close(runtime);
  puts(failed ? "failed" : "ok");
  return failed;
}
