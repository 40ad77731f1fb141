// A read-only file, which is read at offsets or mapped.
#pragma once
#include <cstdint>

#include "platform/failure/status.h"

namespace greta {

class File {
 public:
  File() = default;
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;

  // Fails with Code::File and the reason in words, such as no such file, a directory, or no permission.
  Status open(const char* path);
  uint64_t size() const { return size_; }
  bool is_open() const { return descriptor_ >= 0; }

  // Reads exactly `bytes` bytes from `offset`. A file that ends before is an error that names both.
  Status read_at(uint64_t offset, void* to, uint64_t bytes) const;

  // Maps the whole file as read-only pages, which stay valid while this object lives. Later calls return the
  // same pages. If the file is cut afterwards, reading a page beyond its end kills the process by a signal.
  Status map(const uint8_t** out_pages);

  // Fails if the file is mapped and has become shorter since it was opened.
  Status check_mapped() const;

 private:
  int descriptor_ = -1;
  uint64_t size_ = 0;
  uint8_t* pages_ = nullptr;
};

}  // namespace greta
