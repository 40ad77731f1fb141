// A grid whose groups all stay until it ends, as a cooperative launch has them: each group has a thread of
// the host, and one of them runs at a time. A group that waits for others lets one run that the seed chooses.
#pragma once
#include "tests/mock_hip/kernel_registry.h"
#include "tests/mock_hip/lane_emulator.h"

namespace mock_hip {

struct Residence {
  unsigned groups = 0;  // that run side by side at most; the others begin when one of these ends
  unsigned dies = 1;    // over which groups are dealt out in turn
  const HostKernel* (*find)(const char* kernel, const char* arch) = nullptr;  // for run_body()
};

// Runs the grid. Returns what the kernel did wrong, or null.
const char* run_resident_grid(const LaunchShape& shape, const Residence& residence,
                              void (*body)(void* argument), void* argument);

// ---- what decode_stages calls ----

unsigned resident_groups();
unsigned group_in_grid();
const void* grid_block();  // the argument block of the launch
unsigned die_of_group();
void let_others_run();      // the lane's group goes on when it is its turn again
void all_threads_meet();    // of the group, also those that take no part in a body
// From now on the lanes are those of another group and launch, with so many threads.
void set_group(unsigned x, unsigned y, unsigned z, unsigned threads, const void* block);
void run_body(const char* kernel);  // the kernel's own host build, with the block of the launch
unsigned most_polls(unsigned polls);

// What MOCK_HIP_GRID orders the last group to do wrong; see orders.h.
bool loses_arrival(unsigned meeting);
bool is_stuck(unsigned meeting);
unsigned further_stages();

}  // namespace mock_hip
