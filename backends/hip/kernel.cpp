// Kernels: functions of code objects. Kernels of one code object share its module.
#include <elf.h>

#include <cstring>

#include "backends/hip/hip.h"

namespace greta {

// The driver is told no size, so it would read on behind a code object that was cut short.
static Status check_code(const char* name, std::span<const uint8_t> bytes) {
  Elf64_Ehdr header;
  if (bytes.size() >= sizeof header) memcpy(&header, bytes.data(), sizeof header);
  if (bytes.size() < sizeof header || memcmp(header.e_ident, ELFMAG, SELFMAG))
    return fail(Code::Unsupported, "%s: %zu bytes that are not a code object", name, bytes.size());
  // Linkers write the table of sections last.
  const uint64_t needed = header.e_shoff + uint64_t(header.e_shnum) * header.e_shentsize;
  if (needed <= bytes.size()) return {};
  return fail(Code::Unsupported, "%s: the code object is cut short: it has %zu bytes of %llu", name,
              bytes.size(), (unsigned long long)needed);
}

Status HipDevice::read_module(const KernelCode& code, HipModule* out) {
  GRETA_TRY(within(unpack(code.code, &out->object), "%s", code.name));
  GRETA_TRY(check_code(code.name, out->object));
  const HipCurrent current(hip, index());
  const int error = hip.hipModuleLoadData(&out->handle, out->object.data());
  return error ? refuse_code(code, error) : Status{};
}

Status HipDevice::load_module(const KernelCode& code, HipModule** out) {
  const uint64_t head[] = {checksum(code.code.data(), code.code.size()), code.code.size()};
  std::string key(reinterpret_cast<const char*>(head), sizeof head);
  const std::lock_guard<std::mutex> lock(modules_mutex_);
  std::unique_ptr<HipModule>& module = modules_[key];
  if (!module) {
    auto made = std::make_unique<HipModule>();
    const Status status = read_module(code, made.get());
    if (!status.ok()) {
      modules_.erase(key);
      return status;
    }
    made->key = std::move(key);
    module = std::move(made);
  }
  ++module->users;
  *out = module.get();
  return {};
}

// HIP 6.0 to 6.3 do not know code object 6, which the code for a family of targets has.
Status HipDevice::refuse_code(const KernelCode& code, int error) {
  const Status status = result(error, "hipModuleLoadData");
  if (error != kHipNoBinaryForGpu && error != kHipInvalidImage) return status;
  char version[64];
  hip.text_of_version(version);
  constexpr int kKnowsFamilies = 60400000;
  if (hip.version() >= kKnowsFamilies)
    return fail(Code::Unsupported, "%s refuses the code object of %s for %s", version, code.name, info_.arch);
  return fail(Code::Unsupported,
              "%s refuses the code object of %s: 6.4 or newer is needed, or a build with "
              "-DGRETA_HIP_TARGETS=%s",
              version, code.name, info_.arch);
}

void HipDevice::release_module(HipModule& module) {
  const std::lock_guard<std::mutex> lock(modules_mutex_);
  if (--module.users) return;
  if (may_free()) {
    const HipCurrent current(hip, index());
    (void)hip.hipModuleUnload(module.handle);
  }
  modules_.erase(std::string(module.key));
}

// The driver would refuse a launch with more shared memory than the device has, in the middle of a step.
Status HipDevice::check_shared(const HipKernel& kernel) const {
  int bytes = 0;
  if (!hip.hipFuncGetAttribute || hip.hipFuncGetAttribute(&bytes, kHipFunctionSharedBytes, kernel.function))
    return {};
  if (uint64_t(bytes) <= info_.shared_bytes) return {};
  return fail(Code::Unsupported, "%s: a group has %d bytes of shared memory, %s allows %u", kernel.name,
              bytes, info_.name, info_.shared_bytes);
}

Status HipDevice::load(const KernelCode& code, Kernel* out) {
  GRETA_TRY(usable());
  if (code.code.empty()) return fail(Code::Unsupported, "%s: the kernel has no code for HIP", code.name);
  const uint32_t lanes = info_.wave_max, most = uint32_t(properties_->max_threads);
  const uint32_t threads = !code.constants.empty() ? code.constants[0]
                           : code.subgroups        ? code.subgroups * lanes
                                                   : code.group_size[0];
  if (!threads || threads > most)
    return fail(Code::Unsupported, "%s: groups of %u threads, %s allows 1 to %u", code.name, threads,
                info_.name, most);
  const size_t room = (kHipBlockBytes - kMaxBlockBytes) / sizeof(uint32_t);
  if (code.appended > std::min(code.constants.size(), room))
    return fail(Code::Argument, "%s: %u of its %zu constants lie behind the block, at most %zu may",
                code.name, code.appended, code.constants.size(), room);
  auto made = std::make_unique<HipKernel>();
  const auto appended = code.constants.last(code.appended);
  made->appended.assign(appended.begin(), appended.end());
  if (made->appended.size() % 2) made->appended.push_back(0);  // a struct with addresses ends at 8 bytes
  made->name = code.name;
  made->threads = threads;
  GRETA_TRY(load_module(code, &made->module));
  const HipCurrent current(hip, index());
  const int error = hip.hipModuleGetFunction(&made->function, made->module->handle, code.name);
  const Status status =
      error ? within(result(error, "hipModuleGetFunction"), "%s", code.name) : check_shared(*made);
  if (!status.ok()) {
    release_module(*made->module);
    return status;
  }
  *out = {};
  out->group_size[0] = threads;
  out->name = code.name;
  out->handle = made.release();
  return {};
}

Status HipDevice::describe_code(const KernelCode& code, std::string* out) {
  Kernel kernel;
  GRETA_TRY(load(code, &kernel));
  const void* const function = static_cast<HipKernel*>(kernel.handle)->function;
  int registers = 0, private_bytes = 0;
  const bool told = hip.hipFuncGetAttribute &&
                    !hip.hipFuncGetAttribute(&registers, kHipFunctionRegisters, function) &&
                    !hip.hipFuncGetAttribute(&private_bytes, kHipFunctionPrivateBytes, function);
  unload(kernel);
  if (!told) return Device::describe_code(code, out);
  *out = "registers " + std::to_string(registers) + ", private bytes " + std::to_string(private_bytes);
  return {};
}

void HipDevice::unload(Kernel& kernel) {
  auto* state = static_cast<HipKernel*>(kernel.handle);
  if (!state) return;
  release_module(*state->module);
  delete state;
  kernel = {};
}

}  // namespace greta
