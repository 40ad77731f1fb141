// The functions of greta.h for version, errors, devices and runtimes.
#include "api/handles.h"

using namespace greta;

static_assert(uint32_t(Code::Cancelled) == GRETA_ERROR_CANCELLED && uint32_t(kBusy) == GRETA_ERROR_BUSY &&
              uint32_t(Code::Argument) == GRETA_ERROR_ARGUMENT);
static_assert(uint32_t(LogLevel::Error) == GRETA_LOG_ERROR);
static_assert(uint32_t(Graphs::Off) == GRETA_GRAPHS_OFF && uint32_t(Graphs::On) == GRETA_GRAPHS_ON);

static thread_local TooLong last_numbers;  // of the thread's last failure

greta_status greta::to_c(Status status) {
  const TooLong numbers = take_numbers();
  if (!status.ok()) last_numbers = numbers;
  return greta_status(status.code);
}

uint32_t greta_version(void) { return GRETA_VERSION; }
const char* greta_error_text(void) { return error_text(); }

void greta_error_numbers(uint64_t* out_length, uint64_t* out_limit) {
  if (out_length) *out_length = last_numbers.length;
  if (out_limit) *out_limit = last_numbers.limit;
}

static void copy_text(char* to, size_t capacity, const char* from) { format_text(to, capacity, "%s", from); }

static void describe(const DeviceInfo& info, greta_device_info* out) {
  copy_text(out->name, sizeof out->name, info.name);
  copy_text(out->driver, sizeof out->driver, info.driver);
  copy_text(out->arch, sizeof out->arch, info.arch);
  copy_text(out->pci, sizeof out->pci, info.pci);
  out->usable = 1;
  out->memory_bytes = info.memory_bytes;
  out->unit_count = info.unit_count;
  out->unified_memory = info.unified_memory;
  out->cpu_type = info.cpu_type;
}

// A backend without a device counts as one entry, which says why there is none. Counting asks the driver,
// which is slow.
static uint32_t entries(const Backend& backend, const DeviceOptions& options) {
  return std::max(1u, backend.count(options));
}

static void describe(const Backend& backend, uint32_t index, const DeviceOptions& options,
                     greta_device_info* out) {
  *out = {};
  out->struct_size = sizeof *out;
  write_id(backend, index, out->id);
  DeviceInfo device;
  const Status usable = backend.describe(index, options, &device);
  describe(device, out);
  out->usable = usable.ok();
  if (device.cpu_type)
    out->memory_free_bytes = memory_available_bytes();  // that of a GPU is known once it is open
  if (!usable.ok()) copy_text(out->reason, sizeof out->reason, error_text());
}

greta_status greta_device_count(uint32_t* out_count) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(out_count, "out_count"));
    uint32_t count = 0;
    for (const Backend* backend : backends()) count += entries(*backend, {});
    *out_count = count;
    return {};
  });
}

greta_status greta_device_describe(uint32_t index, greta_device_info* out_info) {
  return fenced([&]() -> Status {
    uint32_t first = 0;
    for (const Backend* backend : backends()) {
      const uint32_t count = entries(*backend, {});
      if (index >= first + count) {
        first += count;
        continue;
      }
      greta_device_info info;
      describe(*backend, index - first, {}, &info);
      return write_result(info, out_info);
    }
    return fail(Code::Argument, "there is no device %u: %u devices were looked for", index, first);
  });
}

const char* greta_device_kind(uint32_t index, uint32_t* out_expected) {
  const char* name = nullptr;
  (void)fenced([&]() -> Status {
    if (index >= backends().size()) return {};
    const Backend& backend = *backends()[index];
    if (out_expected) *out_expected = !backend.worth_asking || backend.worth_asking({});
    name = backend.name;
    return {};
  });
  return name;
}

greta_status greta_device_list(const greta_runtime_options* given,
                               int (*on_device)(void* user, const greta_device_info* device), void* user) {
  return fenced([&]() -> Status {
    if (!on_device) return fail(Code::Argument, "on_device is NULL");
    greta_runtime_options o;
    GRETA_TRY(read_options(given, &o));
    CLog log;
    const DeviceOptions options = search_options(o, &log);
    for (const Backend* backend : backends()) {
      if (left_out(*backend, options)) continue;
      const uint32_t count = entries(*backend, options);
      for (uint32_t i = 0; i < count; ++i) {
        greta_device_info info;
        describe(*backend, i, options, &info);
        if (call_back("on_device", [&] { return on_device(user, &info); }))
          return fail(Code::Cancelled, "the callback stopped the list at %s", info.id);
      }
    }
    return {};
  });
}

// Opens a device, which must not be one of those that are open.
static Status open_one(const char* name, const DeviceOptions& options, greta_runtime* runtime) {
  NamedDevice opened;
  GRETA_TRY(open_device(name, options, &opened));
  std::unique_ptr<Device> device(opened.device);
  const char* const pci = device->info().pci;
  for (const RuntimeDevice& other : runtime->devices) {
    if (!strcmp(other.id, opened.id)) return fail(Code::Argument, "device %s is named twice", opened.id);
    if (*pci && !strcmp(other.device->info().pci, pci))
      return fail(Code::Argument, "devices %s and %s are one GPU behind two drivers", other.id, opened.id);
  }
  if (options.persistent && !device->info().launches_plans)
    return fail(Code::Unsupported, "persistent: %s has no launch of several kernels", opened.id);
  RuntimeDevice& added = runtime->devices.emplace_back();
  added.kernels = std::make_unique<DeviceKernels>(*device);
  added.device = std::move(device);
  copy_text(added.id, sizeof added.id, opened.id);
  return {};
}

static Status open_devices(const char* names, const DeviceOptions& options, greta_runtime* runtime) {
  const std::string all = names;
  for (size_t at = 0; at <= all.size();) {
    const size_t end = std::min(all.find(',', at), all.size());
    const std::string name = all.substr(at, end - at);
    if (name.empty() && !all.empty())
      return fail(Code::Argument, "device \"%.200s\": a name is empty", all.c_str());
    if (runtime->devices.size() == GRETA_MAX_DEVICES)
      return fail(Code::Argument, "device \"%.200s\": at most %d devices", all.c_str(), GRETA_MAX_DEVICES);
    GRETA_TRY(open_one(name.c_str(), options, runtime));
    at = end + 1;
  }
  return {};
}

static Status limit_devices(const greta_runtime_options& o, greta_runtime* runtime) {
  if (o.device_limit_count) GRETA_TRY(need(o.device_limits, "device_limits"));
  if (o.device_limit_count > runtime->devices.size())
    return fail(Code::Argument, "%u limits of memory for %zu devices", o.device_limit_count,
                runtime->devices.size());
  for (uint32_t d = 0; d < o.device_limit_count; ++d)
    if (o.device_limits[d]) runtime->devices[d].memory_limit_bytes = o.device_limits[d];
  return {};
}

// A table that cannot be used is no reason not to run.
static void read_tables(greta_runtime* runtime) {
  for (RuntimeDevice& device : runtime->devices) {
    TuningTable table;
    std::string why;
    TableFile(runtime->tuning_folder, table_of(device.device->info())).read(&table, &why);
    if (!why.empty()) runtime->log(LogLevel::Warning, "%s", why.c_str());
    device.kernels->tune(std::move(table));
  }
}

Spans CSpans::spans(bool launches) {
  const auto take = [](void* self, const SpanEvent& from) {
    const CSpans& to = *static_cast<const CSpans*>(self);
    greta_span span = {};
    span.struct_size = sizeof span;
    span.kind = greta_span_kind(from.kind);
    span.name = from.name;
    span.stage = from.stage;
    span.begin_ns = from.begin_ns;
    span.end_ns = from.end_ns;
    span.number = from.number;
    span.device = from.device;
    span.tokens = from.tokens;
    span.launches = from.launches;
    span.bytes = from.bytes;
    span.flops = from.flops;
    span.error_ns = from.error_ns;
    to.call(to.user, &span);
  };
  return {take, this, launches};
}

greta_status greta_runtime_open(const greta_runtime_options* given, greta_runtime** out_runtime) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(out_runtime, "out_runtime"));
    greta_runtime_options o;
    GRETA_TRY(read_options(given, &o));
    GRETA_TRY(check_reserved(o.reserved));
    GRETA_TRY(check_reserved(o.reserved2));
    if (!o.allocate != !o.release)
      return fail(Code::Argument, "allocate and release must both be set, or neither of them");
    auto runtime = std::make_unique<greta_runtime>();
    GRETA_TRY(read_flag(o.exact, "exact", &runtime->exact));
    DeviceOptions device = search_options(o, &runtime->c_log);
    device.threads = o.threads;
    device.allocator = {o.allocate, o.release, o.allocator_user};
    device.cache_folder = o.cache_folder;
    runtime->log = device.log;
    GRETA_TRY(read_flag(o.persistent, "persistent", &device.persistent));
    if (o.graphs > GRETA_GRAPHS_ON)
      return fail(Code::Argument, "graphs is %u, expected a greta_graphs", o.graphs);
    device.graphs = Graphs(o.graphs);
    GRETA_TRY(read_flag(o.import_files, "import_files", &device.imports_files));
    bool launches = false;
    GRETA_TRY(read_flag(o.span_launches, "span_launches", &launches));
    runtime->c_spans = {o.on_span, o.span_user};
    if (o.on_span) runtime->spans = runtime->c_spans.spans(launches);
    GRETA_TRY(open_devices(o.device ? o.device : "auto", device, runtime.get()));
    runtime->first().memory_limit_bytes = o.memory_limit_bytes;
    GRETA_TRY(limit_devices(o, runtime.get()));
    if (o.tuning_folder) runtime->tuning_folder = o.tuning_folder;
    if (!runtime->tuning_folder.empty() && !runtime->exact) read_tables(runtime.get());
    *out_runtime = runtime.release();
    return {};
  });
}

void greta_runtime_close(greta_runtime* runtime) { close_object(runtime); }

static Status describe(const RuntimeDevice& device, greta_device_info* out) {
  greta_device_info info = {};
  describe(device.device->info(), &info);
  copy_text(info.id, sizeof info.id, device.id);
  info.memory_free_bytes = device.free_bytes();
  return write_result(info, out);
}

greta_status greta_runtime_describe(const greta_runtime* runtime, greta_device_info* out_info) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(runtime));
    return describe(runtime->first(), out_info);
  });
}

uint32_t greta_runtime_device_count(const greta_runtime* runtime) {
  return runtime ? uint32_t(runtime->devices.size()) : 0;
}

greta_status greta_runtime_device(const greta_runtime* runtime, uint32_t index, greta_device_info* out_info) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(runtime));
    if (index >= runtime->devices.size())
      return fail(Code::Argument, "there is no device %u: the runtime has %zu", index,
                  runtime->devices.size());
    return describe(runtime->devices[index], out_info);
  });
}

greta_status greta_runtime_measure_bandwidth(greta_runtime* runtime, uint64_t* out_bytes_per_second) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(runtime));
    GRETA_TRY(need(out_bytes_per_second, "out_bytes_per_second"));
    return measure_bandwidth(*runtime->first().device, out_bytes_per_second);
  });
}

greta_status greta_runtime_measure_arithmetic(greta_runtime* runtime, uint64_t* out_flops_per_second) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(runtime));
    GRETA_TRY(need(out_flops_per_second, "out_flops_per_second"));
    return measure_arithmetic(*runtime->first().device, out_flops_per_second);
  });
}
