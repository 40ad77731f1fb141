#include "selftest/kernel_try.h"

#include <algorithm>

#include "selftest/selftest.h"
#include "selftest/trial.h"

namespace greta::selftest {

namespace {

constexpr uint32_t kTriedRounds = 13;

class BitWriter {
 public:
  void put(uint32_t value, uint32_t count) {
    for (uint32_t i = count; i-- > 0;) {
      if (used_ == 0) bytes.push_back(0);
      bytes.back() = uint8_t(bytes.back() | (value >> i & 1) << (7 - used_));
      used_ = (used_ + 1) % 8;
    }
  }
  std::vector<uint8_t> bytes;

 private:
  uint32_t used_ = 0;  // bits of the last byte
};

// The product of the wanted size as the row covers it: alone, or two of them and their gate.
bool product_for(const KernelRow& row, const KernelTry& wanted, Tunable* out) {
  const bool alone = row.op_count == 1 && row.ops[0] == Op::Matmul;
  const bool gated =
      row.op_count == 3 && row.ops[0] == Op::Matmul && row.ops[1] == Op::Matmul && row.ops[2] == Op::Gate;
  if (!alone && !gated) return false;
  const Tensor weight{row.type, row.layout, wanted.n, wanted.depth};
  *out = product_of(weight, gated, wanted.tokens);
  return true;
}

// The row of this name that covers such a product; null if none does.
const KernelRow* row_for(const Device& device, const KernelTry& wanted, Tunable* out) {
  const RowFilter filter{&device.info(), false};
  Reason unasked;
  for (const KernelRow& row : candidates(filter))
    if (wanted.name == row.name && usable(row, filter) && product_for(row, wanted, out) &&
        covers(row, out->calls, out->bucket, filter, unasked))
      return &row;
  return nullptr;
}

Status time_both(Device& device, const KernelTry& wanted, const KernelRow& row, const KernelRow* given,
                 const Tunable& launch, KernelTried* out) {
  const Cost cost = lead_of(launch.calls).cost(launch.calls, launch.bucket, 0);
  out->bytes = cost.bytes;
  out->flops = cost.flops;
  Trial trial(device);
  GRETA_TRY(trial.open());
  GRETA_TRY(trial.make(launch.calls, launch.bucket));
  const uint32_t splits =
      row.tile_tokens ? choose_splits(launch.calls, row, wanted.tokens, {&device.info(), false}) : 1;
  Attempt built, other;
  GRETA_TRY(trial.prepare(row, splits, &built));
  if (given) GRETA_TRY(trial.prepare(*given, splits, &other));
  const Attempt& tried = given ? other : built;
  GRETA_TRY(MachineCodes(device).of(tried.row, tried.launches[0], &out->machine_code));
  GRETA_TRY(trial.prove(given ? other : built, &out->error));
  for (uint32_t round = 0; round < kTriedRounds + 1; ++round) {  // the first one is not counted
    uint64_t built_ns = 0, given_ns = 0;
    if (given && round % 2) GRETA_TRY(trial.time(other, &given_ns));
    GRETA_TRY(trial.time(built, &built_ns));
    if (given && round % 2 == 0) GRETA_TRY(trial.time(other, &given_ns));
    if (round == 0) continue;
    out->built_ns.push_back(built_ns);
    if (given) out->given_ns.push_back(given_ns);
  }
  return {};
}

}  // namespace

std::vector<uint8_t> packed_plainly(std::span<const uint8_t> code) {
  using namespace packed;
  const uint32_t header[2] = {uint32_t(code.size()), uint32_t(checksum(code.data(), code.size()))};
  BitWriter out;
  for (const uint32_t number : header)
    for (uint32_t byte = 0; byte < 4; ++byte) out.put(number >> 8 * byte & 0xff, 8);
  // Each byte has a code of eight bits, which is the byte. Nothing else has one.
  for (uint32_t alphabet = 0; alphabet < kAlphabets; ++alphabet) {
    uint32_t unused = kSymbols[alphabet];
    if (alphabet + 1 < kAlphabets) {
      for (uint32_t byte = 0; byte < kLengths; ++byte) out.put(8, 4);
      unused -= kLengths;
    }
    for (; unused >= kManyLeast + kFewLeast; unused = kFewLeast) {
      out.put(kManyUnused, 4);
      out.put(unused - kFewLeast - kManyLeast, kManyBits);
    }
    for (; unused; unused -= std::min(unused, kFewLeast + 15)) {
      out.put(kFewUnused, 4);
      out.put(std::min(unused, kFewLeast + 15) - kFewLeast, kFewBits);
    }
  }
  for (const uint8_t byte : code) out.put(byte, 8);
  return out.bytes;
}

Status try_kernel(Device& device, const KernelTry& wanted, KernelTried* out) {
  *out = {};
  if (!wanted.code.empty() && device.info().host_functions)
    return fail(Code::Unsupported, "kernels of %s are functions of the program, which no file can replace",
                device.info().backend);
  if (wanted.code.size() > packed::kMaxBytes)
    return fail(Code::Argument, "%zu bytes of code, at most %u", wanted.code.size(), packed::kMaxBytes);
  std::vector<uint8_t> bytes;
  if (!wanted.code.empty()) bytes = packed_plainly(wanted.code);
  const CodeBytes code{bytes.data(), bytes.data() + bytes.size()};
  OpResult checked{};
  GRETA_TRY(check_kernels(device, wanted.name, code, &checked));
  out->kernels = checked.kernels;
  out->launches = checked.launches;
  out->failure = checked.failure;
  if (!out->failure.empty() || !wanted.n) return {};
  Tunable launch;
  const KernelRow* row = row_for(device, wanted, &launch);
  if (!row) {
    out->untimed = "no row of this name covers a product of that size alone";
    return {};
  }
  KernelRow given = *row;
  const std::string name = given.code.name;  // at another address, so that it is another kernel
  given.code.name = name.c_str();
  given.code.code = code;
  return time_both(device, wanted, *row, code.empty() ? nullptr : &given, launch, out);
}

}  // namespace greta::selftest
