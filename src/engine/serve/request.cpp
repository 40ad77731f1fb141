#include "engine/serve/request.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "engine/write/model_draft.h"

namespace greta {

namespace {

// The logarithm of the sum of exp(logit). Logits that are no numbers count as impossible.
double log_sum(std::span<const float> logits) {
  double most = -INFINITY, sum = 0;
  for (const float logit : logits)
    if (logit > most) most = logit;
  for (const float logit : logits)
    if (logit == logit) sum += std::exp(double(logit) - most);
  return most + std::log(sum);
}

}  // namespace

// Lists the token and the likeliest ones with their probabilities.
void Request::add_likely(const float* row, int32_t token, RequestEvent* event) const {
  const std::span<const float> logits(row, vocab_);
  const double sum = log_sum(logits);
  const auto likely = [&](size_t id) { return Likely{int32_t(id), float(double(logits[id]) - sum)}; };
  event->token = likely(size_t(token));
  for (size_t id = 0; options_.top && id < logits.size(); ++id) {
    std::vector<Likely>& list = event->top;
    const Likely next = likely(id);
    if (!(list.size() < options_.top || next.logprob > list.back().logprob)) continue;
    const auto less = [](const Likely& a, const Likely& b) { return a.logprob > b.logprob; };
    list.insert(std::upper_bound(list.begin(), list.end(), next, less), next);
    if (list.size() > options_.top) list.pop_back();
  }
}

// The same for a token that was just chosen, among what the sampler has left.
void Request::add_sampled(int32_t token, RequestEvent* event) {
  const std::span<const Candidate> left = text_.sampler.left(std::max<size_t>(options_.top, 1));
  double sum = 0;
  for (const Candidate& each : left) sum += std::exp(each.logit - left[0].logit);
  const double all = left[0].logit + std::log(sum);
  for (const Candidate& each : left) {
    const Likely likely{each.id, float(each.logit - all)};
    if (each.id == token) event->token = likely;
    if (event->top.size() < options_.top) event->top.push_back(likely);
  }
}

Request::Request(const Model& model, uint32_t context, size_t events, std::shared_ptr<Doorbell> engine,
                 RequestOptions&& options)
    : Writing(model, context, text_, options_),
      vocab_(model.shape.vocab),
      context_(context),
      options_(std::move(options)),
      engine_(engine),
      mailbox_(events, std::move(engine), options_.wake),
      added_ns_(now_ns()) {
  text_.tokens = options_.tokens;
  text_.sampler.set(options_.sampling);
  text_.grammar.set(options_.grammar);
  if (options_.held) text_.grammar.begin(options_.held);
  if (options_.dialect)
    parser_.emplace(options_.dialect->form(), options_.dialect->tools(), options_.prompt_text, sink());
}

Status Request::open(const Model& model, uint32_t context, size_t events, std::shared_ptr<Doorbell> engine,
                     RequestOptions&& options, std::shared_ptr<Request>* out) {
  GRETA_TRY(check_tokens(options.tokens, 0, context, model.shape.vocab));
  GRETA_TRY(check_sampling(options.sampling));
  GRETA_TRY(check_draft(options.draft, model.shape.heads != 0));
  if (options.draft.kind == DraftKind::Model)
    GRETA_TRY(check_draft_model(model, context, *options.draft.executor));
  if (options.sampling.filter.call)
    return greta::fail(Code::Unsupported,
                       "a request has no logit filter: it would hold up every other request");
  if (options.priority < -kMaxPriority || options.priority > kMaxPriority)
    return greta::fail(Code::Argument, "the priority is %d, expected %d to %d", options.priority,
                       -kMaxPriority, kMaxPriority);
  if (options.top > kMaxTop)
    return greta::fail(Code::Argument, "%u likeliest tokens are asked for, at most %u", options.top, kMaxTop);
  if (int(options.prompt_logprobs) + bool(options.embed) + bool(options.state) > 1)
    return greta::fail(Code::Argument, "set at most one of prompt_logprobs, embed and state");
  options.ends_exactly |= options.keep_state && model.shape.recurrent_layers;  // its state goes no further
  if (options.share_state && model.shape.recurrent_layers && options.state->tokens.size() % kPageTokens)
    return greta::fail(Code::Unsupported,
                       "share_state with a state of %zu tokens: where layers keep states, the tokens must "
                       "fill whole pages of %u, since the state stands behind the last of them alone",
                       options.state->tokens.size(), kPageTokens);
  if (options.sampled && !options.logprobs)
    return greta::fail(Code::Argument, "sampled_logprobs is set, and logprobs is not");
  // Others take nothing from a state that came from outside, unless its owner says so.
  if (options.state && !options.share_state) options.use_cache = false;
  auto request = std::make_shared<Request>(model, context, events, std::move(engine), std::move(options));
  const RequestOptions& o = request->options_;
  const std::vector<std::string_view> stops(o.stops.begin(), o.stops.end());
  GRETA_TRY(request->begin(stops, o.dialect ? o.dialect->spoken() : std::span<const int32_t>(),
                           request->parser_ ? &*request->parser_ : nullptr));
  request->note_progress();
  *out = std::move(request);
  return {};
}

ChatSink Request::sink() {
  ChatSink out;
  const auto add = [this](RequestEvent::Kind kind, std::string_view text) {
    made_.emplace_back();
    made_.back().kind = kind;
    made_.back().text = text;
    return true;
  };
  out.text = [add](std::string_view text) { return add(RequestEvent::Kind::Text, text); };
  out.reasoning = [add](std::string_view text) { return add(RequestEvent::Kind::Reasoning, text); };
  out.call = [this, add](ChatCall call) {
    call.id = begun_id_.empty() ? id_of(call) : std::exchange(begun_id_, {});
    ++result_.tool_calls;
    add(RequestEvent::Kind::ToolCall, {});
    made_.back().call = std::move(call);
    return true;
  };
  if (!options_.call_pieces) return out;
  out.pieces.begin = [this, add](const ChatCall& call) {
    begun_id_ = id_of(call);
    add(RequestEvent::Kind::CallStart, {});
    made_.back().call = {begun_id_, call.name, ""};
    return true;
  };
  out.pieces.argument = [add](std::string_view text) { return add(RequestEvent::Kind::CallPiece, text); };
  return out;
}

// The one that the model gave, or else one of our own.
std::string Request::id_of(const ChatCall& call) {
  const size_t number = begun_calls_++;
  return call.id.empty() ? call_id(options_.earlier_calls + number) : call.id;
}

// ---- its place in the service ---------------------------------------------------------------------

void Request::admit(uint64_t number) {
  if (admission_) return;
  admission_ = number;
  start_clock();
  result_.queued_ns = now_ns() - added_ns_;
}

Status Request::reserve() {
  const uint64_t all = uint64_t(tokens().size()) + (options_.max_tokens ? options_.max_tokens : context_);
  text_.tokens.reserve(std::min<uint64_t>(all, context_) + 1);
  return {};
}

void Request::enter(uint32_t sequence) {
  text_.sequence = sequence;
  phase_ = Phase::Running;
}

void Request::skip_cached(uint32_t count) {
  skip(count);
  result_.cached_tokens += count;
}

uint32_t Request::leave(Phase phase) {
  if (phase_ == Phase::Running && goes_on()) ++result_.set_back;
  phase_ = phase;
  const uint32_t sequence = Writing::leave();
  note_progress();
  return sequence;
}

RequestProgress Request::how_far() {
  using State = RequestProgress::State;
  RequestProgress out;
  out.state = !goes_on()                             ? State::Ended
              : phase_ == Phase::Waiting             ? State::Waiting
              : phase_ == Phase::Paused || stalled() ? State::Paused
              : reading()                            ? State::Reading
                                                     : State::Writing;
  out.prompt_tokens = result().prompt_tokens;
  out.read_tokens = text_.fed;
  out.cached_tokens = result_.cached_tokens;
  out.generated_tokens = result().generated_tokens;
  out.reasoning_tokens = result().reasoning_tokens;
  out.set_back = result_.set_back;
  return out;
}

void Request::note_progress() {
  const RequestProgress now = how_far();
  if (now == noted_) return;
  noted_ = now;
  mailbox_.note(now);
}

void Request::announce() {
  static_cast<WritingResult&>(result_) = Writing::result();
  result_.status = status();
  format_text(result_.error, sizeof result_.error, "%s", error());
  if (!admission_) result_.queued_ns = now_ns() - added_ns_;
  if (place_) place_->give_up();
  note_progress();
  SpanEvent event;
  event.kind = SpanKind::Request;
  event.name = "request";
  event.begin_ns = added_ns_;
  event.end_ns = now_ns();
  event.tokens = result_.prompt_tokens + result_.generated_tokens;
  model().spans(event);
  mailbox_.end(result_);
}

void Request::keep_state_failure(Status status) {
  state_status_ = status;
  strncpy(state_error_, error_text(), sizeof state_error_ - 1);
}

// ---- what its reader gets -------------------------------------------------------------------------

// Puts the events of a token, or of the text that was held back, into the mailbox.
bool Request::give(int32_t token, const std::string& text, const float* logits) {
  RequestEvent first;
  first.token.token = token;
  if (options_.logprobs && logits)
    options_.sampled ? add_sampled(token, &first) : add_likely(logits, token, &first);
  if (!parser_ && !text.empty()) {
    made_.emplace_back();
    made_.back().text = text;
  }
  if (made_.empty() && token == kNoToken) return true;
  if (made_.empty()) made_.emplace_back();
  made_.front().token = first.token;
  made_.front().top = std::move(first.top);
  note_progress();  // before anyone can read the token, so that its reader finds a request that writes
  for (RequestEvent& event : made_) mailbox_.put(std::move(event));
  made_.clear();
  return true;
}

// Says how much of the prompt was read. What is read anew later is nobody's business.
bool Request::read(uint32_t done, uint32_t total) {
  if (started_) return true;
  started_ = done == total;
  if (started_ ? !options_.start_event : !options_.progress_events) return true;
  RequestEvent event;
  event.kind = started_ ? RequestEvent::Kind::Start : RequestEvent::Kind::Progress;
  event.progress = how_far();
  mailbox_.put(std::move(event));
  return true;
}

void Request::score(uint32_t position, const float* logits) {
  if (position + 1 >= options_.tokens.size() || position + 1 <= scored_) return;
  RequestEvent event;
  event.kind = RequestEvent::Kind::Prompt;
  add_likely(logits, tokens()[position + 1], &event);
  mailbox_.put(std::move(event));
  scored_ = position + 1;
}

void Request::give_vector(std::vector<float>&& vector) {
  RequestEvent event;
  event.kind = RequestEvent::Kind::Embedding;
  event.embedding = std::move(vector);
  mailbox_.put(std::move(event));
}

}  // namespace greta
