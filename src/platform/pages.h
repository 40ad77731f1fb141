// Memory in whole pages, straight from the operating system: zeroed, and protectable.
#pragma once
#include <cstdint>

namespace greta {

enum class Protection : uint8_t { None, Read, ReadWrite };

uint64_t page_bytes();

// Zeroed pages that hold `bytes`, or null when there is no memory. Large blocks ask for huge pages.
void* map_pages(uint64_t bytes);
void unmap_pages(void* pages, uint64_t bytes);

// Brings pages of a mapped file into memory now rather than at their first use. A hint: where the system
// cannot (Linux before 5.14), nothing happens.
void populate_pages(const void* pages, uint64_t bytes);

// Changes what may be done with the pages that [pages, pages + bytes) touches; false if refused.
bool protect_pages(void* pages, uint64_t bytes, Protection protection);

}  // namespace greta
