#include "runtime/checked_memory.h"

#include <algorithm>

namespace greta {

using Number = unsigned long long;  // for %llu

void WrittenBytes::add(uint64_t first, uint64_t last) {
  if (first >= last) return;
  auto next = end_of_.upper_bound(first);
  if (next != end_of_.begin() && std::prev(next)->second >= first) --next;
  while (next != end_of_.end() && next->first <= last) {
    first = std::min(first, next->first);
    last = std::max(last, next->second);
    next = end_of_.erase(next);
  }
  end_of_.emplace(first, last);
}

uint64_t WrittenBytes::missing(uint64_t first, uint64_t last) const {
  const auto next = end_of_.upper_bound(first);
  if (next == end_of_.begin()) return first;
  return std::clamp(std::prev(next)->second, first, last);
}

WorkText describe(const Work& work) {
  WorkText out;
  format_text(out.text, sizeof out.text, "%.100s (%s %llu)", work.name,
              work.captured ? "launch of a captured plan, number" : "command", Number(work.number));
  return out;
}

Status check_lifetime(const Work& work, const BufferUse& use) {
  const TrackedBuffer& buffer = *use.buffer;
  if (!buffer.alive)
    return fail(Code::Device, "%s %s buffer %llu, which was released", describe(work).text,
                use.writes() ? "writes" : "reads", Number(buffer.number));
  uint64_t end;
  if (!checked_add(use.offset, use.bytes, &end) || end > buffer.inner.bytes)
    return fail(Code::Device, "%s %s bytes %llu + %llu of buffer %llu, which has %llu: out of bounds",
                describe(work).text, use.writes() ? "writes" : "reads", Number(use.offset), Number(use.bytes),
                Number(buffer.number), Number(buffer.inner.bytes));
  if (use.writes() && buffer.imported)
    return fail(Code::Device, "%s writes buffer %llu, which is imported and read-only", describe(work).text,
                Number(buffer.number));
  return {};
}

// The host fills upload memory through its mapping, which this device does not see.
Status check_written(const Work& work, const BufferUse& use) {
  const TrackedBuffer& buffer = *use.buffer;
  if (!use.reads() || use.sparse || buffer.imported || buffer.memory == Memory::Upload) return {};
  const uint64_t end = use.offset + use.bytes;
  const uint64_t missing = buffer.written.missing(use.offset, end);
  if (missing == end) return {};
  return fail(Code::Device, "%s reads bytes [%llu, %llu) of buffer %llu, where byte %llu was never written",
              describe(work).text, Number(use.offset), Number(end), Number(buffer.number), Number(missing));
}

void PageGuard::guard(TrackedBuffer& buffer) {
  buffer.pages.resize(divide_up(buffer.inner.bytes, page_bytes()));
  protect({&buffer, 0, buffer.pages.size()});
}

void PageGuard::allow(std::span<const BufferUse> uses) {
  std::vector<Range> allowed;
  for (const Range& range : allowed_)
    for (size_t page = range.first; page < range.last; ++page)
      range.buffer->pages[page].next = Protection::None;
  for (const BufferUse& use : uses) {
    if (use.buffer->pages.empty() || !use.bytes) continue;
    const Range range = {use.buffer, size_t(use.offset / page_bytes()),
                         size_t(divide_up(use.offset + use.bytes, page_bytes()))};
    for (size_t page = range.first; page < range.last; ++page) {
      Protection& next = use.buffer->pages[page].next;
      next = std::max(next, use.writes() ? Protection::ReadWrite : Protection::Read);
    }
    allowed.push_back(range);
  }
  for (const Range& range : allowed_) protect(range);
  for (const Range& range : allowed) protect(range);
  allowed_ = std::move(allowed);
}

void PageGuard::forget(TrackedBuffer& buffer) {
  std::erase_if(allowed_, [&](const Range& range) { return range.buffer == &buffer; });
  for (TrackedBuffer::Page& page : buffer.pages) page.next = Protection::ReadWrite;
  protect({&buffer, 0, buffer.pages.size()});
}

// Neighbouring pages that become the same change together.
void PageGuard::protect(const Range& range) {
  std::vector<TrackedBuffer::Page>& pages = range.buffer->pages;
  for (size_t first = range.first, last; first < range.last; first = last) {
    const Protection next = pages[first].next;
    for (last = first; last < range.last && pages[last].next == next && pages[last].now != next; ++last)
      pages[last].now = next;
    if (last == first) {
      ++last;
      continue;
    }
    protect_pages(static_cast<uint8_t*>(range.buffer->inner.mapped) + first * page_bytes(),
                  (last - first) * page_bytes(), next);
  }
}

}  // namespace greta
