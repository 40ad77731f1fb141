#include "engine/serve/request.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace greta {

namespace {

// A prompt that is the token of the beginning alone starts a text.
bool starts_text(const Model& model, const RequestOptions& options) {
  const Tokenizer& tokenizer = *model.tokenizer;
  return options.tokens.size() == 1 && options.tokens[0] == tokenizer.bos() &&
         tokenizer.adds_space_prefix() && !options.grammar;
}

std::span<const int32_t> spoken(const RequestOptions& options) {
  return options.dialect ? options.dialect->spoken() : std::span<const int32_t>();
}

// The logarithm of the sum of exp(logit). Logits that are no numbers count as impossible.
double log_sum(std::span<const float> logits) {
  double most = -INFINITY, sum = 0;
  for (const float logit : logits)
    if (logit > most) most = logit;
  for (const float logit : logits)
    if (logit == logit) sum += std::exp(double(logit) - most);
  return most + std::log(sum);
}

void add_likely(std::span<const float> logits, int32_t token, uint32_t top, RequestEvent* event) {
  const double sum = log_sum(logits);
  const auto likely = [&](size_t id) { return Likely{int32_t(id), float(double(logits[id]) - sum)}; };
  event->token = likely(size_t(token));
  for (size_t id = 0; top && id < logits.size(); ++id) {
    std::vector<Likely>& list = event->top;
    const Likely next = likely(id);
    if (!(list.size() < top || next.logprob > list.back().logprob)) continue;
    const auto less = [](const Likely& a, const Likely& b) { return a.logprob > b.logprob; };
    list.insert(std::upper_bound(list.begin(), list.end(), next, less), next);
    if (list.size() > top) list.pop_back();
  }
}

}  // namespace

Request::Request(const Model& model, uint32_t context, size_t events, std::shared_ptr<Doorbell> engine,
                 RequestOptions&& options, bool strip_space)
    : model_(model),
      context_(context),
      options_(std::move(options)),
      engine_(engine),
      mailbox_(events, std::move(engine)),
      tokens_(options_.tokens),
      text_(*model.tokenizer, strip_space, spoken(options_)),
      added_ns_(now_ns()) {
  result_.prompt_tokens = uint32_t(tokens_.size());
  sampler_.set(options_.sampling);
  grammar_.set(options_.grammar);
  on_device_ = sampler_.on_device() && !grammar_.active() && !options_.logprobs && !options_.prompt_logprobs;
  if (options_.embed) {
    pooled_.emplace(*options_.embed, model.shape.width, 0, uint32_t(tokens_.size()));
    on_device_ = true;  // nothing is chosen
  }
  if (options_.dialect)
    parser_.emplace(options_.dialect->form(), options_.dialect->tools(), options_.prompt_text, sink());
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
    if (call.id.empty()) call.id = call_id(options_.earlier_calls + result_.tool_calls);
    ++result_.tool_calls;
    add(RequestEvent::Kind::ToolCall, {});
    made_.back().call = std::move(call);
    return true;
  };
  return out;
}

Status Request::open(const Model& model, uint32_t context, size_t events, std::shared_ptr<Doorbell> engine,
                     RequestOptions&& options, std::shared_ptr<Request>* out) {
  GRETA_TRY(check_tokens(options.tokens, 0, context, model.shape.vocab));
  GRETA_TRY(check_sampling(options.sampling));
  if (options.sampling.filter.call)
    return fail(Code::Unsupported, "a request has no logit filter: it would hold up every other request");
  if (options.priority < -kMaxPriority || options.priority > kMaxPriority)
    return fail(Code::Argument, "the priority is %d, expected %d to %d", options.priority, -kMaxPriority,
                kMaxPriority);
  if (options.top > kMaxTop)
    return fail(Code::Argument, "%u likeliest tokens are asked for, at most %u", options.top, kMaxTop);
  if (int(options.prompt_logprobs) + bool(options.embed) + bool(options.state) > 1)
    return fail(Code::Argument, "set at most one of prompt_logprobs, embed and state");
  if (options.state) options.use_cache = false;  // others take nothing from a state that came from outside
  const bool strip_space = starts_text(model, options);
  auto request =
      std::make_shared<Request>(model, context, events, std::move(engine), std::move(options), strip_space);
  const std::vector<std::string_view> stops(request->options_.stops.begin(), request->options_.stops.end());
  GRETA_TRY(request->text_.open(stops));
  *out = std::move(request);
  return {};
}

bool Request::may_go_on() const {
  return result_.generated_tokens + drawing != options_.max_tokens && fed < context_;
}

void Request::admitted(uint64_t number) {
  if (admission) return;
  admission = number;
  admitted_ns_ = now_ns();
  result_.queued_ns = admitted_ns_ - added_ns_;
}

Status Request::reserve() {
  const uint64_t all = uint64_t(tokens_.size()) + (options_.max_tokens ? options_.max_tokens : context_);
  tokens_.reserve(std::min<uint64_t>(all, context_) + 1);
  return {};
}

Status Request::choose(const float* logits) {
  if (options_.no_answer) return end(StopReason::Length), Status{};
  int32_t token = kNoToken;
  GRETA_TRY(choose_token(model_, sampler_, grammar_, logits, tokens_, !options_.ignore_end, &token));
  return take(token, logits);
}

Status Request::take(int32_t token, const float* logits) {
  if (options_.no_answer) return end(StopReason::Length), Status{};
  if (!first_ns_) first_ns_ = now_ns();
  if (token == kNoToken || (!options_.ignore_end && model_.tokenizer->is_end(token)))
    return end(StopReason::End), Status{};
  RequestEvent event;
  event.token.token = token;
  if (options_.logprobs) add_likely({logits, model_.shape.vocab}, token, options_.top, &event);
  std::string text;
  const bool more = text_.push(token, &text);
  tokens_.push_back(token);  // it has room
  ++result_.generated_tokens;
  deliver(std::move(event), std::move(text));
  if (!more)
    end(StopReason::String);
  else if (result_.generated_tokens == options_.max_tokens)
    end(StopReason::Length);
  else if (tokens_.size() > context_)
    end(StopReason::Context);
  return {};
}

Status Request::score(uint32_t position, const float* logits) {
  if (position + 1 >= options_.tokens.size() || position + 1 <= scored_) return {};
  RequestEvent event;
  event.kind = RequestEvent::Kind::Prompt;
  add_likely({logits, model_.shape.vocab}, tokens_[position + 1], options_.top, &event);
  mailbox_.put(std::move(event));
  scored_ = position + 1;
  return {};
}

Status Request::pool(uint32_t position, const float* state) {
  pooled_->add(position, state);
  if (!pooled_->complete()) return {};
  RequestEvent event;
  event.kind = RequestEvent::Kind::Embedding;
  GRETA_TRY(pooled_->finish(&event.embedding));
  mailbox_.put(std::move(event));
  end(StopReason::Length);
  return {};
}

void Request::keep_state_failure(Status status) {
  state_status_ = status;
  strncpy(state_error_, error_text(), sizeof state_error_ - 1);
}

// Puts the events of a text into the mailbox. The first one has what `first` says of the token.
void Request::deliver(RequestEvent&& first, std::string&& text) {
  made_.clear();
  if (parser_) {
    parser_->push(text);
    if (first.token.token == kNoToken) parser_->finish();
  } else if (!text.empty()) {
    made_.emplace_back();
    made_.back().text = std::move(text);
  }
  if (made_.empty() && first.token.token == kNoToken) return;
  if (made_.empty()) made_.emplace_back();
  made_.front().token = first.token;
  made_.front().top = std::move(first.top);
  for (RequestEvent& event : made_) mailbox_.put(std::move(event));
}

void Request::end(StopReason reason) {
  result_.reason = reason;
  std::string rest;
  if (text_.found() < 0 && !text_.finish(&rest)) result_.reason = StopReason::String;
  if (parser_) result_.open_reasoning = parser_->reasoning();
  deliver({}, std::move(rest));
  result_.stop_string = text_.found();
  close();
}

void Request::fail_with(Status status) {
  result_.status = status;
  strncpy(result_.error, error_text(), sizeof result_.error - 1);
  close();
}

void Request::close() {
  const uint64_t now = now_ns();
  if (!admitted_ns_)
    result_.queued_ns = now - added_ns_;
  else
    result_.prompt_ns = (first_ns_ ? first_ns_ : now) - admitted_ns_;
  if (first_ns_) result_.generate_ns = now - first_ns_;
  phase = Phase::Ended;
}

}  // namespace greta
