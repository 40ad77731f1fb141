#include "engine/write/writing.h"

#include <algorithm>
#include <cstring>

#include "engine/write/model_draft.h"

namespace greta {

constexpr uint32_t kReasoningEndTokens = 32;  // room that is kept for the text that closes the reasoning

// A text that is the token of the beginning alone starts without the space before its first word.
bool Writing::begins_text() const {
  const Tokenizer& tokenizer = *model_.tokenizer;
  return text_.tokens.size() == 1 && text_.tokens[0] == tokenizer.bos() && tokenizer.adds_space_prefix() &&
         !text_.grammar.active();
}

Status Writing::begin(std::span<const std::string_view> stops, std::span<const int32_t> spoken,
                      ChatParser* parser) {
  sent_ = read_from_ = text_.fed;
  read_to_ = uint32_t(text_.tokens.size());
  result_.prompt_tokens = read_to_ - read_from_ - result_.reread_tokens;
  stream_.emplace(*model_.tokenizer, begins_text(), spoken);
  // A state that is kept at the end must not have read wrong guesses.
  if (!(has_states() && options_.ends_exactly)) GRETA_TRY(open_draft(options_.draft, &draft_));
  if (draft_) depth_ = DraftDepth(options_.draft.depth, draft_->is_free());
  if (draft_ && options_.draft.kind == DraftKind::Head) head_ = static_cast<HeadDraft*>(draft_.get());
  if (draft_ && options_.draft.kind == DraftKind::Model) second_ = static_cast<ModelDraft*>(draft_.get());
  parser_ = parser;
  limit_reasoning();
  if (thinks_too_long()) {  // reasoning that the prompt has opened is closed before it begins
    GRETA_TRY(add_closing());
    read_to_ = uint32_t(text_.tokens.size());
  }
  on_device_ = options_.embed || (text_.sampler.on_device() && !text_.grammar.active() &&
                                  !options_.logprobs && !options_.prompt_logprobs);
  if (options_.embed) pooled_.emplace(*options_.embed, model_.shape.width, sent_, result_.prompt_tokens);
  push_draft(text_.tokens);
  return stream_->open(stops);
}

// ---- what it wants of a step ----------------------------------------------------------------------

bool Writing::ready(bool ahead) const {
  if (!goes_on_ || reading() || drawing_ == 0) return goes_on_;
  const bool last = result_.generated_tokens + 1 == options_.max_tokens || sent_ == context_;
  return ahead && !goes_exactly() && on_device_ && drawing_ == 1 && !last && !full_ && !guessing();
}

// Guesses are made once for each length of the text, of which all tokens are known.
void Writing::copy_guesses(uint32_t most) {
  guesses_.clear();
  if (!draft_ || !most) return;
  if (made_for_ != text_.tokens.size()) {
    made_for_ = text_.tokens.size();
    const Status made = guarded([&]() -> Status {
      GRETA_TRY(draft_->guess(text_.tokens, most, &made_));
      change_guesses(options_.draft, text_.tokens, &made_);
      return {};
    });
    if (!made.ok()) return stop_draft(made);
    const auto in_vocabulary = [&](int32_t token) { return uint32_t(token) < model_.shape.vocab; };
    made_.erase(std::ranges::find_if_not(made_, in_vocabulary), made_.end());
  }
  guesses_.assign(made_.begin(), made_.begin() + std::ptrdiff_t(std::min<size_t>(most, made_.size())));
}

// The text goes on without guesses.
void Writing::stop_draft(Status status) {
  if (status.code == Code::Memory || status.code == Code::Full) result_.draft_stopped = true;
  model_.log(LogLevel::Warning, "no more tokens are guessed: %s", error_text());
  made_.clear();
  guesses_.clear();
  draft_.reset();
  head_ = nullptr;
  second_ = nullptr;
  depth_.stop();
}

// A step makes one token more than it has guesses.
static uint32_t most_guesses_of(const WritingOptions& options, const WritingResult& result,
                                const DraftDepth& depth) {
  if (!options.max_tokens) return depth.depth();
  return std::min(depth.depth(), options.max_tokens - 1 - result.generated_tokens);
}

bool Writing::asks_model(uint32_t most, ModelAsk* out) const {
  most = std::min(most, most_guesses_of(options_, result_, depth_));
  if (!second_ || !goes_on_ || drawing_ || reading() || !most || made_for_ == text_.tokens.size())
    return false;
  *out = {second_, text_.tokens, most};
  return true;
}

Executor::HeadPart Writing::head_part(const Part& part, uint32_t row) const {
  const uint32_t fed = std::min(text_.fed, part.end());
  const bool wants = head_ && goes_on_ && part.era == era_ && text_.tokens.size() == size_t(text_.fed) + 1;
  return {text_.sequence,
          part.begin,
          fed > part.begin ? fed - part.begin : 0,
          row,
          text_.tokens,
          wants ? most_guesses_of(options_, result_, depth_) : 0};
}

void Writing::take_guesses(std::vector<int32_t>&& guesses) {
  if (head_) head_->take(std::move(guesses), text_.tokens.size());
}

uint32_t Writing::most_guesses(const Part& part, const Room& room) const {
  if (drawing_) return 0;
  const uint32_t known = sent_ + again() + 1;  // whose rows the step has
  uint32_t most = std::min(
      {room.guesses, most_guesses_of(options_, result_, depth_), context_ - std::min(context_, known)});
  most = std::min(most, kGuessedRows - 1 - std::min(again(), kGuessedRows - 1));
  return part.on_host ? std::min(most, room.choices - 1) : most;
}

Writing::Part Writing::part(Executor& executor, const Room& room) {
  using Kind = Part::Kind;
  Part part{this, sent_, 0, 0, 0, 0, false, !on_device_, era_, Kind::Draws};
  if (room.rows == 0) return part;
  if (!reading()) {
    if (part.on_host && !room.choices) return part;
    if (again() + 1 > room.rows) return part;
    copy_guesses(most_guesses(part, room));
    if (!guesses_.empty() && !executor.keep_for_guesses(text_.sequence, sent_)) guesses_.clear();
    if (guesses_.empty() && draft_) executor.drop_for_guesses(text_.sequence);
    part.guesses = uint32_t(guesses_.size());
    part.outputs = 1 + part.guesses;
    part.count = again() + part.outputs;
    part.draws = true;
    return part;
  }
  part.count = std::min(read_to_ - sent_, room.rows);
  if (pooled_) {
    part.kind = Kind::Pools;
    while (part.count && pooled_->wanted(sent_, part.count) > room.hidden) --part.count;  // the others wait
    part.hidden = pooled_->wanted(sent_, part.count);
    return part;
  }
  if (scores()) part.kind = Kind::Scores, part.count = std::min(part.count, room.choices);
  part.draws = part.end() == text_.tokens.size();
  if (part.draws && part.on_host && !room.choices) {  // its last row waits
    part.draws = false;
    --part.count;
  }
  part.outputs = part.kind == Kind::Scores ? part.count : part.draws;
  return part;
}

Status Writing::end_for_pages() {
  full_ = true;
  return drawing_ ? Status{} : end(StopReason::Context);
}

void Writing::add_rows(const Part& part, std::vector<Executor::Row>* rows) const {
  using Output = Executor::Output;
  const uint32_t known = uint32_t(text_.tokens.size());
  const auto token_at = [&](uint32_t at) {
    if (at < known) return uint32_t(text_.tokens[at]);
    return part.guesses ? uint32_t(guesses_[at - known]) : kTokenFromSample;
  };
  for (uint32_t at = part.begin; at < part.end(); ++at) {
    const bool pools = part.hidden && pooled_->wants(at), gives = at >= part.end() - part.outputs;
    const Output output = pools          ? Output::Hidden
                          : !gives       ? Output::None
                          : part.on_host ? Output::Logits
                                         : Output::Draw;
    rows->push_back({token_at(at), at, text_.sequence, output});
  }
}

void Writing::submitted(const Part& part) {
  const bool was_reading = reading();
  sent_ = part.end() - part.guesses;
  drawing_ += part.draws;
  was_reading ? piece_sent() : next_sent();
}

// ---- what becomes of its results ------------------------------------------------------------------

Status Writing::finish(const Part& part, Executor& executor, const float* outputs) {
  drawing_ -= part.draws;
  text_.fed = part.end() - part.guesses;
  if (part.begin < read_before_) result_.reread_tokens += std::min(text_.fed, read_before_) - part.begin;
  if (part.begin < read_to_) GRETA_TRY(take_read());
  if (part.hidden && goes_on_) return take_hidden(part, outputs);
  const uint64_t vocab = model_.shape.vocab;
  if (part.kind == Part::Kind::Scores)
    for (uint32_t i = 0; goes_on_ && i < part.count; ++i) score(part.begin + i, outputs + i * vocab);
  if (!part.draws || !goes_on_) return {};
  if (options_.no_answer) return end(StopReason::Length);
  if (!first_ns_) first_ns_ = now_ns();
  ++result_.draw_steps;
  outputs += (part.outputs - 1 - part.guesses) * vocab;
  return part.guesses ? verify(part, executor, outputs) : watch(part, executor, outputs);
}

Status Writing::take_read() {
  if (text_.fed == read_to_) result_.forgotten_tokens += std::exchange(leaving_, 0);
  return read(text_.fed - read_from_, read_to_ - read_from_) ? Status{} : end(StopReason::Cancelled);
}

Status Writing::take_hidden(const Part& part, const float* states) {
  for (uint32_t at = part.begin; at < part.end(); ++at)
    if (pooled_->wants(at)) pooled_->add(at, std::exchange(states, states + model_.shape.width));
  if (!pooled_->complete()) return {};
  std::vector<float> vector;
  GRETA_TRY(pooled_->finish(&vector));
  give_vector(std::move(vector));
  return end(StopReason::Length);
}

// Takes the token of a step without guesses, and sees whether it would have been guessed.
Status Writing::watch(const Part& part, Executor& executor, const float* logits) {
  const bool free = draft_ && draft_->is_free();
  if (free) copy_guesses(1);
  GRETA_TRY(take_draw(part, 0, executor, logits));
  if (!free)
    depth_.passed();
  else if (!guesses_.empty())
    depth_.watched(drawn_ == guesses_[0]);
  return {};
}

// Takes the tokens of a step with guesses, up to the first one that was not guessed.
Status Writing::verify(const Part& part, Executor& executor, const float* logits) {
  result_.drafted_tokens += part.guesses;
  for (uint32_t right = 0;; ++right) {
    GRETA_TRY(take_draw(part, right, executor, logits + uint64_t(right) * model_.shape.vocab));
    if (!part.live()) return {};
    if (right == part.guesses || drawn_ != guesses_[right]) {
      depth_.verified(part.guesses, right);
      if (has_states() && right < part.guesses)
        go_on_from(executor.truncate(text_.sequence, text_.fed), part);
      return {};
    }
    ++result_.accepted_tokens;
    ++text_.fed;
    ++sent_;
  }
}

// The state of a text whose guesses were not all right ends at `position`: behind what was right, or before
// the step, or far before it where the state was lost.
void Writing::go_on_from(uint32_t position, const Part& part) {
  if (position < part.begin)
    read_on_from(position);
  else
    sent_ = position;
}

// Takes the token that the step drew at the part's draw `i`, or chooses it from the logits.
Status Writing::take_draw(const Part& part, uint32_t i, Executor& executor, const float* logits) {
  if (part.on_host) {
    const Status chosen = text_.choose(model_, logits, !options_.ignore_end, &drawn_);
    if (chosen.code == Code::Cancelled) return end(StopReason::Cancelled);
    GRETA_TRY(chosen);
  } else {
    drawn_ = int32_t(executor.drawn(text_.sequence, part.end() - 1 - part.guesses + i));
    if (drawn_ == int32_t(kNoDraw)) return no_finite_logit();
  }
  push_draft({&drawn_, 1});
  return take_token(drawn_, part.on_host ? logits : nullptr, executor);
}

Status Writing::take_token(int32_t token, const float* logits, Executor& executor) {
  if (token == kNoToken || (!options_.ignore_end && model_.tokenizer->is_end(token)))
    return end(StopReason::End);
  piece_.clear();
  const bool more = stream_->push(token, &piece_);
  text_.tokens.push_back(token);  // it has room
  ++result_.generated_tokens;
  result_.reasoning_tokens += parser_ && parser_->reasoning();
  bool wanted = !parser_ || parser_->push(piece_);
  wanted = give(token, piece_, logits) && wanted;
  if (!more) return end(StopReason::String);
  if (!wanted) return end(StopReason::Cancelled);
  if (result_.generated_tokens == options_.max_tokens) return end(StopReason::Length);
  if (full_) return end(StopReason::Context);
  if (thinks_too_long()) return close_reasoning(executor);
  return text_.tokens.size() > context_ ? make_room(executor) : Status{};
}

// Where the context is full, some of the tokens leave, and those behind them are read again. So the cache is
// what reading the kept text for the first time gives, on every device and for every type of cache and
// architecture. Then the text goes on behind its last token as if it had not moved: the grammar and the
// sampler keep what they know. The text ends if on_full gives no tokens.
Status Writing::make_room(Executor& executor) {
  std::vector<int32_t>& tokens = text_.tokens;
  const std::span<const int32_t> held = std::span(tokens).first(text_.fed);
  std::vector<int32_t> instead;
  if (options_.on_full) GRETA_TRY(options_.on_full(held, &instead));
  if (instead.empty()) return end(StopReason::Context);
  const uint32_t before = text_.fed, after = uint32_t(instead.size());
  if (after >= before)
    return greta::fail(Code::Full, "%u tokens shall take the place of %u, which makes no room", after,
                       before);
  const auto differs = std::mismatch(instead.begin(), instead.end(), held.begin()).first;
  // At least the last token is read again, since a step needs one.
  const auto common = uint32_t(std::min<size_t>(size_t(differs - instead.begin()), after - 1));
  took_back(common);
  const uint32_t there = executor.truncate(text_.sequence, common);
  std::copy(instead.begin() + common, instead.end(), tokens.begin() + common);
  tokens[after] = tokens.back();
  tokens.resize(after + 1);
  text_.fed = sent_ = read_from_ = there;
  read_to_ = after;
  leaving_ = before - after;
  ++era_;
  text_.sampler.move_back(leaving_);
  text_.grammar.move_back(leaving_);
  return {};
}

// ---- reasoning ------------------------------------------------------------------------------------

void Writing::limit_reasoning() {
  most_thought_ = options_.reasoning_tokens;
  if (most_thought_ >= 0 || !text_.grammar.active()) return;
  // What the grammar holds needs room too: an answer that is all reasoning would be of no use.
  const uint32_t left = context_ - read_to_;
  most_thought_ = int64_t(options_.max_tokens ? std::min(options_.max_tokens, left) : left) * 3 / 4;
}

bool Writing::thinks_too_long() const {
  return parser_ && most_thought_ >= 0 && parser_->reasoning() &&
         int64_t(result_.reasoning_tokens) >= most_thought_;
}

// Adds the text that closes the reasoning, as if the model had written it. A grammar holds what comes next.
Status Writing::add_closing() {
  const std::string closing = parser_->reasoning_end();
  std::vector<int32_t> tokens;
  GRETA_TRY(model_.tokenizer->encode(closing, {.add_special = false, .parse_special = true}, &tokens));
  text_.tokens.insert(text_.tokens.end(), tokens.begin(), tokens.end());
  parser_->push(closing);
  if (text_.grammar.active()) text_.grammar.begin(nullptr);
  return check_tokens(std::span(text_.tokens).subspan(text_.fed), text_.fed, context_, model_.shape.vocab);
}

// The text that closes the reasoning is read behind the token drawn last. What a step under way draws behind
// that token is dropped.
Status Writing::close_reasoning(Executor& executor) {
  if (text_.fed + kReasoningEndTokens >= context_) return end(StopReason::Context);
  piece_.clear();
  const bool more = stream_->finish(&piece_);
  parser_->push(piece_);
  if (more) GRETA_TRY(add_closing());
  give(kNoToken, piece_, nullptr);
  if (!more) return end(StopReason::String);
  stream_->begin_anew();
  ++era_;
  drawing_ = 0;
  push_draft(std::span(text_.tokens).subspan(text_.fed + 1));
  sent_ = read_from_ = has_states() ? executor.truncate(text_.sequence, text_.fed) : text_.fed;
  read_to_ = uint32_t(text_.tokens.size());
  return {};
}

// ---- its end --------------------------------------------------------------------------------------

Status Writing::end(StopReason reason) {
  goes_on_ = false;
  piece_.clear();
  if (stream_->found() < 0 && !stream_->finish(&piece_)) reason = StopReason::String;
  if (parser_) {
    result_.open_reasoning = parser_->reasoning();
    parser_->push(piece_);
    if (!parser_->finish()) reason = StopReason::Cancelled;
  }
  draft_.reset();  // on the thread that may use a second model
  head_ = nullptr;
  give(kNoToken, piece_, nullptr);
  result_.stop_string = stream_->found();
  result_.reason = reason;
  note_times();
  return {};
}

void Writing::fail(Status status) {
  goes_on_ = false;
  draft_.reset();
  head_ = nullptr;
  status_ = status;
  const char* text = error_text();
  const size_t bytes = std::min(strlen(text), sizeof error_ - 1);
  memcpy(error_, text, bytes);
  error_[bytes] = 0;
  note_times();
}

void Writing::note_times() {
  if (!begun_ns_) return;
  const uint64_t now = now_ns(), first = first_ns_ ? first_ns_ : now;
  result_.prompt_ns = first - begun_ns_;
  result_.generate_ns = now - first;
}

void Writing::read_on_from(uint32_t position) {
  read_before_ = std::max(read_before_, text_.fed);
  text_.fed = sent_ = read_from_ = position;
  read_to_ = uint32_t(text_.tokens.size());
  drawing_ = 0;
  full_ = false;
  ++era_;
}

void Writing::go_back(const Part& part, Executor& executor) {
  alone_to_ = std::max(alone_to_, part.end());
  read_on_from(executor.truncate(text_.sequence, sent_));
}

uint32_t Writing::leave() {
  read_on_from(0);
  return std::exchange(text_.sequence, ~0u);
}

}  // namespace greta
