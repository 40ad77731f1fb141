// A request of a service: a prompt whose answer is generated beside those of others.
#pragma once
#include <atomic>

#include "engine/serve/mailbox.h"
#include "engine/serve/places.h"
#include "engine/serve/prefix_cache.h"
#include "engine/session/dialect.h"
#include "engine/session/state.h"
#include "engine/write/writing.h"

namespace greta {

constexpr int32_t kMaxPriority = 2;
constexpr uint32_t kMaxTop = 1000;  // likeliest tokens that an event lists

struct RequestOptions : WritingOptions {
  std::vector<int32_t> tokens;  // the prompt
  SamplerSettings sampling;     // without a filter
  std::shared_ptr<const Grammar> grammar;
  std::shared_ptr<const Grammar> held;  // the grammar with free reasoning before it; null: there is none
  std::vector<std::string> stops;
  int32_t priority = 0;                         // -kMaxPriority to kMaxPriority; the larger goes first
  uint64_t salt = 0;                            // only requests of the same salt share cached pages
  std::shared_ptr<const AdapterList> adapters;  // null: none
  // What distinguishes cached pages: those of other salts, and those that other adapters have made.
  uint64_t cache_salt() const { return identity_with(salt, identity_of(adapters)); }
  bool use_cache = true;
  std::shared_ptr<const SavedState> state;  // of the prompt's beginning, whose keys and values are used
  bool share_state = false;                 // and may be left in the prefix cache
  bool keep_state = false;                  // its own state can be written when it has ended
  uint32_t top = 0;      // how many of the likeliest tokens are listed, where logprobs are given
  bool sampled = false;  // these are probabilities of what the sampler has left
  // How the answer of a conversation is taken apart; null: it is text as it comes.
  std::shared_ptr<const Dialect> dialect;
  std::string prompt_text;       // of the conversation
  size_t earlier_calls = 0;      // calls of tools that the conversation has
  Wake wake;                     // for its reader
  bool start_event = false;      // there is an event when the prompt was read
  bool progress_events = false;  // and whenever a piece of it was
  bool call_pieces = false;      // calls of tools come while they are written
};

class Request final : public Writing {
 public:
  // Checks the options. `context` is what one sequence may hold, `events` the capacity of the mailbox.
  static Status open(const Model& model, uint32_t context, size_t events, std::shared_ptr<Doorbell> engine,
                     RequestOptions&& options, std::shared_ptr<Request>* out);

  // ---- for any thread ----
  bool next(uint64_t timeout_ns, RequestEvent* out, uint32_t* unread = nullptr) {
    return mailbox_.take(timeout_ns, out, unread);
  }
  bool ended(RequestResult* out) { return mailbox_.ended(out); }
  const Process& process() const { return process_; }
  const SavedState& state() const { return state_; }                 // after it has ended
  std::span<const int32_t> written() const { return text_.tokens; }  // prompt and answer, after it has ended
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
  RequestProgress progress(uint32_t* unread) { return mailbox_.progress(unread); }
  uint32_t line_place() const { return line_place_.load(std::memory_order_relaxed); }
  void set_line_place(uint32_t before) { line_place_.store(before, std::memory_order_relaxed); }
  uint64_t unread_ns(uint64_t now) { return mailbox_.unread_ns(now); }
  void silence() { mailbox_.silence(); }
  void hold(std::unique_ptr<Places::Place> place) {  // before other threads have the request
    place_ = std::move(place);
    place_->belong_to(this);
  }

  // ---- for the thread that runs the service ----
  enum class Phase : uint8_t {
    Waiting,  // for a sequence and for pages
    Paused,   // set back because nobody reads its events
    Running,  // it has a sequence: first its tokens are fed, then one is drawn in each step
    Ended,
  };
  Phase phase() const { return goes_on() ? phase_ : Phase::Ended; }
  const RequestOptions& options() const { return options_; }
  bool adopts() const { return adopts(options_); }
  // Takes pages of the prefix cache, since no row of it is needed for itself.
  static bool adopts(const RequestOptions& options) {
    const bool every_row =
        options.prompt_logprobs || (options.embed && options.embed->pooling != Pooling::Last);
    return options.use_cache && !every_row && !options.state;
  }
  PrefixCache::User in_cache() {
    return {
        path_,          options_.cache_salt(), tokens(), sequence(), sent(), uint32_t(options_.tokens.size()),
        options_.places};
  }
  uint64_t admission() const { return admission_; }    // in the order of first admissions; 0: never yet
  uint64_t line_since() const { return line_since_; }  // how many were admitted when it joined the line
  bool ended_well() const { return !goes_on() && status().ok(); }
  bool ends_soon() const { return ends_for() != StopReason::Length; }
  StopReason ends_for() const { return ends_for_.load(std::memory_order_relaxed); }
  bool stalled() { return mailbox_.full(); }
  bool half_read() { return mailbox_.half_read(); }

  void join_line(uint64_t admitted) { line_since_ = admitted; }
  void admit(uint64_t number);  // the first time
  Status reserve();             // host memory for all its tokens
  void enter(uint32_t sequence);
  void skip_cached(uint32_t count);  // its next tokens, whose keys and values are there
  // Loses its sequence, which is given back, if it has one, and waits or is paused unless it has ended.
  uint32_t leave(Phase phase);
  void wait() { phase_ = Phase::Waiting; }
  // Keeps what save_state() gave, or why it failed.
  void keep_state(SavedState&& state) { state_ = std::move(state); }
  void keep_state_failure(Status status);
  void note_progress();  // for whoever asks
  void deliver() override { mailbox_.tell(); }
  void announce();       // that it has ended, after which its reader may close it

  Request(const Model& model, uint32_t context, size_t events, std::shared_ptr<Doorbell> engine,
          RequestOptions&& options);

 private:
  bool give(int32_t token, const std::string& text, const float* logits) override;
  bool read(uint32_t done, uint32_t total) override;
  void score(uint32_t position, const float* logits) override;
  void give_vector(std::vector<float>&& vector) override;
  RequestProgress how_far();
  ChatSink sink();
  std::string id_of(const ChatCall& call);
  void add_likely(const float* logits, int32_t token, RequestEvent* event) const;
  void add_sampled(int32_t token, RequestEvent* event);

  const Process process_;
  const uint32_t vocab_, context_;
  const RequestOptions options_;
  const std::shared_ptr<Doorbell> engine_;
  Mailbox mailbox_;
  std::atomic<StopReason> ends_for_ = StopReason::Length;  // Length: nobody has asked it to end
  Text text_;
  std::optional<ChatParser> parser_;
  std::vector<RequestEvent> made_;  // by the parser, of one token
  PrefixCache::Path path_;
  Phase phase_ = Phase::Waiting;
  uint64_t admission_ = 0, line_since_ = 0;
  std::atomic<uint32_t> line_place_ = 0;  // how many are before it while it waits
  bool started_ = false;                  // the prompt was read
  size_t begun_calls_ = 0;                // of the answer, those that are none after all included
  std::string begun_id_;                  // of the call that comes in pieces now
  SavedState state_;
  Status state_status_;  // why there is none, with its sentence
  char state_error_[kErrorTextBytes] = "";
  uint32_t scored_ = 0;  // tokens of the prompt whose probabilities were given
  RequestResult result_;
  RequestProgress noted_;  // what the mailbox has
  const uint64_t added_ns_;
  std::unique_ptr<Places::Place> place_;  // goes first, since whoever looks for a place may look at all above
};

}  // namespace greta
