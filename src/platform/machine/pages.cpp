#include "platform/machine/pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include "platform/checked.h"

namespace greta {

constexpr uint64_t kHugePageBytes = uint64_t(2) << 20;

uint64_t page_bytes() { return uint64_t(sysconf(_SC_PAGESIZE)); }

void* map_pages(uint64_t bytes) {
  if (!bytes || bytes > uint64_t(1) << 62) return nullptr;
  const uint64_t whole = round_up(bytes, page_bytes());
  void* pages = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return nullptr;
  // This is a hint, which a kernel without huge pages refuses.
  if (whole >= kHugePageBytes) madvise(pages, whole, MADV_HUGEPAGE);
  return pages;
}

void unmap_pages(void* pages, uint64_t bytes) {
  if (pages) munmap(pages, round_up(bytes, page_bytes()));
}

void populate_pages(const void* pages, uint64_t bytes) {
#ifdef MADV_POPULATE_READ
  const uint64_t page = page_bytes();
  const uint64_t first = reinterpret_cast<uint64_t>(pages) / page * page;
  const uint64_t last = round_up(reinterpret_cast<uint64_t>(pages) + bytes, page);
  madvise(reinterpret_cast<void*>(first), last - first, MADV_POPULATE_READ);
#else
  (void)pages, (void)bytes;
#endif
}

bool protect_pages(void* pages, uint64_t bytes, Protection protection) {
  const uint64_t page = page_bytes();
  const uint64_t first = reinterpret_cast<uint64_t>(pages) / page * page;
  const uint64_t last = round_up(reinterpret_cast<uint64_t>(pages) + bytes, page);
  const int flags = protection == Protection::None   ? PROT_NONE
                    : protection == Protection::Read ? PROT_READ
                                                     : PROT_READ | PROT_WRITE;
  return mprotect(reinterpret_cast<void*>(first), last - first, flags) == 0;
}

}  // namespace greta
