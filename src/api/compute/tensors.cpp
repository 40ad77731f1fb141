#include "api/compute/tensors.h"

#include <iterator>

namespace greta {

namespace {

using Number = unsigned long long;  // for %llu

constexpr uint64_t kMostValues = uint64_t(1) << 40;

struct ShapeText {
  char text[96];
  explicit ShapeText(const TensorView& tensor) {
    size_t used = 0;
    text[0] = 0;
    for (uint32_t d = 0; d < tensor.rank; ++d) {
      const int wrote = format_text(text + used, sizeof text - used, "[%llu]", Number(tensor.shape[d]));
      if (wrote > 0) used = std::min(used + size_t(wrote), sizeof text - 1);
    }
  }
};

Status read_shape(const greta_tensor& given, uint32_t type, TensorView* out) {
  if (given.type != type)
    return fail(Code::Unsupported, "%s: values of type %u, only %s (%u) are computed with here", out->role,
                given.type, type == GRETA_TYPE_I32 ? "integers" : "float32", type);
  out->type = type;
  if (!given.rank || given.rank > kMostDimensions)
    return fail(Code::Argument, "%s: a rank of %u, from 1 to %u are allowed", out->role, given.rank,
                kMostDimensions);
  out->rank = given.rank;
  uint64_t values = 1;
  for (uint32_t d = 0; d < given.rank; ++d) {
    out->shape[d] = given.shape[d];
    if (!given.shape[d] || given.shape[d] > kMostValues || (values *= given.shape[d]) > kMostValues)
      return fail(Code::Argument,
                  "%s: dimension %u is %llu; none may be 0, and a tensor has at most %llu values", out->role,
                  d, Number(given.shape[d]), Number(kMostValues));
  }
  return {};
}

// All strides 0: dense. Each dimension must step over all of those behind it, so that no value is there
// twice.
Status read_strides(const greta_tensor& given, TensorView* out) {
  const bool dense = std::all_of(given.strides, given.strides + given.rank, [](uint64_t s) { return !s; });
  uint64_t over = 1;  // what lies behind a dimension, from its first to its last value
  for (uint32_t d = given.rank; d-- > 0;) {
    const uint64_t stride = dense ? over : given.strides[d];
    const bool needed = out->shape[d] > 1;
    if (needed && (stride < over || stride > kMostValues))
      return fail(Code::Argument, "%s: stride %u is %llu, and %llu values lie behind one of its dimension",
                  out->role, d, Number(stride), Number(over));
    if (needed && d + 1 == given.rank && stride != 1)
      return fail(Code::Unsupported, "%s: the last stride is %llu, only 1 is computed with", out->role,
                  Number(stride));
    out->strides[d] = needed ? stride : over;
    uint64_t more;
    if (!checked_multiply(out->shape[d] - 1, out->strides[d], &more) || !checked_add(over, more, &over) ||
        over > kMostValues)
      return fail(Code::Argument, "%s: strides of %llu over %llu rows reach too far", out->role,
                  Number(stride), Number(out->shape[d]));
  }
  out->slice.bytes = over * out->value_bytes();
  return {};
}

}  // namespace

Status read_tensor(const greta_compute& compute, const greta_tensor& given, const char* role, TensorView* out,
                   uint32_t type) {
  static_assert(sizeof(float) == sizeof(uint32_t));
  *out = {};
  out->role = role;
  GRETA_TRY(read_shape(given, type, out));
  GRETA_TRY(read_strides(given, out));
  GRETA_TRY(within(compute.find(given.buffer, &out->buffer), "%s", role));
  if (given.offset % kTensorAlignment)
    return fail(Code::Argument, "%s: the offset %llu is no multiple of %llu", role, Number(given.offset),
                Number(kTensorAlignment));
  return slice_of(*out->buffer, role, given.offset, out->slice.bytes, &out->slice);
}

Status read_values(const greta_compute& compute, const greta_tensor& given, const char* role,
                   TensorView* out) {
  const bool half = given.type == GRETA_TYPE_F16 || given.type == GRETA_TYPE_BF16;
  return read_tensor(compute, given, role, out, half ? given.type : GRETA_TYPE_F32);
}

Status read_vector(const greta_compute& compute, const greta_tensor& given, const char* role, uint64_t values,
                   bool optional, TensorView* out) {
  *out = {};
  if (optional && !given.rank) return {};
  GRETA_TRY(read_tensor(compute, given, role, out));
  if (out->rank != 1 || out->shape[0] != values)
    return fail(Code::Argument, "%s: a tensor %s, expected [%llu]", role, ShapeText(*out).text,
                Number(values));
  return {};
}

Status read_rows(const TensorView& tensor, RowsView* out) {
  constexpr uint64_t kMostRows = uint64_t(1) << 24;
  const auto follows = [&](uint32_t d) {  // dimension d goes on where d + 1 ends
    return tensor.shape[d] == 1 || tensor.strides[d] == tensor.shape[d + 1] * tensor.strides[d + 1];
  };
  // The rows are dimensions 0 .. last.
  const auto rows_until = [&](uint32_t last) {
    out->rows = 1;
    out->stride = tensor.strides[last];
    for (uint32_t d = 0; d <= last; ++d) {
      if (d < last && !follows(d)) return false;
      out->rows *= tensor.shape[d];
    }
    return true;
  };
  *out = {1, 1, tensor.width(), tensor.width()};
  const uint32_t rank = tensor.rank;
  bool fits = rank == 1 || rows_until(rank - 2);
  if (!fits && rank > 2 && follows(rank - 2)) {
    out->heads = tensor.shape[rank - 2];
    fits = rows_until(rank - 3);
  }
  if (!fits)
    return fail(Code::Unsupported, "%s: the strides of %s make no rows at equal distances", tensor.role,
                ShapeText(tensor).text);
  const bool small = out->width <= UINT32_MAX && out->heads <= UINT32_MAX / out->width &&
                     out->stride <= UINT32_MAX && out->rows <= kMostRows;
  if (!small)
    return fail(Code::Unsupported, "%s: %llu rows of %llu values every %llu; at most %llu and %u are allowed",
                tensor.role, Number(out->rows), Number(out->heads * out->width), Number(out->stride),
                Number(kMostRows), UINT32_MAX);
  return {};
}

Status need_dense(const TensorView& tensor, const RowsView& rows) {
  if (rows.dense()) return {};
  return fail(Code::Unsupported, "%s: rows of %llu values every %llu; this operation wants them without gaps",
              tensor.role, Number(rows.heads * rows.width), Number(rows.stride));
}

Status need_shape(const TensorView& tensor, std::initializer_list<uint64_t> shape) {
  uint64_t over = 1;
  bool same = tensor.rank == shape.size();
  for (uint32_t d = tensor.rank; same && d-- > 0;) {
    const uint64_t wanted = shape.begin()[d];
    same = (!wanted || tensor.shape[d] == wanted) && (tensor.shape[d] == 1 || tensor.strides[d] == over);
    over *= tensor.shape[d];
  }
  if (same) return {};
  char text[96] = "";
  size_t used = 0;
  for (const uint64_t wanted : shape) {
    const int wrote =
        format_text(text + used, sizeof text - used, wanted ? "[%llu]" : "[any]", Number(wanted));
    if (wrote > 0) used = std::min(used + size_t(wrote), sizeof text - 1);
  }
  return fail(Code::Argument, "%s: a tensor %s, expected %s without gaps", tensor.role,
              ShapeText(tensor).text, text);
}

Status need_same_shape(const TensorView& a, const TensorView& b) {
  if (a.rank == b.rank && std::equal(a.shape, a.shape + a.rank, b.shape)) return {};
  return fail(Code::Argument, "%s is %s, and %s is %s", a.role, ShapeText(a).text, b.role, ShapeText(b).text);
}

Status need_apart(const TensorView& y, const TensorView& x, bool in_place) {
  if (!x.there() || !overlaps(y.slice, x.slice)) return {};
  const bool same = y.slice == x.slice && y.rank == x.rank &&
                    std::equal(y.strides, y.strides + y.rank, x.strides) &&
                    std::equal(y.shape, y.shape + y.rank, x.shape);
  if (in_place && same) return {};
  return fail(Code::Argument, "%s and %s overlap: %llu bytes at %llu and %llu bytes at %llu of one buffer%s",
              y.role, x.role, Number(y.slice.bytes), Number(y.slice.offset - y.buffer->slice.offset),
              Number(x.slice.bytes), Number(x.slice.offset - x.buffer->slice.offset),
              in_place ? "; only the same tensor may be both" : "");
}

Status read_pair(const greta_compute& compute, const greta_tensor& x, const greta_tensor& y, PairView* out) {
  GRETA_TRY(read_tensor(compute, x, "x", &out->x));
  GRETA_TRY(read_tensor(compute, y, "y", &out->y));
  GRETA_TRY(need_same_shape(out->x, out->y));
  GRETA_TRY(need_apart(out->y, out->x, true));
  GRETA_TRY(read_rows(out->x, &out->x_rows));
  return read_rows(out->y, &out->y_rows);
}

Status read_weights(const greta_compute& compute, const greta_weights& given, bool anywhere,
                    std::shared_ptr<BufferObject>* buffer, Tensor* out, uint32_t count) {
  QuantType type;
  const QuantInfo* const info = quant_from_gguf(given.type, &type);
  if (!info) return fail(Code::Argument, "weights: there is no type %u", given.type);
  if (!given.n || !given.depth || given.n > UINT32_MAX || given.depth > UINT32_MAX ||
      given.n > kMostValues / given.depth)
    return fail(Code::Argument, "weights: a matrix [%llu][%llu]", Number(given.n), Number(given.depth));
  if (given.depth % info->block)
    return fail(Code::Argument, "weights: rows of %llu values are not whole %s blocks of %u",
                Number(given.depth), info->name, info->block);
  if (given.layout > uint32_t(Layout::Planes))
    return fail(Code::Argument, "weights: there is no layout %u", given.layout);
  *out = {type, Layout(given.layout), uint32_t(given.n), uint32_t(given.depth), count, {}, nullptr};
  if (out->layout != Layout::Gguf && !packing_row(type, out->layout, compute.recipes.filter()))
    return fail(Code::Unsupported, "weights: this device has no layout %u (%s) for %s", given.layout,
                layout_name(out->layout), info->name);
  if (anywhere) return {};
  GRETA_TRY(within(compute.find(given.buffer, buffer), "weights"));
  if (given.offset % kWeightAlignment)
    return fail(Code::Argument, "weights: the offset %llu is no multiple of %llu", Number(given.offset),
                Number(kWeightAlignment));
  return slice_of(**buffer, "weights", given.offset,
                  tensor_bytes(type, out->layout, out->n, out->depth, count), &out->slice);
}

}  // namespace greta
