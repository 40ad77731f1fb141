// Where the bytes of a model come from: a file, the parts of a split model, memory, or the caller's callback.
// A part is one GGUF file; everything but a split model has one part.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "platform/platform.h"

namespace greta {

constexpr uint32_t kMaxParts = 1024;

class Source {
 public:
  // Copies `bytes` bytes from `offset` to `to` and returns 0; any other result is a failure. It is called
  // from the calling thread alone, and never asked for bytes beyond the size that was given.
  using ReadAt = int (*)(void* user, uint64_t offset, void* to, uint64_t bytes);

  // Call exactly one of these, once. If `path` ends in -0000K-of-0000N.gguf, all N parts are opened in order,
  // whichever of them it names. With `map`, weights may stay in the mapped files. Nobody may then cut the
  // files or write to them.
  Status open_file(const char* path, bool map = false);
  Status open_memory(const void* bytes, uint64_t size);  // borrowed for the life of this object
  Status open_callback(ReadAt read_at, void* user, uint64_t size);

  uint32_t parts() const { return uint32_t(parts_.size()); }
  uint64_t size(uint32_t part) const { return parts_[part].size; }
  bool calls_back() const { return callback_ != nullptr; }  // then only the user's own thread may read
  const char* name(uint32_t part) const { return parts_[part].name.c_str(); }  // the path, for messages

  // Reads exactly `bytes` bytes; any thread may call it. Error texts begin with the part's name.
  Status read_at(uint32_t part, uint64_t offset, void* to, uint64_t bytes) const;

  // The bytes of a part that is the caller's memory; null for others.
  const uint8_t* memory(uint32_t part) const { return parts_[part].memory; }
  // Gives all of a part, in memory or a mapped file, as read-only bytes that live as long as this object.
  bool maps() const { return map_ || parts_[0].memory; }
  Status map(uint32_t part, const uint8_t** out_bytes);
  // Fails if a mapped file was cut. To be called before mapped bytes are read.
  Status check_mapped() const;

 private:
  struct Part {
    std::string name;
    uint64_t size = 0;
    File file;
    const uint8_t* memory = nullptr;  // [size], when the part is the caller's memory
  };
  Status add_file(const std::string& path);

  std::vector<Part> parts_;
  bool map_ = false;
  ReadAt callback_ = nullptr;
  void* user_ = nullptr;
};

}  // namespace greta
