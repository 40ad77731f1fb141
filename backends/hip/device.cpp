// The HIP device: opening and closing, events, and its row among the backends.
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "backends/hip/hip.h"
#include "backends/hip/system.h"

namespace greta {

constexpr uint64_t kWaitLimitMs = 60'000;

Status HipDevice::usable() const {
  GRETA_TRY(hip.check_process());
  if (usable_here()) return {};
  const char* const by = lost_by_;
  if (!by) {
    char fault[128];
    hip_fault_text(fault);
    return fail(Code::Device, "%s was lost (%s): close it and open it again", info_.name, fault);
  }
  const int with = lost_with_;
  return fail(Code::Device, "%s was lost (%s: %s): close it and open it again", info_.name, by,
              hip.hipGetErrorName(with));
}

void HipDevice::lose(const char* by, int with) {
  const char* nobody = nullptr;
  if (lost_by_.compare_exchange_strong(nobody, by)) lost_with_ = with;
}

// True of errors after which the driver runs nothing more.
static bool ends_the_device(int error) {
  return error == kHipUncorrectableMemory || error == kHipIllegalAddress || error == kHipLaunchTimeOut ||
         error == kHipLaunchFailure || error == kHipUnknown;
}

Status HipDevice::result(int error, const char* what) {
  if (ends_the_device(error)) lose(what, error);
  return hip.result(error, what);
}

Status hip_inspect(const HipLibrary& hip, uint32_t index, const SystemView& system, HipProperties* properties,
                   HipCard* card, DeviceInfo* out) {
  *out = {};
  format_text(out->library, sizeof out->library, "%s", hip.path());
  GRETA_TRY(hip.check_index(index, system));
  GRETA_TRY(
      hip.result(hip.hipGetDevicePropertiesR0600(properties, int(index)), "hipGetDevicePropertiesR0600"));
  properties->name[sizeof properties->name - 1] = properties->arch[sizeof properties->arch - 1] = '\0';
  char version[64];
  hip.text_of_version(version);
  format_text(out->name, sizeof out->name, "%.120s", properties->name);
  format_text(out->backend, sizeof out->backend, "hip");
  format_text(out->arch, sizeof out->arch, "%.*s", int(std::min<size_t>(strcspn(properties->arch, ":"), 31)),
              properties->arch);
  format_text(out->driver, sizeof out->driver, "%s", version);
  hip_pci(*properties, out->pci);
  *card = read_hip_card(system, out->pci);
  if (card->has_cores) properties->integrated = 1;
  out->unified_memory = properties->integrated != 0;
  out->memory_bytes = hip_memory_bytes(*properties, *card);
  out->reserve_bytes = reserve_of(out->memory_bytes);
  out->max_allocation_bytes = out->memory_bytes;
  out->max_import_bytes = kHipMostImported;
  out->wave_min = out->wave_max = uint32_t(properties->lanes);
  out->unit_count = hip_units(*properties, *card);
  out->die_count = hip_dies(out->arch, out->unit_count, *card);
  out->launches_plans = true;
  out->shared_bytes = uint32_t(properties->shared_bytes);
  out->runs_ahead = true;
  return hip_check_code(out->arch, hip.version(), kHipTargets);
}

// Before HIP 7.2.1, which is 7.2.53211, graphs lose launches or crash in several ways.
void HipDevice::choose_graphs(Graphs wanted) {
  constexpr int kMakesGraphsRight = 70253211;
  makes_graphs_ = wanted == Graphs::On || (wanted == Graphs::Default && hip.version() >= kMakesGraphsRight);
  log_(LogLevel::Info, "%s: plans are %s", info_.name,
       makes_graphs_           ? "graphs of the HIP runtime"
       : wanted == Graphs::Off ? "given launch by launch, as was asked for"
                               : "given launch by launch, since graphs are not safe before HIP 7.2.1");
}

Status HipDevice::open(uint32_t index, const DeviceOptions& options) {
  index_ = index;
  log_ = options.log;
  system_root_ = options.system.root;
  wait_limit_ns_ = (options.wait_limit_ms ? options.wait_limit_ms : kWaitLimitMs) * 1'000'000;
  properties_ = std::make_unique<HipProperties>();
  GRETA_TRY(hip_inspect(hip, index, options.system, properties_.get(), &card_, &info_));
  choose_graphs(options.graphs);
  shares_stream_ = is_rdna(info_.arch);
  info_.features &= options.features_mask;
  hip_watch_faults(hip);
  faults_before_ = hip_fault_count();
  GRETA_TRY(within(prove_memory(*this), "%s does not work", info_.name));
  info_.imports_host = options.imports_files && info_.unified_memory && reads_file_pages(*this);
  if (options.persistent) GRETA_TRY(open_persistent());
  return usable();
}

Status HipDevice::create_stream(Stream** out) {
  GRETA_TRY(usable());
  auto stream = std::make_unique<HipStream>(*this);
  GRETA_TRY(stream->open());
  *out = stream.release();
  return {};
}

// What Event::handle and Graph::handle point to, since recorded commands share these objects.
template <class T, class Handle>
static std::shared_ptr<T>* shared_of(const Handle& handle) {
  return static_cast<std::shared_ptr<T>*>(handle.handle);
}

HipEvent::~HipEvent() {
  if (!handle || !device.may_free()) return;
  const HipCurrent current(device.hip, device.index());
  (void)device.hip.hipEventDestroy(handle);
}

HipGraph::~HipGraph() {
  if (!handle || !device.may_free()) return;
  const HipCurrent current(device.hip, device.index());
  (void)device.hip.hipGraphExecDestroy(handle);
}

Status HipDevice::create_event(Event* out, bool timed) {
  GRETA_TRY(usable());
  const HipCurrent current(hip, index());
  auto event = std::make_shared<HipEvent>(*this);
  event->timed = timed;
  GRETA_TRY(result(hip.hipEventCreateWithFlags(&event->handle, timed ? 0 : kHipEventWithoutTime),
                   "hipEventCreateWithFlags"));
  out->handle = new std::shared_ptr<HipEvent>(std::move(event));
  return {};
}

Status HipDevice::elapsed_ns(const Event& from, const Event& to, uint64_t* out) {
  if (!from.handle || !to.handle) return fail(Code::Argument, "elapsed_ns: an event was not created");
  GRETA_TRY(usable());
  HipEvent& first = **shared_of<HipEvent>(from);
  HipEvent& last = **shared_of<HipEvent>(to);
  if (!first.timed || !last.timed)
    return fail(Code::Argument, "elapsed_ns: an event was created without a clock");
  for (HipEvent* event : {&first, &last})
    if (!queue.reached(*event))
      return fail(Code::Argument, "elapsed_ns: the %s event was not signalled and waited for",
                  event == &first ? "first" : "second");
  const HipCurrent current(hip, index());
  float ms = 0;  // below 16 ms it is exact to the nanosecond
  GRETA_TRY(result(hip.hipEventElapsedTime(&ms, first.handle, last.handle), "hipEventElapsedTime"));
  *out = ms > 0 ? uint64_t(std::llround(double(ms) * 1e6)) : 0;
  return {};
}

void HipDevice::destroy(Event& event) {
  delete shared_of<HipEvent>(event);
  event = {};
}

void HipDevice::destroy(Graph& graph) {
  delete shared_of<HipGraph>(graph);
  graph = {};
}

static uint32_t count(const DeviceOptions& options) {
  const HipLibrary* hip = nullptr;
  return HipLibrary::get(options, &hip).ok() ? hip->device_count() : 0;
}

static Status describe(uint32_t index, const DeviceOptions& options, DeviceInfo* out) {
  *out = {};
  const HipLibrary* hip = nullptr;
  Status status = HipLibrary::get(options, &hip);
  HipProperties properties = {};
  HipCard card;
  if (status.ok()) status = hip_inspect(*hip, index, options.system, &properties, &card, out);
  if (!status.ok() && !index && !*out->arch) hip_describe_hidden(options, out);
  return status;
}

static Status open(uint32_t index, const DeviceOptions& options, Device** out) {
  const HipLibrary* hip = nullptr;
  GRETA_TRY(HipLibrary::get(options, &hip));
  auto device = std::make_unique<HipDevice>(*hip);
  GRETA_TRY(device->open(index, options));
  *out = device.release();
  return {};
}

extern const Backend backend_hip;
const Backend backend_hip = {"hip", false, count, describe, open, hip_may_be_there};

}  // namespace greta
