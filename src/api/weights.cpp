// The function of greta.h that looks at the weights of a file.
#include "api/handles.h"
#include "api/options.h"
#include "selftest/selftest.h"

using namespace greta;

// How many bytes are read at once, about.
constexpr uint64_t kPieceBytes = uint64_t(1) << 20;

static Status look(const Gguf& gguf, const GgufTensor& tensor, const StopCallback& stop,
                   selftest::WeightsFound* found) {
  const QuantInfo& type = quant_info(tensor.type);
  const uint64_t most = std::max<uint64_t>(kPieceBytes / type.block_bytes, 1) * type.block_bytes;
  std::vector<uint8_t> piece(std::min(most, tensor.bytes));
  for (uint64_t at = 0; at < tensor.bytes; at += most) {
    const uint64_t bytes = std::min(most, tensor.bytes - at);
    GRETA_TRY(gguf.source().read_at(tensor.part, tensor.offset + at, piece.data(), bytes));
    selftest::look_at_weights(type.name, type.block_bytes, piece.data(), bytes / type.block_bytes, found);
    if (StopCallback::ask(&stop))
      return fail(Code::Cancelled, "the callback stopped the look at the weights of %s",
                  Quoted(tensor.name).c_str());
  }
  return {};
}

greta_status greta_file_check_weights(const greta_file* file, uint64_t index,
                                      greta_weights_check* out_check) {
  return greta_file_check_weights_until(file, index, out_check, nullptr, nullptr);
}

greta_status greta_file_check_weights_until(const greta_file* file, uint64_t index,
                                            greta_weights_check* out_check, int (*should_stop)(void* user),
                                            void* user) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(file, "file"));
    GRETA_TRY(check_result(out_check));
    const GgufTensor* tensor = nullptr;
    GRETA_TRY(tensor_at(file, index, &tensor));
    selftest::WeightsFound found;
    GRETA_TRY(look(file->gguf, *tensor, {should_stop, user}, &found));
    greta_weights_check check = {};
    check.block_weights = quant_info(tensor->type).block;
    check.blocks = found.blocks;
    check.bad_blocks = found.bad;
    check.first_bad_block = found.first_bad;
    check.zero_blocks = found.zero;
    check.zero_run_blocks = found.zero_run;
    check.largest = found.largest;
    return write_result(check, out_check);
  });
}
