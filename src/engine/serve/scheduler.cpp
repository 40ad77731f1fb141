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
      step_tokens_(executor.plan().step_tokens),
      max_outputs_(executor.max_outputs(executor.plan().step_tokens)),
      max_hidden_(executor.max_hidden(executor.plan().step_tokens)),
      ahead_(executor.model().device->info().runs_ahead),
      host_pages_(executor, options.prefix_cache ? options.host_cache_bytes : 0),
      folder_(executor, options.prefix_cache ? options.folder : PageFolderOptions{}),
      index_(executor.pages(), executor.plan().pages, host()),
      waiting_(options.requests) {
  const uint32_t sequences = executor.options().sequences;
  live_.reserve(options.requests);
  paused_.reserve(options.requests);
  for (std::vector<Request*>* list : {&running_, &order_}) list->reserve(sequences);
  for (std::vector<Part>* list : {&plan_, &batch_, &under_way_.parts, &next_.parts}) list->reserve(sequences);
  rows_.reserve(step_tokens_);
}

// Pages are lost in the order in which the folder would give them up, so only the last ones are stored.
Scheduler::~Scheduler() {
  end_all();
  if (!folder_.there()) return;
  const uint64_t pages = index_.idle_pages() + index_.kept_pages();
  not_stored_ = pages - std::min(pages, folder_.room());
  index_.forget_all();
}

void Scheduler::add(std::shared_ptr<Request> request) {
  waiting_.add(request.get());
  live_.push_back(std::move(request));
}

bool Scheduler::step() {
  end_cancelled();
  resume_read();
  admit();
  plan_.clear();
  planned_rows_ = planned_choices_ = planned_hidden_ = 0;
  plan_decodes();
  plan_prompts();
  bool worked = !plan_.empty();
  for (const Part::Kind kind : {Part::Kind::Draws, Part::Kind::Scores, Part::Kind::Pools}) {
    batch_.clear();
    for (const Part& part : plan_)
      if (part.kind() == kind) batch_.push_back(part);
    if (!batch_.empty()) run(batch_);
  }
  if (!worked) worked = collect();
  cache_pages();
  worked |= std::erase_if(live_, [](const auto& r) { return r->phase == Request::Phase::Ended; }) > 0;
  return worked;
}

// ---- who runs -----------------------------------------------------------------------------------

void Scheduler::end_cancelled() {
  for (const std::shared_ptr<Request>& request : live_)
    if (request->ends_soon() && request->phase != Request::Phase::Ended) end(*request, request->ends_for());
}

// Requests that were set back because nobody read their events wait again once somebody does.
void Scheduler::resume_read() {
  std::erase_if(paused_, [&](Request* request) {
    if (!request->half_read()) return false;
    request->phase = Request::Phase::Waiting;
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
    if (!status.ok()) fail(*request, status);
  }
}

// There are a sequence and pages for it, and beside them a page for each request that runs.
bool Scheduler::fits(const Request& request) {
  if (running_.size() == executor_.options().sequences) return false;
  const uint32_t pages = executor_.plan().pages;
  uint32_t wanted = std::min(pages, pages_for(request.tokens().size() + 1));
  uint32_t node = PageIndex::kRoot;
  for (uint32_t i = 0; options_.prefix_cache && request.adopts() && i < wanted; ++i) {
    if (size_t(i + 1) * kPageTokens >= request.tokens().size()) break;
    node = index_.find(node, request.options().salt, request.page_tokens(i));
    if (node == PageIndex::kNone || index_.idle(node)) break;
    --wanted;
  }
  return wanted + running_.size() <= executor_.pages().free_pages() + index_.idle_pages();
}

// Sets a request back whose events nobody reads. Returns false if there is none.
bool Scheduler::pause_stalled() {
  for (size_t i = running_.size(); i-- > 0;)
    if (running_[i]->stalled()) {
      Request& request = *running_[i];
      set_back(request, Request::Phase::Paused);
      return true;
    }
  return false;
}

Status Scheduler::start(Request& request) {
  if (!request.admission) request.admitted(++admissions_);
  GRETA_TRY(guarded([&] { return request.reserve(); }));
  GRETA_TRY(executor_.acquire_sequence(&request.sequence));
  executor_.set_sampling(request.sequence, device_sampling(request.options().sampling));
  if (request.options().state) GRETA_TRY(guarded([&] { return load(request); }));
  request.phase = Request::Phase::Running;
  const auto older = [](const Request* a, const Request* b) { return a->admission < b->admission; };
  running_.insert(std::upper_bound(running_.begin(), running_.end(), &request, older), &request);
  return {};
}

// Takes the keys and values of its saved state. Where there are no pages for them, its text is read anew. The
// last token is always computed, for its logits.
Status Scheduler::load(Request& request) {
  const SavedState& state = *request.options().state;
  while (executor_.pages().free_pages() < pages_for(state.tokens.size()))
    if (!index_.give_up_page()) return {};
  GRETA_TRY(load_state(state, executor_, request.sequence));
  request.fed = uint32_t(std::min(state.tokens.size(), request.tokens().size() - 1));
  request.count_cached(request.fed);
  return {};
}

// Copies the state of a request that has ended, if its owner wants it.
void Scheduler::keep_state(Request& request) {
  const Status status = guarded([&]() -> Status {
    const size_t fed = std::min<size_t>(request.fed, request.tokens().size());
    SavedState state;
    GRETA_TRY(save_state(executor_, request.sequence, request.tokens().first(fed), &state));
    return request.keep_state(std::move(state)), Status{};
  });
  if (!status.ok()) request.keep_state_failure(status);
}

// Gives up its pages and its sequence. What it has computed stays in the prefix cache for a while.
void Scheduler::leave(Request& request) {
  if (request.ended_well() && request.options().keep_state) keep_state(request);
  if (request.ended_well() && request.sequence != ~0u) cache_pages_of(request);
  const auto same = [&](const Request* other) { return other == &request; };
  waiting_.remove_if(same);
  std::erase_if(paused_, same);
  std::erase_if(running_, same);
  std::erase_if(plan_, [&](const Part& part) { return part.request == &request; });
  index_.unpin(request.node);
  request.node = PageIndex::kRoot;
  request.node_pages = request.fed = request.looked_up = 0;
  if (request.sequence != ~0u) executor_.release_sequence(std::exchange(request.sequence, ~0u));
  if (request.phase == Request::Phase::Ended) request.announce();
}

void Scheduler::set_back(Request& request, Request::Phase phase) {
  collect();  // it may be drawing
  if (request.phase != Request::Phase::Running) return;
  cache_pages_of(request);
  leave(request);
  request.count_set_back();
  ++counts_.set_back;
  request.phase = phase;
  if (phase == Request::Phase::Paused)
    paused_.push_back(&request);
  else
    waiting_.put_back(&request);
}

void Scheduler::end(Request& request, StopReason reason) {
  const Status status = guarded([&] { return request.end(reason), Status{}; });
  if (!status.ok()) return fail(request, status);
  leave(request);
}

void Scheduler::fail(Request& request, Status status) {
  request.fail_with(status);
  leave(request);
}

void Scheduler::end_all() {
  collect();
  for (const std::shared_ptr<Request>& request : live_)
    if (request->phase != Request::Phase::Ended) end(*request, StopReason::Cancelled);
  live_.clear();
}

// ---- what a step computes -------------------------------------------------------------------------

void Scheduler::plan_decodes() {
  order_.assign(running_.begin(), running_.end());
  if (first_ >= order_.size()) first_ = 0;
  std::rotate(order_.begin(), order_.begin() + first_, order_.end());
  for (Request* request : order_)
    if (request->phase == Request::Phase::Running && request->decodes()) plan_decode(*request);
}

void Scheduler::plan_decode(Request& request) {
  const bool device = request.on_device();
  if (request.drawing && !(ahead_ && device && request.may_go_on())) return;
  if (planned_rows_ == step_tokens_ || (!device && planned_choices_ == max_outputs_)) {
    ++first_;  // the next step begins with another
    return;
  }
  if (request.stalled() || !reserve(request, request.fed + 1)) return;
  plan_.push_back({&request, request.fed, 1, true});
  ++planned_rows_;
  planned_choices_ += !device;
}

// How many rows of prompts the step may have beside the rows that are planned.
uint32_t Scheduler::prompt_rows() {
  const uint32_t room = step_tokens_ - planned_rows_;
  if (planned_rows_ == 0) return room;
  if (options_.chunk_tokens) return std::min(room, options_.chunk_tokens);
  const uint32_t rows = clock_.rows_within(options_.step_ns, step_tokens_);
  return std::min(room, std::max(kLeastPromptRows, rows - std::min(rows, planned_rows_)));
}

void Scheduler::plan_prompts() {
  uint32_t room = prompt_rows();
  order_.assign(running_.begin(), running_.end());
  for (Request* request : order_)
    if (room && request->phase == Request::Phase::Running && !request->decodes())
      plan_prompt(*request, &room);
}

void Scheduler::plan_prompt(Request& request, uint32_t* room) {
  adopt_cached(request);
  if (computed_beside(request)) return;
  if (request.pooled()) return plan_pooled(request, room);
  const uint32_t outputs = max_outputs_ - planned_choices_;
  const bool scores = request.scores();
  if (scores && request.stalled()) return;
  Part part{&request, request.fed, std::min(request.unfed(), scores ? std::min(*room, outputs) : *room),
            false, scores};
  part.draws = part.count == request.unfed();
  if (part.draws && !request.on_device() && outputs == 0) {  // its last row waits
    part.draws = false;
    --part.count;
  }
  if (part.count == 0 || !reserve(request, request.fed + part.count)) return;
  plan_.push_back(part);
  if (!request.on_device()) planned_choices_ += part.outputs();
  *room -= part.count;
}

void Scheduler::plan_pooled(Request& request, uint32_t* room) {
  Part part{&request, request.fed, std::min(request.unfed(), *room), false};
  const auto hidden = [&] { return request.pooled()->wanted(part.begin, part.count); };
  while (part.count && hidden() > max_hidden_ - planned_hidden_) --part.count;  // the others wait
  part.pooled = hidden();
  if (part.count == 0 || !reserve(request, request.fed + part.count)) return;
  plan_.push_back(part);
  planned_hidden_ += part.pooled;
  *room -= part.count;
}

// The node of the request's next page, which the cache may have.
uint32_t Scheduler::next_cached(const Request& request) const {
  return index_.find(request.node, request.options().salt, request.page_tokens(request.node_pages));
}

PageIndex::Host Scheduler::host() {
  PageIndex::Host host = {host_pages_.count()};
  host.keep = [this](uint32_t page, uint32_t slot) { return host_pages_.keep(page, slot); };
  if (folder_.there()) host.lose = [this](uint32_t node) { store(node); };
  return host;
}

// Stores the page of a node in the folder, unless it is there.
void Scheduler::store(uint32_t node) {
  if (not_stored_ && not_stored_--) return;
  const Status status = guarded([&]() -> Status {
    const uint64_t salt = index_.salt(node);
    index_.text_of(node, &text_);
    if (folder_.has(salt, text_)) return folder_.touch(salt, text_), Status{};
    uint32_t slot = index_.slot(node);
    if (slot == PageIndex::kNone) {
      slot = host_pages_.spare();
      GRETA_TRY(host_pages_.keep(index_.page(node), slot));
    }
    std::span<uint8_t> page;
    GRETA_TRY(host_pages_.bytes_of(slot, &page));
    folder_.store(salt, text_, page);
    return {};
  });
  (void)status;  // then the page is lost, and will be computed again
}

// Makes sure that there is a free page. Returns false if all are in use.
bool Scheduler::make_room() {
  while (executor_.pages().free_pages() == 0)
    if (!index_.give_up_page()) return false;
  return true;
}

// Reads the request's next page from the folder. Returns its node, kNone where there is none.
uint32_t Scheduler::read_back(Request& request) {
  if (!folder_.there() || request.looked_up > request.node_pages) return PageIndex::kNone;
  request.looked_up = request.node_pages + 1;
  uint32_t node = PageIndex::kNone;
  const Status status = guarded([&]() -> Status {
    const std::span<const int32_t> text =
        request.tokens().first(size_t(request.node_pages + 1) * kPageTokens);
    const uint64_t salt = request.options().salt;
    if (!folder_.has(salt, text) || !make_room()) return {};
    std::span<uint8_t> bytes;
    GRETA_TRY(host_pages_.bytes_of(host_pages_.spare(), &bytes));
    if (!folder_.load(salt, text, bytes)) return {};
    const uint32_t page = executor_.pages().take();
    const Status copied = host_pages_.bring_back(host_pages_.spare(), page);
    if (copied.ok()) node = index_.add(request.node, salt, text.last(kPageTokens), page);
    executor_.pages().drop(page);
    counts_.brought_back += copied.ok();
    return copied;
  });
  (void)status;  // then the page is computed
  return node;
}

// Copies the request's next page back from the host. Returns its node, kNone where there is no page for it.
uint32_t Scheduler::bring_back(const Request& request) {
  if (!make_room()) return PageIndex::kNone;
  const uint32_t node = next_cached(request);  // its slot may have gone to a page that was given up
  if (node == PageIndex::kNone) return node;
  const uint32_t page = executor_.pages().take();
  if (!host_pages_.bring_back(index_.slot(node), page).ok()) {
    executor_.pages().drop(page);
    index_.forget(node);
    return PageIndex::kNone;
  }
  index_.bring_back(node, page);
  ++counts_.brought_back;
  return node;
}

// Takes pages that the cache has for what comes next. The last token is always computed, for its logits.
void Scheduler::adopt_cached(Request& request) {
  if (!options_.prefix_cache || !request.adopts()) return;
  while (request.fed == request.node_pages * kPageTokens && request.unfed() > kPageTokens) {
    uint32_t node = next_cached(request);
    if (node == PageIndex::kNone)
      node = read_back(request);
    else if (index_.slot(node) != PageIndex::kNone)
      node = bring_back(request);
    if (node == PageIndex::kNone) return;
    executor_.pages().share(index_.page(node), request.sequence);
    index_.move_pin(request.node, node);
    request.node = node;
    ++request.node_pages;
    request.fed += kPageTokens;
    request.count_cached(kPageTokens);
    counts_.cached_tokens += kPageTokens;
  }
}

// Another request computes in this step what this one needs next; it takes that page when it is done.
bool Scheduler::computed_beside(const Request& request) const {
  if (!options_.prefix_cache || !request.adopts()) return false;
  if (request.fed != request.node_pages * kPageTokens || request.unfed() <= kPageTokens) return false;
  return std::ranges::any_of(plan_, [&](const Part& part) {
    const Request& other = *part.request;
    return other.node == request.node && other.options().use_cache &&
           other.options().salt == request.options().salt &&
           other.tokens().size() >= size_t(request.node_pages + 1) * kPageTokens &&
           std::ranges::equal(other.page_tokens(request.node_pages), request.page_tokens(request.node_pages));
  });
}

Request* Scheduler::newest() { return running_.back(); }

// Gives the request pages up to `end`. Returns false if it has none; then it waits or has ended.
bool Scheduler::reserve(Request& request, uint32_t end_position) {
  for (;;) {
    const Status status =
        guarded([&] { return executor_.reserve(request.sequence, request.fed, end_position); });
    if (status.ok()) return true;
    if (status.code != Code::Full) return fail(request, status), false;
    if (index_.give_up_page()) continue;
    if (collect()) {
      if (request.phase != Request::Phase::Running) return false;
      continue;
    }
    if (running_.size() == 1) return end(request, StopReason::Context), false;
    Request* victim = newest();
    set_back(*victim, Request::Phase::Waiting);
    if (victim == &request) return false;
  }
}

void Scheduler::cache_pages() {
  for (Request* request : running_) cache_pages_of(*request);
}

// Puts pages that are full into the prefix cache. Steps that are submitted later may read them.
void Scheduler::cache_pages_of(Request& request) {
  if (!options_.prefix_cache || !request.options().use_cache) return;
  const uint32_t known = std::min(request.fed, uint32_t(request.tokens().size()));
  const std::span<const uint32_t> table = executor_.pages().table(request.sequence);
  while (request.node_pages < known / kPageTokens) {
    const uint32_t node = index_.add(request.node, request.options().salt,
                                     request.page_tokens(request.node_pages), table[request.node_pages]);
    index_.move_pin(request.node, node);
    request.node = node;
    ++request.node_pages;
  }
}

}  // namespace greta
