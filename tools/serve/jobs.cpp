#include "jobs.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace greta::serve {
namespace {

constexpr std::chrono::milliseconds kRetry{5};  // how often a place is looked for

uint64_t nanoseconds(std::chrono::steady_clock::duration time) {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
}

}  // namespace

Refused refusal_of(greta_status status) {
  struct Row {
    greta_status status;
    int http;
    const char* type;
  };
  constexpr Row kRows[] = {
      {GRETA_ERROR_ARGUMENT, 400, "invalid_request_error"},
      {GRETA_ERROR_UNSUPPORTED, 400, "not_supported_error"},
      {GRETA_ERROR_FULL, 400, "exceed_context_size_error"},
      {GRETA_ERROR_BUSY, 429, "rate_limit_error"},
      {GRETA_ERROR_DEVICE, 503, "unavailable_error"},
      {GRETA_ERROR_MEMORY, 503, "unavailable_error"},
      {GRETA_ERROR_CANCELLED, 503, "unavailable_error"},
  };
  Refused refused(500, greta_error_text());
  uint64_t length = 0, limit = 0;
  greta_error_numbers(&length, &limit);
  refused.type = "server_error";
  for (const Row& row : kRows) {
    if (row.status != status) continue;
    refused.status = row.http;
    refused.type = row.type;
  }
  if (status == GRETA_ERROR_BUSY || status == GRETA_ERROR_DEVICE) refused.retry_s = 1;
  if (status == GRETA_ERROR_FULL && limit > 0) refused.more = {{"n_prompt_tokens", length}, {"n_ctx", limit}};
  return refused;
}

Jobs::Jobs(std::function<void(const Ended&)> on_end, std::function<void(uint64_t)> on_gap)
    : on_end_(std::move(on_end)), on_gap_(std::move(on_gap)) {}

Jobs::~Jobs() { close(); }

void Jobs::listen(greta_service_options* options) {
  options->on_ready_user = this;
  options->on_ready = [](void* user, void* request_user) {
    static_cast<Jobs*>(user)->note_ready(static_cast<Running*>(request_user));
  };
}

// Called by the service, also for requests that start() has not taken up yet: it looks at them itself. Those
// of slots.cpp are no jobs, and null.
void Jobs::note_ready(Running* running) {
  if (!running) return;
  {
    const std::lock_guard lock(mutex_);
    if (!running->taken || running->noted) return;
    note(running);
  }
  woken_.notify_all();
}

// Under the mutex, as the next one.
void Jobs::take_up(Running* running) {
  running->taken = true;
  all_.insert(running);
  note(running);
}

void Jobs::note(Running* running) {
  if (!std::exchange(running->noted, true)) ready_.push_back(running);
}

void Jobs::open(greta_service* service, uint32_t together) {
  service_ = service;
  together_ = std::max(together, 1U);
  places_.resize(together_);
  thread_ = std::thread([this] { run(); });
}

void Jobs::close() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = cancel_all_ = true;
  }
  woken_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Jobs::cancel_all() {
  {
    const std::lock_guard lock(mutex_);
    cancel_all_ = true;
  }
  woken_.notify_all();
}

void Jobs::Job::gone() {
  left = true;
  {
    const std::lock_guard lock(jobs->mutex_);
    jobs->cancelled_.push_back(shared_from_this());
  }
  jobs->woken_.notify_all();
}

void Jobs::Job::drained() {
  {
    const std::lock_guard lock(jobs->mutex_);
    jobs->drained_.push_back(shared_from_this());
  }
  jobs->woken_.notify_all();
}

greta_status Jobs::add(const std::shared_ptr<Job>& job) {
  auto running = std::make_unique<Running>();
  running->job = job;
  running->index = static_cast<uint32_t>(job->next);
  running->began = running->last = Clock::now();
  const JobItem& item = job->items[job->next];
  const greta_status status = add_request(service_, *item.ask, item.seed, running.get(), &running->request);
  if (status != GRETA_OK) return status;
  job->sink->slot = running->slot = take_slot(*item.ask);
  ++job->next;
  job->running.push_back(running.release());
  return GRETA_OK;
}

void Jobs::start(const std::string& id, const Trace& trace, std::shared_ptr<Reply> reply,
                 std::unique_ptr<Sink> sink, std::vector<JobItem> items) {
  auto job = std::make_shared<Job>();
  job->jobs = this;
  job->id = id;
  job->trace = trace;
  job->reply = std::move(reply);
  job->sink = std::move(sink);
  job->items = std::move(items);
  while (job->next < job->items.size() && job->running.size() < together_) {
    const greta_status status = add(job);
    if (status == GRETA_OK) continue;
    const Refused refused = refusal_of(status);
    if (status == GRETA_ERROR_BUSY && job->next > 0) break;  // the others come when there is a place
    for (Running* each : job->running) {
      leave_slot(*each, false);
      greta_request_close(each->request);
      delete each;
    }
    throw refused;
  }
  job->sink->begin(*job->reply);
  ++active_;
  {
    const std::lock_guard lock(mutex_);
    for (Running* each : job->running) take_up(each);
    if (job->next < job->items.size()) {
      job->starved = true;
      starved_.push_back(job);
    }
  }
  woken_.notify_all();
  job->reply->watch(job);
}

// The slot that the request asks for, else the idle one that was taken least recently.
int Jobs::take_slot(const Ask& ask) {
  if (ask.embed) return -1;
  const std::lock_guard lock(mutex_);
  size_t best = ask.slot >= 0 ? static_cast<size_t>(ask.slot) : 0;
  const auto rank = [this](size_t i) { return std::pair(places_[i].users, places_[i].used); };
  for (size_t i = 1; ask.slot < 0 && i < places_.size(); ++i)
    if (rank(i) < rank(best)) best = i;
  ++places_[best].users;
  places_[best].used = ++taken_;
  return static_cast<int>(best);
}

void Jobs::leave_slot(const Running& running, bool ended_well) {
  if (running.slot < 0) return;
  const int32_t* tokens = nullptr;
  size_t count = 0;
  const bool told =
      ended_well && greta_request_tokens(running.request, &tokens, &count) == GRETA_OK && count > 0;
  const std::lock_guard lock(mutex_);
  Place& place = places_[static_cast<size_t>(running.slot)];
  --place.users;
  if (told) place.text = {{tokens, tokens + count}, running.job->items[running.index].ask->salt};
}

// Where the prompt departs from the text of a slot, of which it has the first page at least. That is the text
// with which it shares most. It is 0 if it goes on with all of that text.
uint32_t Jobs::departure(const Running& running, uint32_t prompt_tokens) {
  const int32_t* tokens = nullptr;
  size_t count = 0;
  if (running.slot < 0 || greta_request_tokens(running.request, &tokens, &count) != GRETA_OK) return 0;
  const int32_t* const end = tokens + std::min<size_t>(count, prompt_tokens);
  const uint64_t salt = running.job->items[running.index].ask->salt;
  size_t most = kPage - 1;
  bool departs = false;
  const std::lock_guard lock(mutex_);
  for (const Place& place : places_) {
    if (place.text.salt != salt) continue;
    const std::vector<int32_t>& text = place.text.tokens;
    const auto [ours, theirs] = std::mismatch(tokens, end, text.begin(), text.end());
    const auto same = static_cast<size_t>(ours - tokens);
    if (same <= most) continue;
    most = same;
    departs = ours != end && theirs != text.end();
  }
  return departs ? static_cast<uint32_t>(most) : 0;
}

SlotText Jobs::slot_text(uint32_t number) {
  const std::lock_guard lock(mutex_);
  return places_[number].text;
}

void Jobs::set_slot_text(uint32_t number, SlotText text) {
  const std::lock_guard lock(mutex_);
  places_[number].text = std::move(text);
}

std::vector<Slot> Jobs::slots() {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<Running*, Slot>> found;
  std::vector<bool> taken(all_.size() + places_.size());
  for (Running* each : all_) {
    Slot slot;
    slot.info = sized<greta_request_info>();
    const bool runs = greta_request_describe(each->request, &slot.info) == GRETA_OK &&
                      slot.info.state != GRETA_REQUEST_WAITING && slot.info.state != GRETA_REQUEST_ENDED;
    if (!runs) continue;
    slot.id = each->job->id;
    slot.max_tokens = each->job->items[each->index].ask->max_tokens;
    if (each->shown >= 0 && static_cast<size_t>(each->shown) < taken.size()) taken[each->shown] = true;
    found.emplace_back(each, std::move(slot));
  }
  std::vector<Slot> slots;
  for (auto& [running, slot] : found) {
    if (running->shown < 0) {
      const bool own = running->slot >= 0 && !taken[static_cast<size_t>(running->slot)];
      const auto place = own ? taken.begin() + running->slot : std::find(taken.begin(), taken.end(), false);
      running->shown = static_cast<int>(place - taken.begin());
      *place = true;
    }
    slot.number = static_cast<uint32_t>(running->shown);
    slots.push_back(std::move(slot));
  }
  return slots;
}

void Jobs::run() {
  std::vector<Running*> ready;
  std::vector<std::shared_ptr<Job>> cancelled, drained, starved;
  for (;;) {
    bool everything = false;
    {
      std::unique_lock lock(mutex_);
      const auto due = [this] {
        return closing_ || cancel_all_ || !ready_.empty() || !cancelled_.empty() || !drained_.empty();
      };
      if (starved_.empty())
        woken_.wait(lock, [&] { return due() || !starved_.empty(); });
      else
        woken_.wait_for(lock, kRetry, due);
      cancelled.swap(cancelled_);
      drained.swap(drained_);
      starved.swap(starved_);
      everything = std::exchange(cancel_all_, false);
      if (closing_ && all_.empty() && starved.empty()) return;
      if (closing_) woken_.wait_for(lock, kRetry);  // until those that are cancelled have ended
      if (everything || closing_)
        for (Running* each : all_) note(each);
      for (const auto& job : drained)
        for (Running* each : job->running) note(each);
      ready.swap(ready_);
      for (Running* each : ready) each->noted = false;
    }
    if (everything)
      for (Running* each : ready) cancel(each->job.get());
    if (everything)
      for (const auto& job : starved) cancel(job.get());
    for (const auto& job : cancelled) cancel(job.get());
    for (Running* each : ready) {
      while (read(each)) {
      }
    }
    for (const auto& job : starved) {
      job->starved = false;
      refill(job);
    }
    ready.clear(), cancelled.clear(), drained.clear(), starved.clear();
  }
}

void Jobs::cancel(Job* job) {
  job->next = job->items.size();
  for (Running* each : job->running) greta_request_cancel(each->request);
}

// Reads one event; false if there is none more for now.
bool Jobs::read(Running* running) {
  Job& job = *running->job;
  if (job.reply->full() && !job.left) return false;
  auto event = sized<greta_request_event>();
  if (greta_request_next(running->request, 0, &event) != GRETA_OK) event.kind = GRETA_EVENT_END;
  if (event.kind == GRETA_EVENT_END) {
    finish(running);
    return false;
  }
  if (event.kind == GRETA_EVENT_NONE) return false;
  constexpr greta_event_kind kOfAnswer[] = {GRETA_EVENT_TEXT, GRETA_EVENT_REASONING, GRETA_EVENT_CALL_START,
                                            GRETA_EVENT_CALL_PIECE};
  if (event.token >= 0 && std::ranges::find(kOfAnswer, event.kind) != std::end(kOfAnswer)) {
    const auto now = Clock::now();
    if (running->first_ns == 0)
      running->first_ns = nanoseconds(now - running->began);
    else
      on_gap_(nanoseconds(now - running->last));
    running->last = now;
  }
  if (!job.over && !job.left) job.sink->event(running->index, event);
  if (event.unread > 0) return true;
  if (!job.sink->out.empty()) job.reply->write(std::exchange(job.sink->out, {}));
  return false;
}

void Jobs::finish(Running* running) {
  const std::shared_ptr<Job> job = running->job;
  Ended ended;
  ended.id = job->id;
  ended.trace = job->trace;
  ended.result = sized<greta_request_result>();
  ended.status = greta_request_finish(running->request, &ended.result);
  const Refused error = refusal_of(ended.status);
  ended.error = error.message;
  ended.first_token_ns = running->first_ns;
  ended.whole_ns = nanoseconds(Clock::now() - running->began);
  {
    const std::lock_guard lock(mutex_);
    all_.erase(running);
    running->taken = false;
    if (running->noted) std::erase(ready_, running);
  }
  const bool whole = ended.status == GRETA_OK && ended.result.forgotten_tokens == 0;
  if (whole) ended.differs_at = departure(*running, ended.result.prompt_tokens);
  leave_slot(*running, ended.status == GRETA_OK);
  greta_request_close(running->request);
  on_end_(ended);
  std::erase(job->running, running);
  const uint32_t index = running->index;
  delete running;
  if (!job->over && ended.status != GRETA_OK) {
    fail(job.get(), error);
  } else if (!job->over && !job->left) {
    job->sink->differs_at = ended.differs_at;
    job->sink->ended(index, ended.result);
  }
  refill(job);
}

void Jobs::fail(Job* job, const Refused& error) {
  job->over = true;
  cancel(job);
  if (!job->sink->out.empty()) job->reply->write(std::move(job->sink->out));
  job->sink->out.clear();
  if (!job->left) job->sink->failed(*job->reply, error);
}

// Adds what waited for a place, or ends the job where nothing is left of it.
void Jobs::refill(const std::shared_ptr<Job>& job) {
  while (job->next < job->items.size() && job->running.size() < together_) {
    const size_t before = job->running.size();
    const greta_status status = add(job);
    if (status == GRETA_ERROR_BUSY) {
      if (job->starved) return;
      job->starved = true;
      const std::lock_guard lock(mutex_);
      starved_.push_back(job);
      return;
    }
    if (status != GRETA_OK) {
      fail(job.get(), refusal_of(status));
      break;
    }
    const std::lock_guard lock(mutex_);
    take_up(job->running[before]);
  }
  if (!job->running.empty() || job->next < job->items.size() || job->finished) return;
  job->finished = true;
  --active_;  // Before the client knows: where it asks for another model, this one is idle.
  if (!job->over && !job->left) {
    if (!job->sink->out.empty()) job->reply->write(std::move(job->sink->out));
    job->sink->out.clear();
    job->sink->done(*job->reply);
  }
  job->over = true;
  job->reply->watch(nullptr);
  job->reply->hold(nullptr);
}

}  // namespace greta::serve
