// The chain: how launches of a captured step follow each other without a barrier. A stage is what may run side by side;
// its groups count themselves in the stage's cell when they have written, and those of the next stage wait for all of
// them. Cells lie kChainStride bytes apart, in the order of stages. Counts go on from replay to replay, so that none has
// to be cleared: a group's own cell tells it which replay this is, since no stage is complete without it.
#ifndef GRETA_ABI_CHAIN_H
#define GRETA_ABI_CHAIN_H
#include "kernels/abi/abi.h"

struct ChainCell {
  ADDRESS(uint) stuck;  // becomes 1 when a group has waited in vain
  uint groups;          // of the stage; 0: nothing waits for this cell
  uint ended;           // groups of all replays, up to kChainReplays of them
};
#define kChainStride 64
#define kChainGroups 65535   // of a stage at most,
#define kChainReplays 65536  // so that their product fits; then cells begin anew

// Asked of a driver before it is trusted (chain_check.comp). Group g of stage s reads values of other groups of the stage
// before, each of which has to be s, and writes s + 1.
struct ChainCheckBlock {
  ADDRESS(uint) values;  // [2][groups], stages in turn
  ADDRESS(uint) wrong;   // how many values were not s
  ADDRESS(uint) chain;
  uint stage, groups;
};
#endif
