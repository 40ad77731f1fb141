// StepState: all that changes from one forward step to the next, in device memory. Captured plans carry only
// its address. It is one buffer: the struct below, then
//   uint   page_table[sequence_capacity][page_capacity]   pool page of each 64 positions of a sequence
//   SamplePenalties   penalties[sequence_capacity]
//   SharedPrefixes   where a plan asks for it (kernels/abi/shared_prefix.h)
// Ownership: only the sample kernel writes `last_token`. It also turns the row from which it drew a token
// into the row of that token. Copies that the host records on the same stream write all the rest.
#ifndef GRETA_ABI_STEP_STATE_H
#define GRETA_ABI_STEP_STATE_H
#include "kernels/abi/abi.h"

#define kMaxStepTokens 512      // rows of the largest bucket
#define kMaxStepSequences 256   // most sequences of an executor
#define kTokenFromSample 0xffffffffu  // StepRow.token: take last_token[sequence]
#define kNoOutput 0xffffffffu
#define kNoDraw 0xffffffffu     // drawn where each logit is NaN or of the largest magnitude or more
#define kMaxPenalised 256       // most recent tokens that are penalised
#define kDrawnPositions 16      // last positions of each sequence whose tokens the host can still read

struct StepRow {
  uint token;     // id, or kTokenFromSample
  uint position;  // in its sequence, from 0
  uint sequence;  // row of page_table
  uint output;    // row of the logits, or kNoOutput
};

// Sampling of one sequence. A field that is 0 switches its filter or penalty off; temperature 0 is greedy.
struct SampleParams {
  float temperature;
  float top_p;            // keep the smallest set with this probability; 0 or 1: all
  float min_p;            // keep tokens at least this likely relative to the best
  float repeat_penalty;   // divides positive and multiplies negative logits of recent tokens; 0 or 1: off
  uint top_k;             // keep the k most likely; 0: all
  uint repeat_last_n;     // recent tokens that are penalised, at most kMaxPenalised
  uint seed_low, seed_high;
};

// What is taken from the logit of a recent token, after repeat_penalty.
struct SamplePenalties {
  float frequency;  // for each time that it is there
  float presence;   // once
};

struct StepState {
  uint token_count;        // live rows, <= the plan's bucket
  uint output_count;       // live rows of the logits
  uint first_drawn;        // the first row of the logits that is drawn from; the host has those before
  uint lone_count;         // rows 0 .. lone_count - 1 are each the only row of their sequence
  uint sequence_capacity;
  uint page_capacity;      // pages of one sequence
  StepRow row[kMaxStepTokens];
  uint output_row[kMaxStepTokens];  // the row of which output i has the logits
  SampleParams sample[kMaxStepSequences];
  uint last_token[kMaxStepSequences];  // the device writes it
};

#endif
