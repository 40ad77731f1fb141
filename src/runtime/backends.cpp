#include "runtime/backends.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/sharing.h"

namespace greta {

#define BACKEND(name) extern const Backend backend_##name;
#include "runtime/backends.def"
#undef BACKEND

static constexpr const Backend* kBackends[] = {
#define BACKEND(name) &backend_##name,
#include "runtime/backends.def"
#undef BACKEND
};

#ifndef GRETA_BACKEND_VULKAN
Status adopt_device(const HostHandles&, const DeviceOptions&, Device**) {
  return fail(Code::Unsupported, "this build has no Vulkan");
}
#endif

std::span<const Backend* const> backends() { return kBackends; }

const Backend* processor() {
  const auto found = std::ranges::find_if(kBackends, &Backend::is_processor);
  return found == std::end(kBackends) ? nullptr : *found;
}

bool left_out(const Backend& backend, const DeviceOptions& options) {
  const std::string names = std::string(",") + (options.without ? options.without : "") + ",";
  return names.find(std::string(",") + backend.name + ",") != names.npos;
}

static Status unknown_device(const char* name) {
  char known[256] = "";
  for (const Backend* backend : kBackends) {
    const size_t used = strlen(known);
    format_text(known + used, sizeof known - used, ", %s", backend->name);
  }
  return fail(Code::Unsupported, "no device '%s': this build has auto%s (also numbered: cpu0)", name, known);
}

void write_id(const Backend& backend, uint32_t index, char (&out)[kDeviceIdBytes]) {
  if (backend.is_processor)
    format_text(out, sizeof out, "%s", backend.name);
  else
    format_text(out, sizeof out, "%.11s%u", backend.name, index % 10000);
}

namespace {

bool is_accelerator(const DeviceInfo& info) { return is_instinct(info.arch); }
bool has_own_memory(const DeviceInfo& info) { return !info.cpu_type && !info.unified_memory; }
bool shares_memory(const DeviceInfo& info) { return !info.cpu_type && info.unified_memory; }
bool is_processor(const DeviceInfo&) { return true; }

// The turns of "auto": devices of a row come before those of the next. So an Instinct takes HIP, another GPU
// Vulkan, and HIP where Vulkan has no driver for it. A Vulkan device on the processor has no turn.
struct Turn {
  const char* backend;
  bool (*has)(const DeviceInfo& info);
};
constexpr Turn kTurns[] = {{"hip", is_accelerator},   {"vulkan", has_own_memory}, {"hip", has_own_memory},
                           {"vulkan", shares_memory}, {"hip", shares_memory},     {"cpu", is_processor}};
constexpr size_t kNoTurn = std::size(kTurns) - 1;  // just before the processor, if it had one

struct Candidate {
  const Backend* backend;
  uint32_t index;
  DeviceInfo info;
  Status status;       // of its description
  std::string reason;  // why it cannot be used; "" if it can
  bool present;        // false: it stands for a backend that has no device
  size_t turn;
  bool has_turn;
  size_t found = 0;  // how many were found before it, or before the first that is the same GPU
};

void place(Candidate* candidate) {
  const auto turn = std::ranges::find_if(kTurns, [&](const Turn& t) {
    return !strcmp(t.backend, candidate->backend->name) && t.has(candidate->info);
  });
  candidate->has_turn = turn != std::end(kTurns);
  candidate->turn = candidate->has_turn ? size_t(turn - kTurns) : kNoTurn;
}

// A backend without a device has one candidate, since `describe` knows the reason, such as no permission. If
// it also knows the name or kind of a GPU that is there, the GPU is present.
void add_candidates(const Backend& backend, const DeviceOptions& options, std::vector<Candidate>* to) {
  const uint32_t count = backend.count(options);
  for (uint32_t i = 0; i < std::max(1u, count); ++i) {
    Candidate device = {&backend, i, {}, {}, {}, true, 0, false};
    device.status = backend.describe(i, options, &device.info);
    if (!device.status.ok()) device.reason = error_text();
    if (!count && device.status.ok()) device.reason = backend.name + std::string(" has no device");
    device.present = count || *device.info.name || *device.info.arch;
    place(&device);
    device.found = to->size();
    for (const Candidate& other : *to)
      if (*device.info.pci && other.backend == &backend && !strcmp(device.info.pci, other.info.pci))
        device.found = std::min(device.found, other.found);
    to->push_back(std::move(device));
  }
}

// Makes "vulkan0, AMD Radeon: its driver lacks ..". The reason may begin with the device's name already.
std::string sentence(const Candidate& device) {
  if (!device.present) return device.reason;
  const std::string id = device.backend->name + std::to_string(device.index), name = device.info.name;
  if (name.empty()) return id + ": " + device.reason;
  return id + ", " + (device.reason.starts_with(name) ? "" : name + ": ") + device.reason;
}

std::string joined(const std::vector<std::string>& reasons) {
  std::string text;
  for (const std::string& reason : reasons) text += (text.empty() ? "" : "; ") + reason;
  return text;
}

struct Choice {
  const Candidate* taken = nullptr;
  Status first;                          // the status of the first that was not taken
  std::vector<std::string> all, better;  // why others were not taken: all, and only devices that are present
};

// Opens the first candidate that works. One without a turn is taken only if `any` says so.
Choice open_in_turn(std::vector<Candidate>& candidates, bool any, const DeviceOptions& options,
                    NamedDevice* out) {
  std::ranges::sort(candidates, {}, [](const Candidate& device) {
    return std::tuple(device.turn, device.has_turn, device.found, device.info.vendor_driver, device.index);
  });
  Choice choice;
  for (Candidate& device : candidates) {
    const bool refused = device.present && !device.has_turn && !any;
    if (refused && !choice.all.empty()) continue;
    if (refused) device.reason = "it runs on the processor";
    if (device.reason.empty()) {
      options.log(LogLevel::Debug, "opening %s%u", device.backend->name, device.index);
      device.status = device.backend->open(device.index, options, &out->device);
      if (device.status.ok()) {
        write_id(*device.backend, device.index, out->id);
        choice.taken = &device;
        return choice;
      }
      device.reason = error_text();
    }
    if (choice.first.ok()) choice.first = device.status.ok() ? Status{Code::Unsupported} : device.status;
    choice.all.push_back(sentence(device));
    if (device.present) choice.better.push_back(choice.all.back());
  }
  return choice;
}

// The log says why a GPU was passed over, since the processor is much slower. What would have come later and
// cannot be used is told for information.
void tell(const Choice& choice, const char* id, const std::vector<Candidate>& candidates,
          const DeviceOptions& options) {
  if (choice.taken->backend->is_processor && !choice.all.empty())
    options.log(LogLevel::Warning, "no GPU to use, running on the CPU: %s", joined(choice.all).c_str());
  else if (!choice.better.empty())
    options.log(LogLevel::Warning, "%.900s; %s is taken", joined(choice.better).c_str(), id);
  for (const Candidate* later = choice.taken + 1; later < candidates.data() + candidates.size(); ++later)
    if (later->present && later->has_turn && !later->reason.empty())
      options.log(LogLevel::Info, "%.900s", sentence(*later).c_str());
}

// Opens the best device of the backend that was named without a number.
Status open_any(const Backend& backend, const DeviceOptions& options, NamedDevice* out) {
  std::vector<Candidate> candidates;
  add_candidates(backend, options, &candidates);
  const bool any = std::ranges::none_of(candidates, &Candidate::has_turn);
  const Choice choice = open_in_turn(candidates, any, options, out);
  if (!choice.taken)
    return fail(choice.first.code, "device %s: %s", backend.name, joined(choice.all).c_str());
  tell(choice, out->id, candidates, options);
  return {};
}

}  // namespace

Status open_best(std::span<const Backend* const> from, const DeviceOptions& options, NamedDevice* out) {
  std::vector<Candidate> candidates;
  for (const Backend* backend : from)
    if (!left_out(*backend, options) && (!backend->worth_asking || backend->worth_asking(options)))
      add_candidates(*backend, options, &candidates);
  const Choice choice = open_in_turn(candidates, false, options, out);
  if (!choice.taken) return fail(Code::Unsupported, "no usable device: %s", joined(choice.all).c_str());
  tell(choice, out->id, candidates, options);
  return {};
}

Status open_device(const char* name, const DeviceOptions& options, NamedDevice* out) {
  if (!name || !*name || !strcmp(name, "auto")) return open_best(kBackends, options, out);
  for (const Backend* backend : kBackends) {
    const size_t length = strlen(backend->name);
    if (strncmp(name, backend->name, length)) continue;
    const char* digits = name + length;
    const size_t digit_count = strspn(digits, "0123456789");
    if (digits[digit_count] || digit_count > 4) continue;
    if (!digit_count) return open_any(*backend, options, out);
    const uint32_t index = uint32_t(strtoul(digits, nullptr, 10));
    // `open` knows why a device is not there: no driver, no permission, or no such number.
    GRETA_TRY(within(backend->open(index, options, &out->device), "device %s", name));
    return write_id(*backend, index, out->id), Status{};
  }
  return unknown_device(name);
}

Status open_device(const char* name, const DeviceOptions& options, Device** out) {
  NamedDevice opened;
  GRETA_TRY(open_device(name, options, &opened));
  *out = opened.device;
  return {};
}

}  // namespace greta
