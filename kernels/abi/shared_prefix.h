// SharedPrefixes: which rows of a step share the first pages of their sequences. It lies behind the penalties
// of the StepState (kernels/abi/step_state.h). Only a plan that reads shared pages once asks for it.
//
// A prefix is a run of pages with which several sequences begin. Its members are rows of the step, each of
// which is the only one of its sequence, and each has positions behind the prefix. The queries of a prefix
// are those of its members for one KV head, in the order of members, then of query heads. They are cut into
// blocks of kPrefixQueries. The pages are cut into ranges. A block and a range are an item, of which a group
// makes the partial results for one KV head.
#ifndef GRETA_ABI_SHARED_PREFIX_H
#define GRETA_ABI_SHARED_PREFIX_H
#include "kernels/abi/step_state.h"

#define kStepStateWords (6 + kMaxStepTokens * 5 + kMaxStepSequences * 9)  // of uint
#define kMaxPrefixes 8  // of a step

struct SharedPrefix {
  uint pages;
  uint first, count;  // its members are member[first .. first + count - 1]
  uint sequence;      // of one of them, whose page table has the pages
};

// Of a row.
struct PrefixRow {
  uint pages;   // of its prefix; 0: it has none
  uint prefix;
  uint place;   // its place among the members of the prefix
};

struct SharedPrefixes {
  uint count;
  SharedPrefix prefix[kMaxPrefixes];
  uint member[kMaxStepSequences];    // rows of the step
  PrefixRow row[kMaxStepSequences];  // of rows 0 .. lone_count - 1
};

#define kPrefixQueries 64  // of a block
#define kPrefixGroups 512  // about so many groups share the prefixes of a step
#define kMinRangePages 4   // fewest pages of a range, unless the prefix has fewer
#define kMaxPrefixRanges 64

// The most items of a step, each of which has a group for every KV head.
#define attention_prefix_spread(kv_heads) ((kv_heads) < kPrefixGroups ? kPrefixGroups / (kv_heads) : 1)
#define attention_prefix_items(tokens, heads, kv_heads)                                          \
  (((tokens) * ((heads) / (kv_heads)) + kPrefixQueries - 1) / kPrefixQueries + kMaxPrefixes +    \
   attention_prefix_spread(kv_heads))
// The partial results: of each item, KV head and query the maximum and the sum of weights, and 16 bytes
// further value_width sums. They lie behind those of attention_lone_ranges().
#define attention_prefix_scratch_bytes(tokens, heads, kv_heads, value_width) \
  (attention_prefix_items(tokens, heads, kv_heads) * (kv_heads) * kPrefixQueries * ((value_width) + 4) * 4)

#endif
