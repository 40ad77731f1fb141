// A channel of a conv1d by one thread, over kConvRows rows of a run from row `from` on. The first rows also
// read and write the state. Sums begin with the bias and run from the oldest row, so the bits do not depend
// on where a text is cut. Before it stands what kernels/gpu/scan.h wants.
#include "kernels/gpu/scan.h"

#define kConvRows 16  // no less than kMaxConvWidth - 1

// Row i of the run, counted from the first one that the state has.
float conv_input(Conv1dBlock p, StepRun run, bool begins, float_address state, uint c, uint i) {
  if (i + 1 >= p.width) return AT(p.x, (run.first + i + 1 - p.width) * p.x_stride + c);
  return begins ? 0.0f : state.at[i * p.channels + c];
}

// The last inputs of the run to its state.
void conv_keep(Conv1dBlock p, StepRun run, bool begins, float_address state, uint c) {
  for (uint j = 0; j + 1 < p.width; ++j)
    state.at[j * p.channels + c] = conv_input(p, run, begins, state, c, run.count + j);
}

void conv_rows(Conv1dBlock p, StepRun run, bool begins, float_address state, uint c, uint from) {
  const float bias = IS(p.bias) ? AT(p.bias, c) : 0.0f;
  for (uint i = from; i < min(from + kConvRows, run.count); ++i) {
    float sum = bias;
    for (uint j = 0; j < p.width; ++j)
      sum += AT(p.weight, c * p.width + j) * conv_input(p, run, begins, state, c, i + j);
    AT(p.y, (run.first + i) * p.y_stride + c) = p.silu != 0 ? sum * logistic(sum) : sum;
  }
  if (from == 0) conv_keep(p, run, begins, state, c);
}
