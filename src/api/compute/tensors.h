// Reads the tensors of a caller, and trusts nothing in them.
#pragma once
#include "api/compute/objects.h"

namespace greta {

constexpr uint32_t kMostDimensions = 4;
constexpr uint64_t kTensorAlignment = 16, kWeightAlignment = 256;

// A tensor of numbers or of integers, whose last dimension is dense, and which lies in its buffer.
struct TensorView {
  const char* role = "";  // "x", for errors
  std::shared_ptr<BufferObject> buffer;
  Slice slice;  // from its first to its last value
  uint32_t type = GRETA_TYPE_F32, rank = 0;
  uint64_t shape[kMostDimensions] = {}, strides[kMostDimensions] = {};
  uint64_t width() const { return shape[rank - 1]; }
  bool there() const { return rank != 0; }
  // Of float16 or bfloat16, which kernels take as float32.
  bool half() const { return type == GRETA_TYPE_F16 || type == GRETA_TYPE_BF16; }
  uint64_t value_bytes() const { return half() ? 2 : 4; }
};

// A tensor as rows of `heads` x `width` values, with `stride` values from one row to the next.
struct RowsView {
  uint64_t rows = 0, heads = 1, width = 0, stride = 0;
  bool dense() const { return rows == 1 || stride == heads * width; }
};

Status read_tensor(const greta_compute& compute, const greta_tensor& given, const char* role, TensorView* out,
                   uint32_t type = GRETA_TYPE_F32);
// The same where float16 and bfloat16 are allowed, too.
Status read_values(const greta_compute& compute, const greta_tensor& given, const char* role,
                   TensorView* out);
// Fails unless it has these dimensions and no gaps; 0 is any number.
Status need_shape(const TensorView& tensor, std::initializer_list<uint64_t> shape);
// The same for a vector of so many values. Where it is optional, rank 0 means that it is absent.
Status read_vector(const greta_compute& compute, const greta_tensor& given, const char* role, uint64_t values,
                   bool optional, TensorView* out);
// The dimensions before the last one become rows; of three or more the last two may be heads and their width,
// where rows have gaps behind them. Fails where strides allow neither.
Status read_rows(const TensorView& tensor, RowsView* out);
Status need_dense(const TensorView& tensor, const RowsView& rows);
Status need_same_shape(const TensorView& a, const TensorView& b);
// Fails where y overlaps x, unless they are the same tensor and `in_place` allows that.
Status need_apart(const TensorView& y, const TensorView& x, bool in_place);

// x and y of equal shapes, as rows. y may be x.
struct PairView {
  TensorView x, y;
  RowsView x_rows, y_rows;
};
Status read_pair(const greta_compute& compute, const greta_tensor& x, const greta_tensor& y, PairView* out);

// What a greta_weights describes, or so many of them behind each other. It lies in its buffer, unless
// `anywhere` says that it has none yet.
Status read_weights(const greta_compute& compute, const greta_weights& given, bool anywhere,
                    std::shared_ptr<BufferObject>* buffer, Tensor* out, uint32_t count = 1);

}  // namespace greta
