// Finds the parts of a file that the model does not use. Each tensor and each key is used, known to be
// needless, or refused, so that no model computes something wrong without a message.
#pragma once
#include <span>

#include "engine/model/weights.h"

namespace greta {

struct UnusedPart {
  enum class Verdict : uint8_t {
    Needless,  // the model is known to be the same without it
    Unknown,   // a key that this library does not know
    Refused,   // it changes what is computed, or may do so
  } verdict;
  bool tensor;            // false for a key
  std::string_view name;  // lives as long as the file
  const char* reason;
};

// Lists keys, then tensors, in the order of the file. `keys_read` are the keys that read_shape looked for.
std::vector<UnusedPart> unused_parts(const Gguf& gguf, const Arch& arch, const Shape& shape,
                                     const KeysRead& keys_read);

// The same for a file from which no model has been made.
Status audit_file(const Gguf& gguf, std::vector<UnusedPart>* out);

// Fails if an optional tensor is in some layers and missing in others of their kind, so that some are lost.
Status refuse_gaps(const Gguf& gguf, const Arch& arch, const Shape& shape);

// Fails with Unsupported if a part is refused, and names the first one.
Status refuse_unused(const Gguf& gguf, const Arch& arch, std::span<const UnusedPart> parts);

}  // namespace greta
