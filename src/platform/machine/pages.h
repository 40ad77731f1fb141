// Memory in whole pages from the operating system. It starts as zeros and can be protected.
#pragma once
#include <cstdint>

namespace greta {

enum class Protection : uint8_t { None, Read, ReadWrite };

uint64_t page_bytes();

// Returns zeroed pages that hold `bytes`, or null when there is no memory. Large blocks ask for huge pages.
void* map_pages(uint64_t bytes);
void unmap_pages(void* pages, uint64_t bytes);

// Brings pages of a mapped file into memory now rather than at their first use. This is a hint: Linux
// before 5.14 cannot do it, and nothing happens there.
void populate_pages(const void* pages, uint64_t bytes);

// Changes what may be done with the pages that [pages, pages + bytes) touches. False if refused.
bool protect_pages(void* pages, uint64_t bytes, Protection protection);

}  // namespace greta
