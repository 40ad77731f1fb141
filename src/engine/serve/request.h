// A request of a service: a prompt whose answer is generated beside those of others.
#pragma once
#include <atomic>
#include <optional>

#include "engine/serve/mailbox.h"
#include "engine/serve/page_index.h"
#include "engine/serve/places.h"
#include "engine/session/dialect.h"
#include "engine/session/state.h"
#include "engine/session/text_stream.h"

namespace greta {

constexpr int32_t kMaxPriority = 2;
constexpr uint32_t kMaxTop = 20;  // likeliest tokens that an event lists

struct RequestOptions {
  std::vector<int32_t> tokens;  // the prompt
  SamplerSettings sampling;     // without a filter
  std::shared_ptr<const Grammar> grammar;
  std::vector<std::string> stops;
  uint32_t max_tokens = 0;  // 0: until the context is full
  bool ignore_end = false;
  int32_t priority = 0;  // -kMaxPriority to kMaxPriority; the larger goes first
  uint64_t salt = 0;     // only requests of the same salt share cached pages
  bool use_cache = true;
  bool no_answer = false;                   // it ends when the prompt was read
  std::optional<EmbedOptions> embed;        // it gives a vector of the prompt in place of an answer
  std::shared_ptr<const SavedState> state;  // of the prompt's beginning, whose keys and values are used
  bool keep_state = false;                  // its own state can be written when it has ended
  bool logprobs = false, prompt_logprobs = false;
  uint32_t top = 0;  // how many of the likeliest tokens are listed, where logprobs are given
  // How the answer of a conversation is taken apart; null: it is text as it comes.
  std::shared_ptr<const Dialect> dialect;
  std::string prompt_text;   // of the conversation
  size_t earlier_calls = 0;  // calls of tools that the conversation has
};

class Request {
 public:
  // Checks the options. `context` is what one sequence may hold, `events` the capacity of the mailbox.
  static Status open(const Model& model, uint32_t context, size_t events, std::shared_ptr<Doorbell> engine,
                     RequestOptions&& options, std::shared_ptr<Request>* out);

  // ---- for any thread ----
  bool next(uint64_t timeout_ns, RequestEvent* out) { return mailbox_.take(timeout_ns, out); }
  bool ended(RequestResult* out) { return mailbox_.ended(out); }
  const Process& process() const { return process_; }
  const SavedState& state() const { return state_; }  // after it has ended
  Status state_status() const {
    return state_status_.ok() ? Status{} : greta::fail(state_status_.code, "%s", state_error_);
  }
  void cancel() {
    end_soon(StopReason::Cancelled);
    if (place_) place_->give_up();
  }
  void end_soon(StopReason reason) {  // the first one that is given counts
    StopReason none = StopReason::Length;
    ends_for_.compare_exchange_strong(none, reason, std::memory_order_relaxed);
    engine_->ring();
  }
  uint64_t unread_ns(uint64_t now) { return mailbox_.unread_ns(now); }
  void hold(std::unique_ptr<Places::Place> place) {  // before other threads have the request
    place_ = std::move(place);
    place_->belong_to(this);
  }

  // ---- for the thread that runs the service ----
  enum class Phase : uint8_t {
    Waiting,  // for a sequence and for pages
    Paused,   // set back because nobody reads its events
    Running,  // it has a sequence: first its tokens are fed, then one is drawn in each step
    Ended,    // its result is made; announce() puts it into the mailbox
  };
  Phase phase = Phase::Waiting;
  uint64_t line_since = 0;  // how many were admitted when it came to its place in the line
  uint64_t admission = 0;   // in the order of first admissions; 0: never yet
  uint32_t sequence = ~0u;
  uint32_t fed = 0;      // tokens whose keys and values are in the cache, or will be by steps under way
  uint32_t drawing = 0;  // how many of its tokens are drawn by steps under way
  uint32_t node = PageIndex::kRoot;  // the last page of its text that the index has
  uint32_t node_pages = 0;           // how many pages that path has
  uint32_t looked_up = 0;            // pages that were looked for in the folder of pages

  const RequestOptions& options() const { return options_; }
  std::span<const int32_t> tokens() const { return tokens_; }  // the prompt and what was drawn
  uint32_t unfed() const { return fed < tokens_.size() ? uint32_t(tokens_.size()) - fed : 0; }
  bool decodes() const { return drawing || (result_.generated_tokens && unfed() == 1); }
  bool on_device() const { return on_device_; }
  bool scores() const { return options_.prompt_logprobs && fed + 1 < options_.tokens.size(); }
  bool adopts() const {
    const bool every_row = options_.prompt_logprobs || (pooled_ && options_.embed->pooling != Pooling::Last);
    return options_.use_cache && !every_row;
  }
  const PooledText* pooled() const { return pooled_ ? &*pooled_ : nullptr; }
  bool ended_well() const { return phase == Phase::Ended && result_.status.ok(); }
  bool ends_soon() const { return ends_for() != StopReason::Length; }
  StopReason ends_for() const { return ends_for_.load(std::memory_order_relaxed); }
  bool stalled() { return mailbox_.full(); }
  bool half_read() { return mailbox_.half_read(); }
  // Another token may follow those that are being drawn.
  bool may_go_on() const;
  PageIndex::Tokens page_tokens(uint32_t index) const {
    return {tokens_.data() + uint64_t(index) * kPageTokens, kPageTokens};
  }

  void admitted(uint64_t number);  // the first time
  Status reserve();                // host memory for all its tokens
  // Takes the token that was drawn on the device, or chooses it from the logits [vocab] of the token fed
  // last. That may end the request.
  Status take(int32_t token) { return take(token, nullptr); }
  Status choose(const float* logits);
  Status score(uint32_t position, const float* logits);  // of the token of the prompt that follows `position`
  // Takes the hidden state [width] of a token. The request ends with the last one that it wants.
  Status pool(uint32_t position, const float* state);
  // Keeps what save_state() gave, or why it failed.
  void keep_state(SavedState&& state) { state_ = std::move(state); }
  void keep_state_failure(Status status);
  void count_cached(uint32_t tokens) { result_.cached_tokens += tokens; }
  void count_set_back() { ++result_.set_back; }
  void end(StopReason reason);  // after the text that was held back
  void fail_with(Status status);
  void announce() {  // after which its reader may close it
    if (place_) place_->give_up();
    mailbox_.end(result_);
  }

  Request(const Model& model, uint32_t context, size_t events, std::shared_ptr<Doorbell> engine,
          RequestOptions&& options, bool strip_space);

 private:
  ChatSink sink();
  Status take(int32_t token, const float* logits);
  void deliver(RequestEvent&& first, std::string&& text);
  void close();

  const Process process_;
  const Model& model_;
  const uint32_t context_;
  const RequestOptions options_;
  const std::shared_ptr<Doorbell> engine_;
  Mailbox mailbox_;
  std::atomic<StopReason> ends_for_ = StopReason::Length;  // Length: nobody has asked it to end
  std::vector<int32_t> tokens_;
  Sampler sampler_;
  GrammarState grammar_;
  TextStream text_;
  std::optional<ChatParser> parser_;
  std::vector<RequestEvent> made_;  // by the parser, of one token
  std::optional<PooledText> pooled_;
  SavedState state_;
  Status state_status_;  // why there is none, with its sentence
  char state_error_[kErrorTextBytes] = "";
  uint32_t scored_ = 0;  // tokens of the prompt whose probabilities were given
  bool on_device_ = false;
  RequestResult result_;
  uint64_t added_ns_ = 0, admitted_ns_ = 0, first_ns_ = 0;
  std::unique_ptr<Places::Place> place_;  // goes first, since whoever looks for a place may look at all above
};

}  // namespace greta
