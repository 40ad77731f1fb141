// sample_plain: draws the next token of each output from first_drawn on.
//   token = draw(filter(penalise(logits))), by the parameters and the position of the output's sequence
//     where logits [outputs][vocab]
//   grid    (outputs)
//   group   one output. Candidates are a heap, taken in order (larger logit, then lower id) until top-k,
//           top-p or min-p ends the list. Without those three nothing is sorted, and the draw runs over the
//           vocabulary in order of id
//   memory  the block's scratch: sample_scratch_bytes(vocab) for each output
//   moves   the logits once or twice; the candidates
// The argument block is SampleBlock in kernels/abi/ops.h.
#include "kernels/cpu/math.h"
#include "kernels/cpu/sample/philox.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/step.h"

namespace {

constexpr float kLargest = 3.402823466e38f;

struct Candidate {
  float logit;
  uint32_t id;
};

inline bool before(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

// Finite: differences and sums of what comes out are never NaN.
inline float tame(float logit) {
  return logit > kLargest ? kLargest : logit >= -kLargest ? logit : -kLargest;
}

struct Recent {
  uint32_t token, times;
};

// Recent tokens, the current one among them, each once, and how often they are there.
uint32_t recent_tokens(const SampleBlock& b, const StepState* step, const StepRow& row, uint32_t wanted,
                       Recent* out) {
  const uint32_t held = row.position + 1;
  uint32_t last_n = wanted < kMaxPenalised ? wanted : kMaxPenalised, count = 0;
  if (last_n > held) last_n = held;
  for (uint32_t i = 0; i < last_n; ++i) {
    const uint32_t position = row.position - i;
    const uint64_t page = page_of(step, row.sequence, position);
    const uint32_t token = ((const uint32_t*)b.token_log)[page * kPageTokens + position % kPageTokens];
    if (token >= b.vocab) continue;
    uint32_t at = 0;
    while (at < count && out[at].token != token) ++at;
    if (at == count) out[count++] = {token, 0};
    ++out[at].times;
  }
  return count;
}

void penalise(const SampleBlock& b, const StepState* step, const StepRow& row, const SampleParams& params,
              Candidate* all) {
  const SamplePenalties& taken = penalties_of(step, row.sequence);
  const bool repeats = params.repeat_penalty > 0 && params.repeat_penalty != 1.f;
  const bool takes = taken.frequency != 0 || taken.presence != 0;
  if ((!repeats && !takes) || !b.token_log) return;
  Recent tokens[kMaxPenalised];
  const uint32_t count = recent_tokens(b, step, row, params.repeat_last_n, tokens);
  for (uint32_t i = 0; i < count; ++i) {
    float& logit = all[tokens[i].token].logit;
    if (repeats) logit = tame(logit > 0 ? logit / params.repeat_penalty : logit * params.repeat_penalty);
    if (takes) logit = tame(logit - (taken.frequency * float(tokens[i].times) + taken.presence));
  }
}

uint32_t greedy(const Candidate* all, uint32_t count) {
  uint32_t best = 0;
  for (uint32_t i = 1; i < count; ++i)
    if (before(all[i], all[best])) best = i;
  return all[best].id;
}

void sift_down(Candidate* heap, uint32_t count, uint32_t at) {
  const Candidate moving = heap[at];
  for (uint32_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
    if (child + 1 < count && before(heap[child + 1], heap[child])) ++child;
    if (!before(heap[child], moving)) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = moving;
}

// Takes the best of the heap to its end; what is taken lies there in reverse order.
const Candidate& take_best(Candidate* heap, uint32_t* count) {
  const Candidate best = heap[0];
  heap[0] = heap[--*count];
  sift_down(heap, *count, 0);
  heap[*count] = best;
  return heap[*count];
}

// Keeps what top-k, then top-p, then min-p leave: the last `kept` of `all`, best last.
uint32_t keep(const SampleParams& params, Candidate* all, uint32_t vocab) {
  uint32_t left = vocab;
  for (uint32_t i = vocab / 2; i-- > 0;) sift_down(all, vocab, i);
  const float max = all[0].logit;
  const uint32_t top_k = params.top_k && params.top_k < vocab ? params.top_k : vocab;
  const bool top_p = params.top_p > 0 && params.top_p < 1;
  // What top-p is a share of: the candidates that top-k leaves.
  double total = 0;
  if (top_p && top_k == vocab)
    for (uint32_t i = 0; i < vocab; ++i) total += exp_f32(all[i].logit - max);
  if (top_k < vocab)
    while (vocab - left < top_k) total += exp_f32(take_best(all, &left).logit - max);
  uint32_t kept = 0;
  double sum = 0;
  for (; kept < top_k; ++kept) {
    const Candidate& next = vocab - left > kept ? all[vocab - 1 - kept] : take_best(all, &left);
    const float weight = exp_f32(next.logit - max);
    if (kept && ((top_p && sum >= double(params.top_p) * total) || weight < params.min_p)) break;
    sum += weight;
  }
  return kept;
}

// The first candidate, from `from` in steps of `step`, at which the running sum passes the draw.
uint32_t draw(const Candidate* from, int64_t step, uint32_t count, float temperature, float uniform) {
  float max = from[0].logit;
  for (uint32_t i = 1; i < count; ++i) max = from[i * step].logit > max ? from[i * step].logit : max;
  double total = 0, sum = 0;
  for (uint32_t i = 0; i < count; ++i) total += exp_f32((from[i * step].logit - max) / temperature);
  uint32_t chosen = from[0].id;
  for (uint32_t i = 0; i < count; ++i) {
    const float weight = exp_f32((from[i * step].logit - max) / temperature);
    if (weight > 0) chosen = from[i * step].id;
    sum += weight;
    if (sum > double(uniform) * total) break;
  }
  return chosen;
}

uint32_t sample_row(const SampleBlock& b, const StepState* step, uint32_t output) {
  const StepRow& row = step->row[step->output_row[output]];
  const SampleParams& params = step->sample[row.sequence];
  const float* logits = (const float*)b.logits + uint64_t(output) * b.vocab;
  Candidate* all = (Candidate*)(b.scratch + uint64_t(output) * sample_scratch_bytes(b.vocab));
  bool finite = false;
  for (uint32_t i = 0; i < b.vocab; ++i) {
    all[i] = {tame(logits[i]), i};
    finite |= all[i].logit > -kLargest && all[i].logit < kLargest;
  }
  if (!finite) return kNoDraw;
  penalise(b, step, row, params, all);
  if (!(params.temperature > 0)) return greedy(all, b.vocab);
  const float uniform = philox_uniform(params.seed_low, params.seed_high, row.position);
  const bool filtered = params.top_k || (params.top_p > 0 && params.top_p < 1) || params.min_p > 0;
  if (!filtered) return draw(all, 1, b.vocab, params.temperature, uniform);
  return draw(all + b.vocab - 1, -1, keep(params, all, b.vocab), params.temperature, uniform);
}

// Several outputs of a sequence would race for its last_token: the last one has it.
bool is_last_of_sequence(const StepState* step, uint32_t output, uint32_t live) {
  const uint32_t sequence = step->row[step->output_row[output]].sequence;
  for (uint32_t i = output + 1; i < live; ++i)
    if (step->row[step->output_row[i]].sequence == sequence) return false;
  return true;
}

// To the host, and to the next step.
void hand_on(const SampleBlock& b, StepState* step, uint32_t output, uint32_t live, uint32_t token) {
  StepRow& row = step->row[step->output_row[output]];
  ((uint32_t*)b.drawn)[row.sequence * kDrawnPositions + row.position % kDrawnPositions] = token;
  if (!is_last_of_sequence(step, output, live)) return;
  step->last_token[row.sequence] = token;
  row.token = kTokenFromSample;
  ++row.position;
}

}  // namespace

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch*) {
  const SampleBlock& b = *(const SampleBlock*)block;
  StepState* step = (StepState*)b.step;
  const uint32_t live = live_rows(step, kRowsOutputs);
  for (uint32_t i = first_group; i < first_group + group_count && i < live; ++i)
    if (i >= step->first_drawn) hand_on(b, step, i, live, sample_row(b, step, i));
}
