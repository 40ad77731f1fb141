#include "engine/model/stacked_matrices.h"

#include <algorithm>
#include <cstring>

namespace greta {

namespace {

constexpr uint64_t kDecodedBytes = 4 << 20;  // how much is decoded at once

uint32_t rows_at_once(uint32_t width) {
  return uint32_t(std::clamp<uint64_t>(kDecodedBytes / (width * sizeof(float)), 1, kMaxStepTokens));
}

// Writes rows [n][width] as columns of a matrix [width][depth]. `to` is the place of the first column.
template <size_t bytes>
void put_columns(const uint8_t* rows, uint32_t n, uint32_t width, uint32_t depth, uint8_t* to) {
  for (uint64_t column = 0; column < width; ++column)
    for (uint64_t row = 0; row < n; ++row)
      memcpy(to + (column * depth + row) * bytes, rows + (row * width + column) * bytes, bytes);
}

Status grow(Device& device, uint64_t bytes, Memory kind, DeviceMemory* memory) {
  return memory->buffer().bytes >= bytes ? Status{} : memory->allocate(device, bytes, kind);
}

}  // namespace

Status StackedMatrices::make(const Source& source, const Place& from, Held held, const Tensor& to,
                             std::vector<uint8_t>* out) {
  const uint64_t matrix_bytes = quant_bytes(to.type, uint64_t(to.n) * to.depth);
  out->resize(matrix_bytes * to.count);
  if (held == Held::Woven) {
    const uint64_t bytes = matrix_bytes / from.pieces;
    for (uint64_t piece = 0; piece < from.pieces; ++piece)
      GRETA_TRY(
          source.read_at(from.part, from.offset + piece * from.stride, out->data() + piece * bytes, bytes));
    return {};
  }
  for (uint32_t matrix = 0; matrix < to.count; ++matrix) {
    uint8_t* const made = out->data() + matrix * matrix_bytes;
    const uint64_t offset = from.offset + matrix * from.stride;
    if (held == Held::Transposed)
      GRETA_TRY(transpose({source, from.part, offset, from.type, to.depth, to.n}, to.depth, made));
    else
      GRETA_TRY(source.read_at(from.part, offset, made, matrix_bytes));
  }
  return {};
}

Status StackedMatrices::transpose(Rows rows, uint32_t depth, uint8_t* to) {
  const bool halves = quant_info(transposed_type(rows.type)).block_bytes == 2;
  for (uint32_t first = 0, step = rows_at_once(rows.width); first < depth; first += step) {
    rows.n = std::min(step, depth - first);
    const uint8_t* values = nullptr;
    GRETA_TRY(read(rows, &values));
    if (halves)
      put_columns<2>(values, rows.n, rows.width, depth, to + first * 2);
    else
      put_columns<4>(values, rows.n, rows.width, depth, to + first * 4);
    rows.offset += quant_bytes(rows.type, uint64_t(rows.n) * rows.width);
  }
  return {};
}

// Gives the rows' values in transposed_type. They are valid until the next call.
Status StackedMatrices::read(const Rows& rows, const uint8_t** out) {
  const uint64_t bytes = quant_bytes(rows.type, uint64_t(rows.n) * rows.width);
  if (transposed_type(rows.type) == rows.type) {
    plain_.resize(bytes);
    *out = plain_.data();
    return rows.source.read_at(rows.part, rows.offset, plain_.data(), bytes);
  }
  GRETA_TRY(open(rows));
  GRETA_TRY(rows.source.read_at(rows.part, rows.offset, encoded_.buffer().mapped, bytes));
  *out = static_cast<const uint8_t*>(decoded_.buffer().mapped);
  return decode(rows);
}

Status StackedMatrices::open(const Rows& rows) {
  const uint64_t values = uint64_t(rows_at_once(rows.width)) * rows.width;
  GRETA_TRY(grow(device_, quant_bytes(rows.type, values), Memory::Upload, &encoded_));
  GRETA_TRY(grow(device_, values * sizeof(float), Memory::Readback, &decoded_));
  if (stream_) return {};
  GRETA_TRY(step_.allocate(device_, sizeof(StepState), Memory::Upload));
  StepState& step = *static_cast<StepState*>(step_.buffer().mapped);
  memset(&step, 0, sizeof step);
  for (uint32_t i = 0; i < kMaxStepTokens; ++i) step.row[i] = {i, i, 0, kNoOutput};
  Stream* stream = nullptr;
  GRETA_TRY(device_.create_stream(&stream));
  stream_.reset(stream);
  return {};
}

// Decodes by the device's kernels of embed, which are exact for every type: row i is that of token i.
Status StackedMatrices::decode(const Rows& rows) {
  const uint64_t values = uint64_t(rows.n) * rows.width;
  static_cast<StepState*>(step_.buffer().mapped)->token_count = rows.n;
  const Slice encoded = encoded_.slice(0, quant_bytes(rows.type, values));
  const Call call = CallMaker{step_.all()}.embed({rows.type, Layout::Gguf, rows.n, rows.width, 1, encoded},
                                                 decoded_.slice(0, values * sizeof(float)));
  const KernelRow* row = nullptr;
  GRETA_TRY(choose_row({&call, 1}, kMaxStepTokens, filter_, &row));
  Launch launch;
  make_launch({&call, 1}, *row, kMaxStepTokens, filter_.device, &launch);
  GRETA_TRY(kernels_.load(*row, launch.fields(), &launch.kernel));
  GRETA_TRY(stream_->dispatch(*launch.kernel, launch.groups, launch.arguments(),
                              {launch.accesses, launch.access_count}));
  return stream_->wait();
}

}  // namespace greta
