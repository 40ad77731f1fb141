// The functions of greta_compute.h for kernels of the caller.
#include "api/compute/graphs.h"
#include "api/compute/tensors.h"

using namespace greta;

static_assert(GRETA_BLOCK_BYTES == kMaxBlockBytes);
static_assert(GRETA_ACCESS_READ == Access::kRead && GRETA_ACCESS_WRITE == Access::kWrite);

namespace greta {

namespace {

constexpr uint32_t kMostKernelAccesses = 64;

// Whether bytes begin as the code of the device's own kernels does: SPIR-V, which is words, or an ELF file.
bool begins_as_code(std::span<const uint8_t> code, const DeviceInfo& on) {
  std::vector<uint8_t> own;
  for (const KernelRow& row : rows_of(on.backend))
    if (!row.code.code.empty() && unpack({row.code.code.data(), row.code.code.size()}, &own).ok() &&
        own.size() >= 4)
      return code.size() >= 20 && !memcmp(code.data(), own.data(), 4) &&
             (code[0] == 0x7f || code.size() % 4 == 0);
  return false;
}

class BitWriter {
 public:
  explicit BitWriter(std::vector<uint8_t>& to) : to_(to) {}
  ~BitWriter() { put(0, (8 - held_) % 8); }
  void put(uint32_t value, uint32_t count) {  // at most 8 bits
    bits_ = bits_ << count | value;
    for (held_ += count; held_ >= 8; held_ -= 8) to_.push_back(uint8_t(bits_ >> (held_ - 8)));
  }

 private:
  std::vector<uint8_t>& to_;
  uint32_t bits_ = 0, held_ = 0;
};

// Writes code in the form in which backends take it (platform/files/packed.h), without making it smaller:
// each byte is a code of eight bits, and other symbols have none.
Status store(std::span<const uint8_t> code, std::vector<uint8_t>* out) {
  using namespace packed;
  if (code.size() > kMaxBytes)
    return fail(Code::Argument, "kernel: %zu bytes of code, at most %u are allowed", code.size(), kMaxBytes);
  const uint32_t header[] = {uint32_t(code.size()), uint32_t(checksum(code.data(), code.size()))};
  out->resize(kHeaderBytes);
  memcpy(out->data(), header, kHeaderBytes);
  BitWriter bits(*out);
  const auto unused = [&](uint32_t symbols) {
    bits.put(kManyUnused, 4);
    bits.put(symbols - kManyLeast, kManyBits);
  };
  for (uint32_t alphabet = 0; alphabet + 1 < kAlphabets; ++alphabet) {
    for (uint32_t symbol = 0; symbol < kLengths; ++symbol) bits.put(8, 4);
    unused(kTokens - kLengths);
  }
  unused(kDistanceSymbols);
  for (const uint8_t byte : code) bits.put(byte, 8);
  return {};
}

Status read_code(const greta_kernel_code& o, const DeviceInfo& on, KernelObject* out) {
  if (on.host_functions) {
    if (!o.function || o.code)
      return fail(Code::Argument, "kernel: device %s runs functions, %s", on.name,
                  o.function ? "and code was given" : "none was given");
    return {};
  }
  const std::span<const uint8_t> code{static_cast<const uint8_t*>(o.code), o.code ? o.code_bytes : 0};
  if (o.function || !begins_as_code(code, on))
    return fail(Code::Argument, "kernel: %zu bytes that do not begin as code of the device %s does",
                code.size(), on.name);
  return store(code, &out->packed);
}

}  // namespace

KernelObject::~KernelObject() {
  if (kernel.handle) device_.unload(kernel);
}

Status KernelObject::open(const greta_kernel_code& o) {
  constexpr uint32_t kMostThreads = 1024;
  GRETA_TRY(need(o.name, "name"));
  if (!o.threads || o.threads > kMostThreads)
    return fail(Code::Argument, "kernel: groups of %u threads, from 1 to %u are allowed", o.threads,
                kMostThreads);
  GRETA_TRY(read_code(o, device_.info(), this));
  name_ = o.name;
  threads_ = o.threads;
  KernelCode code;
  code.name = name_.c_str();
  code.code = {packed.data(), packed.data() + packed.size()};
  code.function = reinterpret_cast<HostFunction>(o.function);
  code.constants = {&threads_, 1};
  code.group_size[0] = threads_;
  GRETA_TRY(within(device_.load(code, &kernel), "kernel %.64s", o.name));
  packed = {};
  return {};
}

// What the launch touches, as its slices. Buffers are kept by the stream.
static Status read_accesses(const greta_compute& compute, StreamObject& stream,
                            const greta_kernel_launch_options& o, std::vector<Access>* out) {
  if (o.access_count > kMostKernelAccesses)
    return fail(Code::Argument, "launch: %zu accesses, at most %u are allowed", o.access_count,
                kMostKernelAccesses);
  if (o.access_count) GRETA_TRY(need(o.accesses, "accesses"));
  std::vector<std::shared_ptr<BufferObject>> buffers(o.access_count);
  for (size_t i = 0; i < o.access_count; ++i) {
    const greta_access& given = o.accesses[i];
    Slice slice;
    if (!given.mode || given.mode > (GRETA_ACCESS_READ | GRETA_ACCESS_WRITE))
      return fail(Code::Argument, "launch: access %zu has mode %u", i, given.mode);
    GRETA_TRY(within(compute.find(given.buffer, &buffers[i]), "launch: access %zu", i));
    GRETA_TRY(stream.can_use(*buffers[i]));
    GRETA_TRY(slice_of(*buffers[i], "launch", given.offset, given.bytes, &slice));
    if (given.bytes) out->push_back({slice, Access::Mode(given.mode)});
  }
  for (const auto& buffer : buffers) stream.use(buffer);
  return {};
}

}  // namespace greta

greta_status greta_kernel_open(greta_compute* compute, const greta_kernel_code* given,
                               greta_kernel* out_kernel) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(compute));
    GRETA_TRY(need(given, "code"));
    GRETA_TRY(need(out_kernel, "out_kernel"));
    greta_kernel_code o;
    GRETA_TRY(read_options(given, &o));
    auto kernel = std::make_shared<KernelObject>(compute->device());
    GRETA_TRY(kernel->open(o));
    return compute->add(kernel, out_kernel);
  });
}

greta_status greta_kernel_close(greta_compute* compute, greta_kernel handle) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(compute, "compute"));
    std::shared_ptr<Object> object;
    return compute->remove(handle.owner, handle.number, Object::Kind::Kernel, &object);
  });
}

greta_status greta_kernel_launch(greta_compute* compute, greta_stream handle, greta_kernel kernel,
                                 const greta_kernel_launch_options* given) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(compute));
    GRETA_TRY(need(given, "options"));
    return on_stream(*compute, handle, [&](StreamObject& stream) -> Status {
      std::shared_ptr<KernelObject> found;
      std::vector<Access> accesses;
      greta_kernel_launch_options o;
      GRETA_TRY(stream.not_recording("launch"));
      GRETA_TRY(read_options(given, &o));
      GRETA_TRY(compute->find(kernel, &found));
      if (o.block_bytes) GRETA_TRY(need(o.block, "block"));
      const std::span<const uint8_t> block{static_cast<const uint8_t*>(o.block), o.block_bytes};
      if (o.block_bytes % 4)
        return fail(Code::Argument, "launch: a block of %zu bytes, multiples of 4 are allowed",
                    o.block_bytes);
      GRETA_TRY(check_dispatch(found->kernel, o.groups, block));
      GRETA_TRY(read_accesses(*compute, stream, o, &accesses));
      stream.use(found);
      return recorded(stream, [&]() -> Status {
        GRETA_TRY(stream.order(accesses));
        stream.pending.add({});
        return stream.stream->dispatch(found->kernel, o.groups, block, accesses);
      });
    });
  });
}
