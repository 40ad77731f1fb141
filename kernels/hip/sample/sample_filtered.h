// The draw of sample_plain where top-k, top-p or min-p leave out candidates.
//
// Each filter keeps the beginning of the order of candidates, so a bound, the last candidate kept, describes
// what is left. A filter looks for the first candidate at which a running sum of counts or masses goes past a
// target. It finds it digit by digit, 8 bits at a time from the top, with a histogram of each digit.
//
// Only blocks of values whose largest value can matter are looked at. Mostly their candidates fit in a list
// in shared memory.
#pragma once
#include "kernels/hip/sample/sample_row.h"

namespace {

constexpr uint kListed = 2048;   // most candidates of the list
constexpr uint kMostRank = 512;  // largest rank of the block that sets the list's lower bound
constexpr uint kBins = 256;
constexpr uint kKeys = 8;  // keys of blocks that a thread loads together

// What the running sum of a filter adds for a candidate. This is also the order of filters.
enum Weigh : uint {
  kWeighCount,  // 1
  kWeighMass,   // exp(logit - max), what top-p and min-p go by
  kWeighDraw,   // exp((logit - max) / temperature)
};

SHARED_ARRAY(uint64_t, listed, kListed, 0);  // candidates
SHARED_ARRAY(uint64_t, bin_mass, kBins, END_OF(listed));
SHARED_ARRAY(uint, bin_count, kBins, END_OF(bin_mass));
SHARED uint listed_count;
SHARED uint bin_found;
SHARED uint64_t found_mass, found_candidate;

struct Filters {
  float max_logit;
  uint64_t best;   // the first candidate
  uint64_t bound;  // the last candidate kept
  uint low_key;    // no candidate with a lower key is kept
  bool use_min_p;  // min-p leaves out candidates too
  bool use_list;
};

}  // namespace

#define VISIT __attribute__((always_inline))  // a function that a pass over candidates calls

template <class Value>
DEVICE Value shared_add(Value& sum, Value value) {
  return __atomic_fetch_add(&sum, value, __ATOMIC_RELAXED);
}

DEVICE float weight_of(const Output& o, const Filters& f, uint64_t c, uint weigh) {
  const float below = of_key(key_part(c)) - f.max_logit;
  return exp_f32(weigh == kWeighDraw ? below / o.params.temperature : below);
}
DEVICE uint64_t candidate_mass(const Output& o, const Filters& f, uint64_t c, uint weigh) {
  return weigh == kWeighCount ? 1 : mass_of(weight_of(o, f, c, weigh));
}

DEVICE bool is_kept(const Output& o, const Filters& f, uint64_t c) {
  return key_part(c) >= f.low_key && c >= f.bound &&
         (!f.use_min_p || c == f.best || weight_of(o, f, c, kWeighMass) >= o.params.min_p);
}

// Digit `digit` of 8 bits, counted from the top.
DEVICE uint digit_of(uint64_t c, uint digit) { return uint(c >> (56 - digit * 8)) & 255; }

// Whether c begins with the digits found so far.
DEVICE bool has_prefix(uint64_t c, uint64_t found, uint digits) {
  return digits == 0 || (c ^ found) >> (64 - digits * 8) == 0;
}

// The largest keys of kKeys blocks: `first` and every GROUP-th after it; 0 where there is no block.
DEVICE void load_keys(const Output& o, uint first, uint (&keys)[kKeys]) {
  for (uint j = 0; j < kKeys; ++j) keys[j] = o.block_keys[min(first + j * GROUP, o.blocks - 1)];
  for (uint j = 0; j < kKeys; ++j) keys[j] = first + j * GROUP < o.blocks ? keys[j] : 0;
}

// Calls visit(candidate) for this thread's candidates in blocks whose largest key is at least `low_key`.
template <class Visit>
DEVICE void each_in_blocks(const Output& o, uint low_key, Visit visit) {
  for (uint first = thread_x(); first < o.blocks; first += kKeys * GROUP) {
    uint keys[kKeys], matter = 0;  // a bit for each block
    load_keys(o, first, keys);
    for (uint j = 0; j < kKeys; ++j) matter |= uint(keys[j] != 0 && keys[j] >= low_key) << j;
    for (; matter != 0; matter &= matter - 1) {
      const uint id = (first + __builtin_ctz(matter) * GROUP) * kBlock, end = min(id + kBlock, o.vocab);
#pragma clang loop unroll(disable)
      for (uint i = id; i < end; i += 4) {
        const vec4 four = load_four(o, o.values, i);
        for (uint j = 0; j < 4; ++j)
          if (i + j < end) visit(candidate(key_of(four[j]), i + j));
      }
    }
  }
}

// Calls visit(candidate) for this thread's share of the candidates that are kept.
template <class Visit>
DEVICE void each_kept(const Output& o, const Filters& f, Visit visit) {
  if (f.use_list) {
    for (uint i = thread_x(); i < listed_count; i += GROUP)
      if (is_kept(o, f, listed[i])) visit(listed[i]);
  } else {
    each_in_blocks(o, f.low_key, [&](uint64_t c) VISIT {
      if (is_kept(o, f, c)) visit(c);
    });
  }
}

DEVICE uint64_t kept_mass(const Output& o, const Filters& f, uint weigh) {
  uint64_t sum = 0;
  each_kept(o, f, [&](uint64_t c) VISIT { sum += candidate_mass(o, f, c, weigh); });
  return group_sum(sum);
}

DEVICE void clear_bins() {
  group_barrier();
  for (uint i = thread_x(); i < kBins; i += GROUP) bin_mass[i] = bin_count[i] = 0;
  group_barrier();
}

// The bin at which the running sum from the top goes past `target`. `target` is then reduced by the sum of
// the bins above it.
DEVICE uint pick_bin(uint64_t& target) {
  group_barrier();
  // Thread i has bin 255 - i, so the threads before it have the bins above.
  const bool is_bin = thread_x() < kBins;
  const uint bin = kBins - 1 - min(thread_x(), kBins - 1);
  const uint64_t own_mass = is_bin ? bin_mass[bin] : 0;
  uint64_t total;
  const uint64_t before = group_sum_before(own_mass, total);
  if (is_bin && own_mass != 0 && before <= target && target < before + own_mass) {
    bin_found = bin;
    found_mass = before;
  }
  group_barrier();
  target -= found_mass;
  return bin_found;
}

// The first candidate kept at which the running sum goes past `target`, which is less than the sum of all.
DEVICE uint64_t first_past(const Output& o, const Filters& f, uint64_t target, uint weigh) {
  uint64_t found = 0;
  uint digits = 0;
  do {
    clear_bins();
    each_kept(o, f, [&](uint64_t c) VISIT {
      if (!has_prefix(c, found, digits)) return;
      shared_add(bin_mass[digit_of(c, digits)], candidate_mass(o, f, c, weigh));
      shared_add(bin_count[digit_of(c, digits)], 1u);
    });
    found |= uint64_t(pick_bin(target)) << (56 - digits * 8);
    ++digits;
  } while (digits < 8 && bin_count[bin_found] != 1);
  each_kept(o, f, [&](uint64_t c) VISIT {
    if (has_prefix(c, found, digits)) found_candidate = c;
  });
  group_barrier();
  return found_candidate;
}

// The `rank`-th largest of the blocks' largest keys. At least `rank` candidates have that key or a larger
// one.
DEVICE uint ranked_block(const Output& o, uint rank) {
  uint64_t found = 0, target = rank - 1;
  for (uint digit = 0; digit < 4; ++digit) {
    clear_bins();
    for (uint first = thread_x(); first < o.blocks; first += kKeys * GROUP) {
      uint keys[kKeys];
      load_keys(o, first, keys);
      for (uint j = 0; j < kKeys; ++j) {
        const uint64_t c = candidate(keys[j], 0);
        if (keys[j] != 0 && has_prefix(c, found, digit))
          shared_add(bin_mass[digit_of(c, digit)], uint64_t(1));
      }
    }
    found |= uint64_t(pick_bin(target)) << (56 - digit * 8);
  }
  return key_part(found);
}

// Lists the candidates with keys from f.low_key on, and says whether they fit.
DEVICE void list_candidates(const Output& o, Filters& f) {
  group_barrier();
  if (thread_x() == 0) listed_count = 0;
  group_barrier();
  each_in_blocks(o, f.low_key, [&](uint64_t c) VISIT {
    if (key_part(c) < f.low_key) return;
    const uint at = shared_add(listed_count, 1u);
    if (at < kListed) listed[at] = c;
  });
  group_barrier();
  f.use_list = listed_count <= kListed;
}

// A key below which min-p keeps no candidate, even with the error of exp(); 0 without min-p. The mantissa m
// of a float is at most 1 + log2(m), so its bits are a logarithm that is never too large.
DEVICE uint min_p_key(const Output& o, float max_logit) {
  if (!(o.params.min_p > 0)) return 0;
  const float lowest = -110;  // exp_f32() is 0 from here on
  const float log2_below = float(bits_of(o.params.min_p)) * 0x1p-23f - 127;
  const float below = o.params.min_p < 0x1p-126f ? lowest : log2_below * 0.693147181f - 0.01f;
  return key_of(max(max_logit + below, -kLargest));
}

// Draws a token. `total` is the mass of the whole vocabulary, `first` its best candidate.
DEVICE uint draw_filtered(const Output& o, uint64_t first, uint64_t total, float uniform_draw) {
  const bool cuts_count = o.params.top_k != 0 && o.params.top_k < o.vocab;
  Filters f = {of_key(key_part(first)), first, 0, 0, false, false};
  // The best blocks set a lower bound. With top-k it is sure; for the share of top-p it is a guess.
  const uint sure = cuts_count ? 0 : min_p_key(o, f.max_logit);
  const uint rank = cuts_count ? o.params.top_k : min(max(o.blocks / 4, 1u), kMostRank);
  const bool ranks = cuts_count ? rank <= min(o.blocks, kMostRank) : cuts_mass(o.params);
  f.low_key = ranks ? max(sure, ranked_block(o, rank)) : sure;
  list_candidates(o, f);
  for (uint weigh = cuts_count ? kWeighCount : cuts_mass(o.params) ? kWeighMass : kWeighDraw;; ++weigh) {
    if (weigh == kWeighMass && !cuts_mass(o.params)) continue;
    f.use_min_p = weigh == kWeighDraw && o.params.min_p > 0;
    uint64_t mass = weigh == kWeighCount ? 0 : kept_mass(o, f, weigh), target = o.params.top_k - 1;
    if (weigh == kWeighMass) {
      const uint64_t part = share_of(cuts_count ? mass : total, o.params.top_p), share = part ? part : 1;
      if (mass < share && f.low_key != sure) {  // the guess leaves out too much
        f.low_key = sure;
        list_candidates(o, f);
        mass = kept_mass(o, f, weigh);
      }
      if (mass < share) continue;  // min-p leaves out more
      target = share - 1;
    } else if (weigh == kWeighDraw) {
      target = share_of(mass, uniform_draw);
    }
    f.bound = first_past(o, f, target, weigh);
    if (weigh == kWeighDraw) return id_part(f.bound);
  }
}
