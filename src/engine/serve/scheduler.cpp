#include "engine/serve/scheduler.h"

#include <algorithm>

namespace greta {

namespace {

constexpr uint32_t kLeastPromptRows =
    16;  // beside answers, so that a prompt comes to its end on slow devices

uint32_t pages_for(size_t tokens) { return uint32_t(divide_up(tokens, kPageTokens)); }

}  // namespace

Scheduler::Scheduler(Executor& executor, const SchedulerOptions& options)
    : executor_(executor),
      options_(options),
      cache_(executor, {options.prefix_cache, options.host_cache_bytes, options.folder}),
      steps_(executor, *this, Steps::Thrown::EndsText, executor.options().sequences, options.now),
      waiting_(options.requests) {
  live_.reserve(options.requests);
  paused_.reserve(options.requests);
  for (std::vector<Request*>* list : {&running_, &order_}) list->reserve(executor.options().sequences);
}

Scheduler::~Scheduler() { end_all(); }

SchedulerCounts Scheduler::counts() const {
  SchedulerCounts counts = counts_;
  counts.brought_back = cache_.brought_back();
  return counts;
}

void Scheduler::ran(uint32_t rows, uint64_t ns) {
  clock_.note(rows, ns);
  ++counts_.steps;
  counts_.step_ns += ns;
  counts_.rows += rows;
}

void Scheduler::add(std::shared_ptr<Request> request) {
  waiting_.add(request.get());
  live_.push_back(std::move(request));
}

bool Scheduler::step() {
  const uint64_t begun = now_ns(), waited = executor_.waited_ns();
  const bool worked = do_step();
  if (worked) counts_.host_ns += now_ns() - begun - (executor_.waited_ns() - waited);
  return worked;
}

bool Scheduler::do_step() {
  end_cancelled();
  resume_read();
  admit();
  steps_.begin();
  steps_.guess_together(running_);
  plan_decodes();
  plan_prompts();
  bool worked = !steps_.parts().empty();
  steps_.run();
  if (!worked) worked = steps_.collect();
  for (Request* request : running_)
    if (request->options().use_cache) cache_.keep(request->in_cache());
  for (Request* request : running_) request->note_progress();
  waiting_.number();
  worked |= std::erase_if(live_, [](const auto& request) { return !request->goes_on(); }) > 0;
  return worked;
}

// ---- who runs -----------------------------------------------------------------------------------

void Scheduler::end_cancelled() {
  for (const std::shared_ptr<Request>& request : live_)
    if (request->ends_soon() && request->goes_on()) end(*request, request->ends_for());
}

// Requests that were set back because nobody read their events wait again once somebody does.
void Scheduler::resume_read() {
  std::erase_if(paused_, [&](Request* request) {
    if (!request->half_read()) return false;
    request->wait();
    waiting_.put_back(request);
    return true;
  });
}

void Scheduler::admit() {
  while (Request* request = waiting_.front()) {
    if (pages_for(request->tokens().size()) > executor_.plan().pages) {
      end(*request, StopReason::Context);  // it has filled the whole pool
      continue;
    }
    if (!fits(*request)) {
      if (!pause_stalled()) return;
      continue;
    }
    waiting_.admit_front();
    const Status status = start(*request);
    if (!status.ok())
      fail(*request, status);
    else if (is_known(*request))
      end(*request, StopReason::Length);
  }
}

// There are a sequence and pages for it, and beside them a page for each request that runs.
bool Scheduler::fits(const Request& request) const {
  if (running_.size() == executor_.options().sequences) return false;
  const std::span<const int32_t> tokens = request.tokens();
  uint32_t wanted = std::min(executor_.plan().pages, pages_for(tokens.size() + 1));
  if (request.adopts()) wanted -= cache_.pages_in_use(request.options().cache_salt(), tokens, wanted);
  return wanted + running_.size() <= executor_.pages().free_pages() + index().idle_pages();
}

// Sets a request back whose events nobody reads. Returns false if there is none.
bool Scheduler::pause_stalled() {
  for (size_t i = running_.size(); i-- > 0;)
    if (running_[i]->stalled()) {
      set_back(*running_[i], Request::Phase::Paused);
      return true;
    }
  return false;
}

Status Scheduler::start(Request& request) {
  if (!request.admission()) request.admit(++admissions_);
  GRETA_TRY(guarded([&] { return request.reserve(); }));
  uint32_t sequence = 0;
  GRETA_TRY(executor_.acquire_sequence(&sequence));
  const Status set = guarded([&] { return executor_.set_adapters(sequence, request.options().adapters); });
  if (!set.ok()) return executor_.release_sequence(sequence), set;
  request.enter(sequence);
  executor_.set_sampling(sequence, device_sampling(request.options().sampling));
  if (request.options().state) GRETA_TRY(guarded([&] { return load(request); }));
  const auto older = [](const Request* a, const Request* b) { return a->admission() < b->admission(); };
  running_.insert(std::upper_bound(running_.begin(), running_.end(), &request, older), &request);
  return {};
}

// Takes the keys and values of its saved state. Where there are no pages for them, its text is read anew. The
// last token is computed, for its logits, unless nobody wants them.
Status Scheduler::load(Request& request) {
  const SavedState& state = *request.options().state;
  while (executor_.pages().free_pages() < pages_for(state.tokens.size()))
    if (!cache_.give_up_page()) return {};
  GRETA_TRY(load_state(state, executor_, request.sequence()));
  const size_t most = request.tokens().size() - !is_known(request);
  const size_t tokens = std::min(state.tokens.size(), most);
  request.skip_cached(executor_.truncate(request.sequence(), uint32_t(tokens)));
  // Behind the saved tokens there is a state only until the next step.
  if (executor_.states() && request.options().share_state) cache_.keep(request.in_cache());
  return {};
}

// Its saved state is that behind all of its text, which shall go to the cache.
bool Scheduler::is_known(const Request& request) const {
  const RequestOptions& options = request.options();
  return executor_.states() && options.share_state && options.no_answer &&
         options.state->tokens.size() == options.tokens.size();
}

// Copies the state of a request that has ended, if its owner wants it.
void Scheduler::keep_state(Request& request) {
  const Status status = guarded([&]() -> Status {
    const size_t fed = std::min<size_t>(request.sent(), request.tokens().size());
    SavedState state;
    GRETA_TRY(save_state(executor_, request.sequence(), request.tokens().first(fed),
                         identity_of(request.options().adapters), &state));
    return request.keep_state(std::move(state)), Status{};
  });
  if (!status.ok()) request.keep_state_failure(status);
}

// Gives up its pages and its sequence. What it has computed stays in the prefix cache for a while.
void Scheduler::leave(Request& request, Request::Phase phase) {
  if (request.ended_well() && request.options().keep_state) keep_state(request);
  const bool kept = request.goes_on() || request.ended_well();
  if (kept && request.sequence() != ~0u && request.options().use_cache) cache_.keep(request.in_cache());
  const auto same = [&](const Request* other) { return other == &request; };
  waiting_.remove_if(same);
  std::erase_if(paused_, same);
  std::erase_if(running_, same);
  steps_.forget(request);
  cache_.leave(request.in_cache().path);
  const uint32_t sequence = request.leave(phase);
  if (sequence != ~0u) executor_.release_sequence(sequence);
  if (request.goes_on()) return;
  counts_.note_end(request);
  request.announce();
}

void Scheduler::set_back(Request& request, Request::Phase phase) {
  steps_.collect();  // it may be drawing
  if (!request.goes_on()) return;
  leave(request, phase);
  ++counts_.set_back;
  if (phase == Request::Phase::Paused)
    paused_.push_back(&request);
  else
    waiting_.put_back(&request);
}

void Scheduler::end_all() {
  steps_.collect();
  for (const std::shared_ptr<Request>& request : live_)
    if (request->goes_on()) end(*request, StopReason::Cancelled);
  live_.clear();
}

// ---- what a step computes -------------------------------------------------------------------------

static bool generates(const Request* request) {
  return request->phase() == Request::Phase::Running && !request->reading();
}

// How many requests may generate in one step. On several GPUs they are two groups that take turns: while the
// last device computes the step of one, the devices before it compute that of the other. Requests whose
// results the host needs before it goes on do not.
size_t Scheduler::most_decodes() {
  const size_t all = size_t(std::ranges::count_if(running_, generates));
  const auto is_waited_for = [](const Request* request) {
    return !request->on_device() || request->guessing();
  };
  const bool turns = (executor_.gains_by_turns() || (options_.turns && executor_.overlaps_prompts())) &&
                     all > 1 && std::ranges::none_of(running_, is_waited_for);
  steps_.set_turns(turns);
  return turns ? size_t(divide_up(all, 2)) : all;
}

void Scheduler::plan_decodes() {
  const size_t most = most_decodes();
  order_.assign(running_.begin(), running_.end());
  if (first_ >= order_.size()) first_ = 0;
  std::rotate(order_.begin(), order_.begin() + first_, order_.end());
  for (Request* request : order_)
    if (generates(request) && steps_.parts().size() < most) plan_decode(*request);
}

void Scheduler::plan_decode(Request& request) {
  if (!request.ready(steps_.ahead())) return;
  if (!steps_.has_room(request)) {
    ++first_;  // the next step begins with another
    return;
  }
  if (!request.stalled()) plan(request, steps_.room(running_.size()));
}

// How many rows of prompts the step may have beside the rows that are planned.
uint32_t Scheduler::prompt_rows() {
  const uint32_t all = executor_.plan().pass_tokens, room = steps_.room(0).rows;
  if (room == all) return room;
  if (options_.chunk_tokens) return std::min(room, options_.chunk_tokens);
  const uint32_t rows = clock_.rows_within(options_.step_ns, all), planned = all - room;
  return std::min(room, std::max(kLeastPromptRows, rows - std::min(rows, planned)));
}

void Scheduler::plan_prompts() {
  uint32_t rows = prompt_rows();
  order_.assign(running_.begin(), running_.end());
  for (Request* request : order_)
    if (rows && request->phase() == Request::Phase::Running && request->reading())
      plan_prompt(*request, &rows);
}

void Scheduler::plan_prompt(Request& request, uint32_t* rows) {
  adopt_cached(request);
  if (computed_beside(request) || (request.scores() && request.stalled())) return;
  Writing::Room room = steps_.room(running_.size());
  room.rows = std::min(room.rows, *rows);
  if (request.options().use_cache) room.rows = cache_.piece(request.in_cache(), room.rows);
  *rows -= plan(request, room);
}

// Adds the rows of a request for which there are pages. Gives their number.
uint32_t Scheduler::plan(Request& request, Writing::Room room) {
  Writing::Part part = request.part(executor_, room);
  if (part.guesses &&
      !guarded([&] { return executor_.reserve(request.sequence(), part.begin, part.end()); }).ok()) {
    room.guesses = 0;  // they are not worth the pages of others
    part = request.part(executor_, room);
  }
  if (part.count == 0 || !reserve(request, part.end())) return 0;
  steps_.add(part);
  return part.count;
}

// Takes pages that the cache has for what comes next.
void Scheduler::adopt_cached(Request& request) {
  cache_.follow(request.in_cache());
  while (request.adopts()) {
    const uint32_t tokens = cache_.adopt(request.in_cache());
    if (!tokens) return;
    request.skip_cached(tokens);
    executor_.skip_head(request.sequence(), request.sent());
    counts_.cached_tokens += tokens;
  }
}

// Another request computes in this step what this one needs next; it takes that page when it is done.
bool Scheduler::computed_beside(Request& request) const {
  if (!request.adopts()) return false;
  return std::ranges::any_of(steps_.parts(), [&](const Writing::Part& part) {
    if (!part.writing) return false;
    auto& other = static_cast<Request&>(*part.writing);
    return other.options().use_cache && cache_.computes(other.in_cache(), request.in_cache());
  });
}

// Gives the request pages up to `end`. Returns false if it has none; then it waits or has ended.
bool Scheduler::reserve(Request& request, uint32_t end_position) {
  for (;;) {
    const Status status =
        guarded([&] { return executor_.reserve(request.sequence(), request.sent(), end_position); });
    if (status.ok()) return true;
    if (status.code != Code::Full) return fail(request, status), false;
    if (cache_.give_up_page()) continue;
    if (steps_.collect()) {
      if (request.phase() != Request::Phase::Running) return false;
      continue;
    }
    if (running_.size() == 1) return end(request, StopReason::Context), false;
    Request& victim = *running_.back();
    set_back(victim, Request::Phase::Waiting);
    if (&victim == &request) return false;
  }
}

}  // namespace greta
