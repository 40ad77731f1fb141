// The draw of sample_plain where top-k, top-p or min-p leave out candidates.
//
// Candidates are ordered by {key, ~id}, the largest first; no two are equal. Each filter keeps the beginning
// of that order, so a bound, the last candidate kept, describes what is left. A filter looks for the first
// candidate at which a running sum of counts or masses goes past a target. It finds it digit by digit, 8 bits
// at a time from the top, with a histogram of each digit.
//
// Only blocks of values whose largest value can matter are looked at. Mostly their candidates fit in a list
// in shared memory.
#ifndef GRETA_VULKAN_SAMPLE_FILTERED_H
#define GRETA_VULKAN_SAMPLE_FILTERED_H
#include "kernels/vulkan/sample/sample_row.h"

#define kListed 2048   // most candidates of the list
#define kMostRank 512  // largest rank of the block that sets the list's lower bound
#define kBins 256

#define kWeighCount 0
#define kWeighMass 1  // exp(logit - max), what top-p and min-p go by
#define kWeighDraw 2  // exp((logit - max) / temperature)

shared uvec2 listed[kListed];  // {key, id}
shared uint listed_count;
shared uint bin_low[kBins], bin_high[kBins];  // sums of 64 bits
shared uint bin_count[kBins];
shared uint bin_found;
shared uvec2 bin_before;

float max_logit;
uvec2 best;      // {key, ~id} of the first candidate
uvec2 bound;     // {key, ~id} of the last candidate kept
bool use_min_p;  // min-p leaves out candidates too
bool use_list;
uint low_key;    // no candidate with a lower key is kept

bool at_least(uvec2 a, uvec2 b) { return a.x > b.x || (a.x == b.x && a.y >= b.y); }

float weight_of(uvec2 c, uint weigh) {
  if (weigh == kWeighCount) return 1 / kMassUnit;
  const float below = of_key(c.x) - max_logit;
  return exp_f32(weigh == kWeighDraw ? below / params.temperature : below);
}

bool is_kept(uvec2 c) {
  return c.x >= low_key && at_least(c, bound) &&
      (!use_min_p || c == best || weight_of(c, kWeighMass) >= params.min_p);
}

// Digit `digit` of 8 bits, counted from the top of {key, ~id}.
uint digit_of(uvec2 c, uint digit) { return ((digit < 4 ? c.x : c.y) >> (24 - digit % 4 * 8)) & 255; }

// Whether c begins with the digits found so far.
bool has_prefix(uvec2 c, uvec2 found, uint digits) {
  if (digits <= 4) return digits == 0 || (c.x ^ found.x) >> (32 - digits * 8) == 0;
  return c.x == found.x && (c.y ^ found.y) >> (64 - digits * 8) == 0;
}

// A pass over the candidates does one of three things with each candidate that is kept.
#define kPassSum 0   // adds its weight to `sum`
#define kPassBins 1  // adds its weight to the bin of its next digit, if it has the prefix
#define kPassFind 2  // sets bin_before to it, if it has the prefix
struct Pass {
  uint kind, weigh, digits;
  uvec2 found;
  uint64_t sum;
};

void visit(inout Pass pass, uvec2 c) {
  if (!is_kept(c)) return;
  if (pass.kind == kPassSum) {
    pass.sum += mass_of(weight_of(c, pass.weigh));
  } else if (has_prefix(c, pass.found, pass.digits)) {
    if (pass.kind == kPassFind) {
      bin_before = c;
      return;
    }
    const uint bin = digit_of(c, pass.digits);
    const uvec2 mass = unpackUint2x32(mass_of(weight_of(c, pass.weigh)));
    const uint before = atomicAdd(bin_low[bin], mass.x);
    const uint carry = uint(before + mass.x < before);
    if (mass.y + carry != 0) atomicAdd(bin_high[bin], mass.y + carry);
    atomicAdd(bin_count[bin], 1);
  }
}

// The largest keys of kKeys blocks: `first` and every GROUP-th after it; 0 where there is no block.
#define kKeys 8
void load_keys(uint first, out uint keys[kKeys]) {
  [[unroll]] for (uint j = 0; j < kKeys; ++j)
    keys[j] = first + j * GROUP < blocks() ? block_keys().at[first + j * GROUP] : 0;
}

void run(inout Pass pass) {
  if (use_list) {
    for (uint i = gl_LocalInvocationIndex; i < listed_count; i += GROUP)
      visit(pass, uvec2(listed[i].x, ~listed[i].y));
    return;
  }
  for (uint first = gl_LocalInvocationIndex; first < blocks(); first += kKeys * GROUP) {
    uint keys[kKeys];
    load_keys(first, keys);
    for (uint j = 0; j < kKeys; ++j) {
      if (keys[j] == 0 || keys[j] < low_key) continue;
      const uint b = first + j * GROUP;
      float values[kBlock];
      uint count;
      load_block(values_at(), b, values, count);
      for (uint i = 0; i < count; ++i) visit(pass, uvec2(key_of(values[i]), ~(b * kBlock + i)));
    }
  }
}

uint64_t kept_mass(uint weigh) {
  Pass pass = Pass(kPassSum, weigh, 0, uvec2(0), 0);
  run(pass);
  return group_sum(pass.sum);
}

// The bin at which the running sum from the top goes past `target`: {bin, its count}. `target` is then
// reduced by the sum of the bins above it.
uvec2 pick_bin(inout uint64_t target) {
  barrier();
  // Thread i has bin 255 - i, so the threads before it have the bins above.
  const uint bin = kBins - 1 - min(gl_LocalInvocationIndex, kBins - 1);
  const bool is_bin = gl_LocalInvocationIndex < kBins;
  const uint64_t own_mass = is_bin ? packUint2x32(uvec2(bin_low[bin], bin_high[bin])) : 0;
  uint64_t total;
  const uint64_t before = group_sum_before(own_mass, total);
  if (is_bin && own_mass != 0 && before <= target && target < before + own_mass) {
    bin_found = bin;
    bin_before = unpackUint2x32(before);
  }
  barrier();
  target -= packUint2x32(bin_before);
  return uvec2(bin_found, bin_count[bin_found]);
}

void clear_bins() {
  barrier();
  for (uint i = gl_LocalInvocationIndex; i < kBins; i += GROUP) bin_low[i] = bin_high[i] = bin_count[i] = 0;
  barrier();
}

// The first candidate kept at which the running sum goes past `target`, which is less than the sum of all.
uvec2 first_past(uint64_t target, uint weigh) {
  Pass pass = Pass(kPassBins, weigh, 0, uvec2(0), 0);
  for (uint digit = 0; digit < 8; ++digit) {
    clear_bins();
    pass.digits = digit;
    run(pass);
    const uvec2 bin = pick_bin(target);
    if (digit < 4) pass.found.x |= bin.x << (24 - digit * 8);
    else pass.found.y |= bin.x << (56 - digit * 8);
    pass.digits = digit + 1;
    if (bin.y == 1) break;
  }
  pass.kind = kPassFind;
  barrier();
  run(pass);
  barrier();
  return bin_before;
}

// The `rank`-th largest of the blocks' largest keys. At least `rank` candidates have that key or a larger
// one.
uint ranked_block(uint rank) {
  uint found = 0;
  uint64_t target = rank - 1;
  for (uint digit = 0; digit < 4; ++digit) {
    clear_bins();
    for (uint first = gl_LocalInvocationIndex; first < blocks(); first += kKeys * GROUP) {
      uint keys[kKeys];
      load_keys(first, keys);
      for (uint j = 0; j < kKeys; ++j)
        if (keys[j] != 0 && has_prefix(uvec2(keys[j], 0), uvec2(found, 0), digit))
          atomicAdd(bin_low[digit_of(uvec2(keys[j], 0), digit)], 1);
    }
    found |= pick_bin(target).x << (24 - digit * 8);
  }
  return found;
}

// Lists the candidates with keys from low_key on. It returns false if they are too many.
bool list_candidates() {
  barrier();
  if (gl_LocalInvocationIndex == 0) listed_count = 0;
  barrier();
  for (uint first = gl_LocalInvocationIndex; first < blocks(); first += kKeys * GROUP) {
    uint keys[kKeys];
    load_keys(first, keys);
    for (uint j = 0; j < kKeys; ++j) {
      if (keys[j] == 0 || keys[j] < low_key) continue;
      const uint b = first + j * GROUP;
      float values[kBlock];
      uint count;
      load_block(values_at(), b, values, count);
      for (uint i = 0; i < count; ++i) {
        const uint key = key_of(values[i]);
        if (key < low_key) continue;
        const uint at = atomicAdd(listed_count, 1);
        if (at < kListed) listed[at] = uvec2(key, b * kBlock + i);
      }
    }
  }
  barrier();
  return listed_count <= kListed;
}

// A key below which min-p keeps no candidate, even with the error of exp(); 0 without min-p.
uint min_p_key() {
  return params.min_p > 0 ? key_of(max(max_logit + log(params.min_p) - 0.01, -kLargest)) : 0;
}

// top-p without top-k: keeps a share of `total`, the mass of the whole vocabulary. The best blocks set a
// lower bound, which is a guess: where too little mass lies above it, all candidates are taken.
void cut_mass(uint64_t total) {
  const uint64_t share = max(share_of(total, params.top_p), 1);
  const uint sure = min_p_key();
  low_key = max(sure, ranked_block(clamp(blocks() / 4, 1, kMostRank)));
  use_list = list_candidates();
  uint64_t mass = kept_mass(kWeighMass);
  if (mass < share && low_key != sure) {
    low_key = sure;
    use_list = list_candidates();
    mass = kept_mass(kWeighMass);
  }
  if (mass >= share) bound = first_past(share - 1, kWeighMass);
}

// Draws a token. `total` is the mass of the whole vocabulary, `first` the {key, id} of the best candidate.
uint draw_filtered(uvec2 first, uint64_t total, float uniform_draw) {
  best = uvec2(first.x, ~first.y);
  max_logit = of_key(first.x);
  bound = uvec2(0);
  low_key = 0;
  use_min_p = use_list = false;
  if (params.top_k != 0 && params.top_k < p.vocab) {
    if (params.top_k <= min(blocks(), kMostRank)) low_key = ranked_block(params.top_k);
    use_list = list_candidates();
    bound = first_past(params.top_k - 1, kWeighCount);
    if (cuts_mass())
      bound = first_past(max(share_of(kept_mass(kWeighMass), params.top_p), 1) - 1, kWeighMass);
  } else if (cuts_mass()) {
    cut_mass(total);
  } else {
    low_key = min_p_key();
    use_list = list_candidates();
  }
  use_min_p = params.min_p > 0;
  const uint64_t drawn = share_of(kept_mass(kWeighDraw), uniform_draw);
  return ~first_past(drawn, kWeighDraw).y;
}
#endif
