#include "models.h"

#include <algorithm>
#include <stdexcept>

namespace greta::serve {
namespace {

constexpr std::chrono::milliseconds kLook{20};  // how often a model that is to leave is looked at

// There is no memory for the model beside the others.
struct NoRoom : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct DeviceLost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[noreturn]] void cannot_open(greta_status status, bool may_shrink) {
  if (status == GRETA_ERROR_MEMORY && !may_shrink) throw NoRoom(greta_error_text());
  if (status == GRETA_ERROR_DEVICE) throw DeviceLost(greta_error_text());
  throw std::runtime_error(greta_error_text());
}

}  // namespace

const char* state_name(Hosted::State state) {
  constexpr const char* kNames[] = {"unloaded", "loading", "loaded", "sleeping", "failed"};
  return kNames[static_cast<size_t>(state)];
}

Models::Models(const Options& options, OnEnd on_end)
    : options_(options), on_end_(std::move(on_end)), many_(!options.models.empty()) {
  const auto add = [this](const Settings* own) {
    hosted_.push_back(std::make_unique<Hosted>());
    hosted_.back()->options = own ? &own->options : &options_;
    hosted_.back()->engine = own ? &own->engine : &loaded_.engine;
    return hosted_.back().get();
  };
  for (const Offer& offer : options.models) {
    Hosted* hosted = add(offer.own.get());
    hosted->name = offer.name;
    hosted->path = offer.path;
    hosted->wanted = offer.at_start;
    hosted->patience = std::chrono::seconds(offer.stop_s);
  }
  if (hosted_.empty()) add(nullptr)->state = Hosted::State::Loading;
}

void Models::start(const Loader& load, const std::function<void()>& loaded) {
  load_ = load;
  loaded_ = load();
  if (!many_) {
    Hosted& only = *hosted_[0];
    only.path = loaded_.path;
    const std::string file = loaded_.path.substr(loaded_.path.rfind('/') + 1);
    only.name = options_.alias.empty() ? file.substr(0, file.rfind(".gguf")) : options_.alias;
    open(&only, true);
    only.state = Hosted::State::Loaded;
  }
  loaded();
  thread_ = std::thread([this] { run(); });
}

void Models::close() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  woken_.notify_all();
  if (thread_.joinable()) thread_.join();
  for (const auto& hosted : hosted_) forget(hosted.get());
}

void Models::cancel_all() {
  const std::lock_guard lock(mutex_);
  for (const auto& hosted : hosted_)
    if (hosted->state == Hosted::State::Loaded) hosted->jobs->cancel_all();
}

void Models::stop_loading() {
  for (const auto& hosted : hosted_) hosted->cancelled = true;
}

Loss Models::loss() {
  const std::lock_guard lock(mutex_);
  return loss_;
}

Hosted* Models::find(const std::string& name) const {
  if (hosted_.size() == 1 && (!many_ || name.empty())) return hosted_[0].get();
  for (const auto& hosted : hosted_)
    if (hosted->name == name) return hosted.get();
  return nullptr;
}

bool Models::hold(Hosted* hosted, bool used) {
  const std::lock_guard lock(mutex_);
  if (hosted->state != Hosted::State::Loaded) return false;
  ++hosted->users;
  if (used) hosted->used = Hosted::Clock::now();
  return true;
}

void Models::note_use(Hosted* hosted) {
  const std::lock_guard lock(mutex_);
  hosted->used = Hosted::Clock::now();
}

void Models::release(Hosted* hosted) {
  {
    const std::lock_guard lock(mutex_);
    --hosted->users;
  }
  if (options_.sleep_s > 0) woken_.notify_all();
}

void Models::when_loaded(Hosted* hosted, std::function<void()> then) {
  {
    const std::lock_guard lock(mutex_);
    if (hosted->state != Hosted::State::Loaded) {
      hosted->waiting.push_back(std::move(then));
      hosted->wanted = true;
      woken_.notify_all();
      return;
    }
  }
  then();
}

void Models::want(Hosted* hosted) {
  const std::lock_guard lock(mutex_);
  hosted->wanted = hosted->state != Hosted::State::Loaded;
  woken_.notify_all();
}

void Models::unwant(Hosted* hosted) {
  const std::lock_guard lock(mutex_);
  const Hosted::State state = hosted->state;
  if (state == Hosted::State::Sleeping || state == Hosted::State::Failed)
    hosted->state = Hosted::State::Unloaded;
  hosted->unwanted = state == Hosted::State::Loaded;
  woken_.notify_all();
}

std::string Models::failure_of(Hosted* hosted) {
  const std::lock_guard lock(mutex_);
  return hosted->failure;
}

Json Models::props_asleep(Hosted* hosted) {
  const std::lock_guard lock(mutex_);
  return hosted->props;
}

bool Models::idle(Hosted* hosted) const { return hosted->users == 0 && hosted->jobs->active() == 0; }

// A model that has been idle for long enough; else `when` is the time to look again.
Hosted* Models::next_to_sleep(Hosted::Clock::time_point* when) {
  const auto now = Hosted::Clock::now();
  const auto pause = std::chrono::seconds(options_.sleep_s);
  *when = Hosted::Clock::time_point::max();
  if (options_.sleep_s == 0) return nullptr;
  for (const auto& hosted : hosted_) {
    if (hosted->state != Hosted::State::Loaded) continue;
    if (!idle(hosted.get())) hosted->used = now;
    if (hosted->used + pause <= now) return hosted.get();
    *when = std::min(*when, hosted->used + pause);
  }
  return nullptr;
}

void Models::run() {
  std::unique_lock lock(mutex_);
  while (!closing_) {
    Hosted *wanted = nullptr, *unwanted = nullptr;
    for (const auto& hosted : hosted_) {
      if (hosted->wanted) wanted = hosted.get();
      if (hosted->unwanted) unwanted = hosted.get();
    }
    if (lost_) {
      lock.unlock();
      reopen();
      lock.lock();
      continue;
    }
    Hosted::Clock::time_point when;
    Hosted* sleepy = wanted || unwanted ? nullptr : next_to_sleep(&when);
    if (unwanted || sleepy) {
      lock.unlock();
      unload(unwanted ? unwanted : sleepy, unwanted ? Hosted::State::Unloaded : Hosted::State::Sleeping);
      lock.lock();
    } else if (wanted) {
      lock.unlock();
      load(wanted);
      lock.lock();
    } else if (when == Hosted::Clock::time_point::max()) {
      woken_.wait(lock);
    } else {
      woken_.wait_until(lock, when);
    }
  }
}

void Models::load(Hosted* hosted) {
  hosted->state = Hosted::State::Loading;
  std::string failure;
  const auto loaded = [this] {
    return std::count_if(hosted_.begin(), hosted_.end(),
                         [](const auto& each) { return each->state == Hosted::State::Loaded; });
  };
  while (options_.most_models > 0 && loaded() >= options_.most_models && make_room()) {
  }
  for (bool again = true; again;) {
    again = false;
    try {
      if (const Loss loss = this->loss(); !loss.failure.empty()) throw std::runtime_error(loss.failure);
      open(hosted, loaded() == 0);
    } catch (const DeviceLost& error) {
      forget(hosted);
      note_loss(error.what());
      failure = error.what();
    } catch (const NoRoom& error) {
      forget(hosted);
      failure = error.what();
      again = make_room();
      if (again) failure.clear();
    } catch (const std::exception& error) {
      forget(hosted);
      failure = error.what();
    }
  }
  settle(hosted, failure);
}

// Loading has ended; "": well.
void Models::settle(Hosted* hosted, const std::string& failure) {
  std::vector<std::function<void()>> waiting;
  {
    const std::lock_guard lock(mutex_);
    hosted->wanted = false;
    hosted->failure = failure;
    hosted->used = Hosted::Clock::now();
    hosted->state = failure.empty() ? Hosted::State::Loaded : Hosted::State::Failed;
    waiting.swap(hosted->waiting);
  }
  if (options_.say) options_.say(failure.empty() ? "loaded " + hosted->name : hosted->name + ": " + failure);
  for (const std::function<void()>& each : waiting) each();
}

void Models::note_end(Hosted* hosted, const Ended& ended) {
  note_use(hosted);
  if (ended.status == GRETA_ERROR_DEVICE) return note_loss(ended.error);
  const std::lock_guard lock(mutex_);
  answered_ = answered_ || ended.status == GRETA_OK;
}

void Models::note_loss(const std::string& words) {
  const std::lock_guard lock(mutex_);
  if (lost_) return;
  lost_ = true;
  ++loss_.count;
  loss_.words = words;
  loss_.opening = true;  // the client that hears of the loss may ask for /health at once
  woken_.notify_all();
}

// The device was lost: opens it once again, and what was loaded on it. If it is lost again before a request
// has ended well, that is all that is tried.
void Models::reopen() {
  std::vector<Hosted*> loaded;
  Loss loss;
  bool again = false;
  {
    const std::lock_guard lock(mutex_);
    again = std::exchange(answered_, false);
    for (const auto& hosted : hosted_) {
      if (hosted->state != Hosted::State::Loaded) continue;
      hosted->state = Hosted::State::Loading;  // Nobody takes it any more.
      hosted->stage = "opening the device again";
      hosted->done = 0;
      loaded.push_back(hosted.get());
    }
    loss = loss_;
  }
  if (options_.say) options_.say("the device was lost: " + loss.words);
  for (Hosted* hosted : loaded) hosted->jobs->cancel_all();
  for (Hosted* hosted : loaded) {
    for (;; std::this_thread::sleep_for(kLook)) {
      const std::lock_guard lock(mutex_);
      if (idle(hosted)) break;
    }
    forget(hosted);
  }
  std::string failure = again ? "" : "the device was lost again: " + loss.words;
  if (again) try {
      loaded_.runtime = nullptr;
      loaded_ = load_();
    } catch (const std::exception& error) {
      failure = std::string("the device was lost, and cannot be opened again: ") + error.what();
    }
  {
    const std::lock_guard lock(mutex_);
    lost_ = false;
    loss_.failure = failure;
  }
  for (Hosted* hosted : loaded) {
    if (failure.empty())
      load(hosted);
    else
      settle(hosted, failure);
  }
  const std::lock_guard lock(mutex_);
  loss_.opening = false;
}

// Unloads the model that was used least recently. Where all answer, it waits for the first that does not.
bool Models::make_room() {
  for (;;) {
    Hosted* oldest = nullptr;
    bool any = false, leaves = false;
    {
      const std::lock_guard lock(mutex_);
      if (closing_) return false;
      for (const auto& hosted : hosted_) {
        if (hosted->state != Hosted::State::Loaded) continue;
        any = true;
        const bool answers = hosted->jobs->active() > 0;
        if (!answers && (!oldest || hosted->used < oldest->used)) oldest = hosted.get();
      }
      // A call that begins or has just been answered may hold it for a moment.
      leaves = oldest && idle(oldest);
    }
    if (!any) return false;
    if (leaves) {
      unload(oldest, Hosted::State::Unloaded);
      return true;
    }
    std::this_thread::sleep_for(kLook);
  }
}

void Models::unload(Hosted* hosted, Hosted::State state) {
  const auto until = Hosted::Clock::now() + hosted->patience;
  {
    const std::lock_guard lock(mutex_);
    if (state == Hosted::State::Sleeping) hosted->props = props_json(hosted->model, *hosted->options);
    hosted->state = state;  // Nobody takes it any more.
    hosted->unwanted = false;
  }
  for (bool cancelled = false;; std::this_thread::sleep_for(kLook)) {
    {
      const std::lock_guard lock(mutex_);
      if (idle(hosted)) break;
    }
    if (cancelled || Hosted::Clock::now() < until) continue;
    cancelled = true;
    hosted->jobs->cancel_all();
  }
  forget(hosted);
  if (options_.say) options_.say("unloaded " + hosted->name);
}

void Models::forget(Hosted* hosted) {
  hosted->jobs.reset();
  greta_service_close(hosted->model.service);
  hosted->model.defaults.adapters.reset();
  greta_executor_close(hosted->model.second_executor);
  greta_model_close(hosted->model.second);
  greta_model_close(hosted->model.model);
  hosted->model = Model{};
}

void Models::open(Hosted* hosted, bool may_shrink) {
  Model& model = hosted->model;
  auto source = sized<greta_source>();
  source.path = hosted->path.c_str();
  source.map = hosted->engine->map ? 1 : 0;
  auto open = sized<greta_model_options>();
  open.source = &source;
  open.progress_user = hosted;
  open.progress = [](void* user, uint64_t done, uint64_t total) {
    auto* to = static_cast<Hosted*>(user);
    to->done = done, to->total = total;
    return to->cancelled ? 1 : 0;
  };
  const Engine& engine = *hosted->engine;
  if (engine.placement.struct_size) open.placement = &engine.placement;
  if (!engine.whole_context) open.executor = &engine.executor;
  open.draft_head = hosted->options->draft_kind == GRETA_DRAFT_HEAD ? 1 : 0;
  hosted->stage = "loading weights";
  if (engine.prepare) engine.prepare(loaded_.runtime, hosted->path);
  const greta_status status = greta_model_open(loaded_.runtime, &open, &model.model);
  if (status != GRETA_OK) cannot_open(status, may_shrink);
  model.info = sized<greta_model_info>();
  greta_model_describe(model.model, &model.info);
  model.tokenizer = greta_model_tokenizer(model.model);
  model.path = hosted->path;
  model.name = hosted->name;
  model.created_s =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  model.defaults = default_ask(*hosted->options, model.model, model.tokenizer);
  if (!options_.adapters.empty()) model.defaults.adapters = open_adapters(model.model, options_.adapters);
  hosted->stage = "compiling kernels";
  hosted->done = 0;
  hosted->jobs = std::make_unique<Jobs>(
      [this, hosted](const Ended& ended) { note_end(hosted, ended), on_end_(*hosted, ended); },
      [hosted](uint64_t ns) { hosted->metrics.gap(ns); });
  open_service(hosted, may_shrink);
  if (hosted->options->draft_kind == GRETA_DRAFT_MODEL) open_second(hosted);
  hosted->jobs->open(model.service, hosted->options->parallel);
}

// The model that guesses tokens has room for the texts of all requests. A request that does nothing says
// whether it can guess for the first one.
void Models::open_second(Hosted* hosted) {
  Model& model = hosted->model;
  auto source = sized<greta_source>();
  source.path = hosted->options->draft_model.c_str();
  source.map = hosted->engine->map ? 1 : 0;
  auto open = sized<greta_model_options>();
  open.source = &source;
  if (hosted->engine->placement.struct_size) open.placement = &hosted->engine->placement;
  greta_executor_options executor = hosted->engine->executor;
  executor.sequences = hosted->options->parallel;
  executor.context = model.context;
  executor.cache_tokens = 0;
  hosted->stage = "loading the second model";
  if (greta_model_open(loaded_.runtime, &open, &model.second) != GRETA_OK ||
      greta_executor_open(model.second, &executor, &model.second_executor) != GRETA_OK)
    throw std::runtime_error("the second model: " + std::string(greta_error_text()));
  model.defaults.draft_executor = model.second_executor;
  auto draft = sized<greta_draft_options>();
  draft.kind = GRETA_DRAFT_MODEL;
  draft.depth = 1;
  draft.executor = model.second_executor;
  auto trial = sized<greta_request_options>();
  const int32_t token = 0;
  trial.tokens = &token;
  trial.token_count = 1;
  trial.no_answer = 1;
  trial.draft = &draft;
  greta_request* request = nullptr;
  if (greta_service_add(model.service, &trial, &request) != GRETA_OK)
    throw std::runtime_error(greta_error_text());
  greta_request_close(request);
}

// The cache has room for all requests at their full length, or for as much of it as fits into memory.
void Models::open_service(Hosted* hosted, bool may_shrink) {
  Model& model = hosted->model;
  const Options& options = *hosted->options;
  greta_executor_options executor = hosted->engine->executor;
  executor.sequences = options.parallel;
  if (hosted->engine->whole_context) executor.context = model.info.context;
  executor.compile_ahead = 1;
  executor.progress_user = hosted;
  executor.progress = [](void* user, uint64_t done, uint64_t total) {
    auto* to = static_cast<Hosted*>(user);
    to->done = done, to->total = total;
    return to->cancelled ? 1 : 0;
  };
  auto open = sized<greta_service_options>();
  open.own_thread = 1;
  open.executor = &executor;
  open.max_requests = options.queue > 0 ? options.queue : options.parallel * 5;
  open.salt_requests = open.max_requests;
  open.host_cache_bytes = options.host_cache_bytes;
  if (!options.page_folder.empty()) open.page_folder = options.page_folder.c_str();
  hosted->jobs->listen(&open);
  const uint32_t context = executor.context > 0 ? executor.context : std::min(8192U, model.info.context);
  const bool chosen = executor.cache_tokens > 0;
  uint64_t cache = chosen ? executor.cache_tokens : uint64_t{context} * options.parallel;
  for (;; cache /= 2) {
    executor.context = context;
    executor.cache_tokens = static_cast<uint32_t>(std::min<uint64_t>(cache, INT32_MAX));
    const greta_status status = greta_service_open(model.model, &open, &model.service);
    if (status == GRETA_OK) break;
    const bool smaller =
        may_shrink && !chosen && status == GRETA_ERROR_MEMORY && cache / 2 >= context && !hosted->cancelled;
    if (!smaller) cannot_open(status, may_shrink);
  }
  model.context = context;
  model.cache_tokens = executor.cache_tokens;
}

}  // namespace greta::serve
