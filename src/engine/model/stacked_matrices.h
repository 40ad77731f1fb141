// Rearranges, in the host's memory, matrices that a file holds one below the other in one tensor (Held).
#pragma once
#include "engine/model/weights.h"
#include "gguf/gguf.h"

namespace greta {

// The type of a transposed matrix whose rows had `type`. A block of quantised values lies along a row and
// cannot be transposed, so the values are decoded to float32, which holds each of them exactly. That takes 4
// bytes a value, where Q8_0 takes 1.06, Q4_0 0.56 and IQ1_S 0.2.
inline QuantType transposed_type(QuantType type) {
  return quant_info(type).block == 1 ? type : QuantType::f32;
}

class StackedMatrices {
 public:
  StackedMatrices(DeviceKernels& kernels, const RowFilter& filter)
      : device_(kernels.device()), filter_(filter), kernels_(kernels) {}

  struct Place {  // in a source
    uint32_t part;
    QuantType type;
    uint64_t offset;  // bytes from the part's beginning to the wanted rows of the first matrix
    uint64_t stride;  // bytes from there to the wanted rows of the next matrix, or of the next piece
    uint64_t pieces;  // of a matrix
  };
  // Makes all of `to` in GGUF order: rows of the same type, or columns in its transposed_type.
  Status make(const Source& source, const Place& from, Held held, const Tensor& to,
              std::vector<uint8_t>* out);

 private:
  struct Rows {  // of one matrix
    const Source& source;
    uint32_t part;
    uint64_t offset;
    QuantType type;
    uint32_t n, width;
  };
  Status transpose(Rows rows, uint32_t depth, uint8_t* to);
  Status read(const Rows& rows, const uint8_t** out);
  Status decode(const Rows& rows);
  Status open(const Rows& rows);

  Device& device_;
  RowFilter filter_;
  KernelSet kernels_;
  std::vector<uint8_t> plain_;             // rows that need no decoding
  DeviceMemory encoded_, decoded_, step_;  // host and device see them
  std::unique_ptr<Stream> stream_;  // declared last, since it is destroyed before the memory that it uses
};

}  // namespace greta
