// The functions of greta.h for adapters.
#include "api/handles.h"

using namespace greta;

static_assert(uint32_t(AdapterKind::Lora) == GRETA_ADAPTER_LORA &&
              uint32_t(AdapterKind::Control) == GRETA_ADAPTER_CONTROL);

static greta_adapter_info info_of(const AdapterFile& file) {
  greta_adapter_info info = {};
  const auto copy = [](std::string_view from, char* to, size_t capacity) {
    format_text(to, capacity, "%.*s", int(std::min(from.size(), capacity)), from.data());
  };
  info.kind = greta_adapter_kind(file.kind);
  copy(file.name, info.name, sizeof info.name);
  copy(file.architecture, info.architecture, sizeof info.architecture);
  info.matrices = uint32_t(file.pairs.size());
  info.directions = uint32_t(file.directions.size());
  info.least_rank = file.least_rank();
  info.most_rank = file.most_rank();
  info.alpha = file.alpha;
  info.tensor_bytes = file.tensor_bytes();
  info.identity = file.identity;
  return info;
}

greta_status greta_file_adapter(const greta_file* file, greta_adapter_info* out_info) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(file, "file"));
    GRETA_TRY(check_result(out_info));
    Source source;
    GRETA_TRY(file->source.open(&source));
    AdapterFile adapter;
    GRETA_TRY(read_adapter(std::move(source), &adapter));
    return write_result(info_of(adapter), out_info);
  });
}

greta_status greta_adapter_open(greta_model* model, const greta_source* given,
                                const greta_adapter_options* given_options, greta_adapter** out_adapter) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(model));
    GRETA_TRY(need(out_adapter, "out_adapter"));
    greta_adapter_options o;
    GRETA_TRY(read_options(given_options, &o));
    GRETA_TRY(check_reserved(o.reserved));
    StoredSource stored;
    GRETA_TRY(stored.store(given));
    Source source;
    GRETA_TRY(stored.open(&source));
    AdapterFile file;
    GRETA_TRY(read_adapter(std::move(source), &file));
    auto adapter = std::make_unique<greta_adapter>();
    adapter->model = model;
    adapter->shared = std::make_shared<CountedAdapter>();
    CountedAdapter& shared = *adapter->shared;
    {
      const std::lock_guard<std::mutex> lock(model->adapters_mutex);
      if (model->adapters.size() >= kMaxAdapters)
        return fail(Code::Full, "%s: the model has %zu adapters, and takes no more", file.gguf.name(),
                    model->adapters.size());
      model->adapters.push_back(adapter.get());  // it has its place while it is read
    }
    const auto leave = [&] {
      const std::lock_guard<std::mutex> lock(model->adapters_mutex);
      std::erase(model->adapters, adapter.get());
    };
    const Model& m = model->model;
    const Status opened = guarded(
        [&] { return Adapter::open(m, std::move(file), {o.first_layer, o.last_layer}, &shared.adapter); });
    if (!opened.ok()) return leave(), opened;
    shared.counted.resize(m.devices.size());
    for (uint32_t d = 0; d < m.devices.size(); ++d)
      shared.counted[d].count(model->runtime->of(m, d), shared.adapter->device_bytes(d));
    *out_adapter = adapter.release();
    return {};
  });
}

greta_status greta_adapter_close(greta_adapter* adapter) {
  return fenced([&]() -> Status {
    if (!adapter) return {};
    greta_model& model = *adapter->model;
    const std::lock_guard<std::mutex> lock(model.adapters_mutex);
    if (const uint32_t users = adapter->adapter().users())
      return fail(Code::Argument, "%s: %u session%s or request%s use%s it",
                  adapter->adapter().file().gguf.name(), users, users == 1 ? "" : "s", users == 1 ? "" : "s",
                  users == 1 ? "s" : "");
    std::erase(model.adapters, adapter);
    adapter->shared->adapter->close();
    delete adapter;
    return {};
  });
}

greta_status greta_adapter_describe(const greta_adapter* adapter, greta_adapter_info* out_info) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(adapter, "adapter"));
    greta_adapter_info info = info_of(adapter->adapter().file());
    info.device_bytes = adapter->adapter().device_bytes();
    info.identity = adapter->adapter().identity();
    info.users = adapter->adapter().users();
    return write_result(info, out_info);
  });
}

Status greta::read_adapters(const greta_model& model, const greta_adapter* const* adapters,
                            const float* scales, size_t count, std::shared_ptr<const AdapterList>* out) {
  std::vector<AdapterUse> uses;
  if (count > kMaxSequenceAdapters)
    return fail(Code::Argument, "%zu adapters at once, at most %u", count, kMaxSequenceAdapters);
  if (count) GRETA_TRY(need(adapters, "adapters"));
  // Whoever closes an adapter sees this use of it, or it is closed already.
  const std::lock_guard<std::mutex> lock(model.adapters_mutex);
  for (size_t i = 0; i < count; ++i) {
    if (!adapters[i]) return fail(Code::Argument, "adapters[%zu] is NULL", i);
    if (std::ranges::find(model.adapters, adapters[i]) == model.adapters.end())
      return fail(Code::Argument, "adapters[%zu] is none of this model's open adapters", i);
    uses.push_back({{adapters[i]->shared, adapters[i]->shared->adapter.get()}, scales ? scales[i] : 1});
  }
  return AdapterList::make(uses, out);
}

greta_status greta_session_set_adapters(greta_session* session, const greta_adapter* const* adapters,
                                        const float* scales, size_t count) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(session));
    CountedExecutor& executor = *session->executor;
    std::shared_ptr<const AdapterList> list;
    GRETA_TRY(read_adapters(*executor.model, adapters, scales, count, &list));
    const Status set = session->session->set_adapters(std::move(list));
    const Model& model = executor.executor->model();
    for (uint32_t d = 0; d < model.devices.size(); ++d)
      executor.counted[d].count(executor.runtime->of(model, d), executor.executor->plan().on[d].total() +
                                                                    executor.executor->adapter_bytes(d));
    return set;
  });
}
