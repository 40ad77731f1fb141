#include "trace/workload.h"

#include <algorithm>
#include <memory>

#include "console.h"

namespace greta::cli {
namespace {

int count_token(void* user, int32_t token, const char*, size_t) {
  if (token >= 0) ++*static_cast<uint64_t*>(user);
  return interrupted() ? 1 : 0;
}

// Writes all streams at once, each after the same prompt.
Written write_streams(const Workload& work, greta_model* model) {
  const greta_executor_options wanted = executor_of(work, describe(model).context);
  greta_executor* opened = nullptr;
  check(greta_executor_open(model, &wanted, &opened));
  const Executor executor(opened);
  Written written;
  auto write = sized<greta_generate_options>();
  write.max_tokens = work.predict;
  write.ignore_end = 1;
  write.on_token = count_token;
  write.user = &written.generated_tokens;
  std::vector<Session> sessions;
  std::vector<greta_generate_result> results(work.streams, sized<greta_generate_result>());
  std::vector<greta_generate_item> items(work.streams);
  auto session_options = sized<greta_session_options>();
  session_options.executor = executor.get();
  for (uint32_t i = 0; i < work.streams; ++i) {
    greta_session* session = nullptr;
    check(greta_session_open(model, &session_options, &session));
    sessions.emplace_back(session);
    items[i].session = session;
    items[i].tokens = work.tokens.data();
    items[i].count = work.tokens.size();
    items[i].options = &write;
    items[i].result = &results[i];
  }
  set_active_session(sessions[0].get());
  check(greta_batch_generate(items.data(), items.size()));
  for (const greta_generate_item& item : items)
    if (item.status != GRETA_OK) throw Failed(item.error);
  for (const greta_generate_result& result : results) {
    written.prompt_ns = std::max(written.prompt_ns, result.prompt_ns);
    written.generate_ns = std::max(written.generate_ns, result.generate_ns);
  }
  return written;
}

// Asks a service for all answers at once, so that those wait for which there is no place.
Written write_requests(const Workload& work, greta_model* model, Sampler& sampler) {
  const greta_executor_options sizes = executor_of(work, describe(model).context);
  auto options = sized<greta_service_options>();
  options.own_thread = 1;
  options.executor = &sizes;
  options.event_capacity = work.predict + 16;
  options.max_requests = options.salt_requests = work.requests;
  greta_service* opened = nullptr;
  check(greta_service_open(model, &options, &opened));
  const tools::Service service(opened);
  const Sampler::Guest guest(sampler, [opened] {
    auto info = sized<greta_service_info>();
    if (greta_service_describe(opened, &info) != GRETA_OK) return std::vector<SensorReading>{};
    return std::vector<SensorReading>{{"requests that wait", double(info.waiting)},
                                      {"requests that run", double(info.running)},
                                      {"pages in use", double(info.pages - info.free_pages)}};
  });
  std::vector<tools::Request> requests;
  auto ask = sized<greta_request_options>();
  ask.tokens = work.tokens.data();
  ask.token_count = work.tokens.size();
  ask.max_tokens = work.predict;
  ask.ignore_end = 1;
  ask.no_cache = 1;
  for (uint32_t i = 0; i < work.requests; ++i) {
    greta_request* request = nullptr;
    check(greta_service_add(opened, &ask, &request));
    requests.emplace_back(request);
  }
  Written written;
  for (const auto& request : requests) {
    auto event = sized<greta_request_event>();
    do {
      check(greta_request_next(request.get(), UINT64_MAX, &event));
      if (interrupted()) throw Interrupted{};
    } while (event.kind != GRETA_EVENT_END);
    auto result = sized<greta_request_result>();
    check(greta_request_finish(request.get(), &result));
    written.generated_tokens += result.generated_tokens;
    written.prompt_ns = std::max(written.prompt_ns, result.prompt_ns);
    written.generate_ns = std::max(written.generate_ns, result.generate_ns);
  }
  return written;
}

}  // namespace

greta_executor_options executor_of(const Workload& work, uint32_t model_context) {
  greta_executor_options wanted = executor_options(work.context, model_context, work.requests ? 0 : 1);
  wanted.sequences = work.streams;
  if (work.streams > 1 && wanted.cache_tokens == 0)
    wanted.cache_tokens =
        work.streams * static_cast<uint32_t>((work.tokens.size() + work.predict) / 64 + 1) * 64;
  return wanted;
}

Written run_workload(const Workload& work, greta_model* model, Sampler& sampler) {
  Written written = work.requests ? write_requests(work, model, sampler) : write_streams(work, model);
  written.prompt_tokens = work.tokens.size() * (work.requests ? work.requests : work.streams);
  return written;
}

}  // namespace greta::cli
