// The memory that launches and copies may touch: that of the devices, pinned memory and registered host
// pages.
#pragma once
#include <cstdint>

namespace mock_hip {

uint64_t device_bytes();  // of each device
uint64_t free_bytes(int device);

void* allocate_device(int device, uint64_t bytes);  // null if there is no room
bool release_device(void* pointer);                 // false if it was not allocated
void* allocate_pinned(uint64_t bytes);
bool release_pinned(void* pointer);
bool register_host(void* pointer, uint64_t bytes);  // false if these pages are registered already
bool unregister_host(void* pointer);

bool is_device(const void* pointer, uint64_t bytes);
bool is_pinned(const void* pointer, uint64_t bytes);          // or registered
bool is_device_visible(const void* pointer, uint64_t bytes);  // one of them
bool find_overrun();  // true if something was written behind the end of a block since the last call

}  // namespace mock_hip
