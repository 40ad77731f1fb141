// The launches of a plan as the kernel decode_stages takes them: one after the other, from a list in device
// memory. All its groups stay on the device, and meet where the plan has a barrier.
#ifndef GRETA_ABI_PERSISTENT_H
#define GRETA_ABI_PERSISTENT_H
#include "kernels/abi/abi.h"

#define kPersistentThreads 512    // of a group of decode_stages, and the most that a launch in the list has
#define kPersistentBlockBytes 256 // of a launch's arguments
#define kPersistentDies 16        // the most dies (XCDs) of a device
#define kPersistentLine 32        // words from one counter to the next: each has a cache line of its own

// Counters of the grid, by their lines. All are 0 before and after a launch.
#define kGridMembers 0                                 // [die] groups that run there
#define kGridArrived kPersistentDies                   // [die] groups that have come, of all meetings
#define kGridPassed (2 * kPersistentDies)              // [die] the last meeting that is over
#define kGridJoined (3 * kPersistentDies)              // groups that have begun
#define kGridDies (3 * kPersistentDies + 1)            // dies whose groups are all there, of all meetings
#define kGridDecided (3 * kPersistentDies + 2)         // the last meeting that is over, or kGridFailed
#define kGridLeft (3 * kPersistentDies + 3)            // groups that have ended
#define kGridLines (3 * kPersistentDies + 4)
#define kGridFailed 0xffffffffu
#define kGridRuns 0xffffffffu  // of `report`

struct PersistentLaunch {
  uint body;      // its index in the build's kernels/hip/stages.def
  uint threads;   // of a group
  uint groups_x, groups_y;
  uint groups;    // in all
  uint first;     // the group of decode_stages that takes group 0; the next one takes group 1
  uint meets;     // 1: all groups meet before it
  uint unused;
  uint block[kPersistentBlockBytes / 4];
};

struct PersistentBlock {
  ADDRESS(byte) list;    // PersistentLaunch[launches + 1]; the last one has no groups
  ADDRESS(uint) state;   // [kGridLines][kPersistentLine]
  ADDRESS(uint) report;  // memory of the host: kGridRuns before, 0 behind the end of all groups, or 1 + the
                         // launch before which groups did not meet
  uint launches;
  uint polls;            // how often a group looks for the others before it gives up
};

#endif
