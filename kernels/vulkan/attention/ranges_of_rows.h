// The positions of a row: all in its window.
#ifndef GRETA_VULKAN_ATTENTION_RANGES_OF_ROWS_H
#define GRETA_VULKAN_ATTENTION_RANGES_OF_ROWS_H

// The positions that row t of the step takes here are [begin, row.position].
uint begin_of(StepRow row, uint t) {
  const uint end = row.position + 1;
  return p.window != 0 && p.window < end ? end - p.window : 0;
}
uint pages_of(StepRow row, uint t) {
  return row.position / kPageTokens + 1 - begin_of(row, t) / kPageTokens;
}
#endif
