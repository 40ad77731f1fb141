// A read-only file: read at an offset, or mapped.
#pragma once
#include <cstdint>

#include "platform/status.h"

namespace greta {

class File {
 public:
  File() = default;
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;

  // Code::File with the reason (no such file, a directory, no permission) in words.
  Status open(const char* path);
  uint64_t size() const { return size_; }
  bool is_open() const { return descriptor_ >= 0; }

  // Exactly `bytes` bytes from `offset`; a short read is an error that names both.
  Status read_at(uint64_t offset, void* to, uint64_t bytes) const;

  // The whole file as read-only pages that stay valid while this object lives. Mapped once. Whoever reads one
  // that lies beyond the file's end, because it was cut, dies by a signal.
  Status map(const uint8_t** out_pages);

  // The file, if it is mapped, still has the bytes that it had when it was opened.
  Status check_mapped() const;

 private:
  int descriptor_ = -1;
  uint64_t size_ = 0;
  uint8_t* pages_ = nullptr;
};

}  // namespace greta
