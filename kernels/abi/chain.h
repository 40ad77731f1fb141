// The chain: the launches of a captured step that wait for each other by counters and not by barriers. A
// stage of the chain is a set of launches that may run side by side. Each group of a stage adds 1 to the
// stage's cell when it has written its results, and the groups of the next stage wait until all have done so.
// Cells lie kChainStride bytes apart, in the order of stages. The counts go on from replay to replay, so that
// none has to be cleared: a group reads in its own cell which replay this is, since no earlier replay of a
// stage is complete without all its groups.
#ifndef GRETA_ABI_CHAIN_H
#define GRETA_ABI_CHAIN_H
#include "kernels/abi/abi.h"

struct ChainCell {
  ADDRESS(uint) stuck;  // becomes 1 when a group has waited in vain
  uint groups;          // groups of the stage; 0: nothing waits for this cell
  uint ended;           // groups that have ended, over all replays, up to kChainReplays of them
};
#define kChainStride 64
#define kChainBehind 120     // where kernels whose block has no field for it find their cell's address
#define kChainGroups 65535   // most groups of a stage
#define kChainReplays 65536  // replays until all cells begin anew; times kChainGroups they fit in 32 bits

// chain_check.comp, which a driver has to pass before the backend uses chains. Group g of stage s reads
// values that other groups of stage s - 1 have written, each of which has to be s, and writes s + 1.
struct ChainCheckBlock {
  ADDRESS(uint) values;  // [2][groups]: even stages write [0], odd ones [1]
  ADDRESS(uint) wrong;   // the number of values that were not s
  ADDRESS(uint) chain;
  uint stage, groups;
};
#endif
