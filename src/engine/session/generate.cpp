// Generation feeds the prompt in steps, then one token a step. The device draws tokens if its kernel supports
// the settings, else the host chooses from the step's logits. If the device draws, the next step is submitted
// before the token is known, so that the device does not wait for the host. It is dropped if the text ends.
#include <algorithm>

#include "engine/session/session.h"
#include "engine/session/text_stream.h"

namespace greta {

// Gives the caller the text of tokens as they come.
struct Session::TokenStream {
  const GenerateOptions& options;
  TextStream stream;
  std::string text;

  bool emit(int32_t token) {  // returns false if the caller wants to stop or a stop string was found
    text.clear();
    const bool more = token == kNoToken ? stream.finish(&text) : stream.push(token, &text);
    if (token == kNoToken && text.empty()) return more;
    const bool stopped =
        options.on_token && options.on_token(options.user, token, text.c_str(), text.size()) != 0;
    return more && !stopped;
  }
};

Status Session::feed(std::span<const int32_t> tokens, bool on_device, const GenerateOptions& options) {
  const uint32_t begin = position_;
  GRETA_TRY(executor_->reserve(sequence_, begin, begin + uint32_t(tokens.size())));
  for (size_t done = 0; done < tokens.size();) {
    const size_t count = std::min<size_t>(executor_->plan().step_tokens, tokens.size() - done);
    rows_.clear();
    for (size_t i = 0; i < count; ++i)
      rows_.push_back(
          {uint32_t(tokens[done + i]), position_ + uint32_t(i), sequence_, done + i + 1 == tokens.size()});
    const bool last = done + count == tokens.size();
    GRETA_TRY(executor_->submit(rows_, on_device, &flight_));
    if (!last || !on_device) GRETA_TRY(executor_->wait(flight_));
    fed(tokens.subspan(done, count));
    done += count;
    const bool stop =
        options.on_prompt && options.on_prompt(options.user, uint32_t(done), uint32_t(tokens.size())) != 0;
    if (stop || take_cancel())
      return fail(Code::Cancelled, "stopped after %zu of %zu tokens of the prompt", done, tokens.size());
  }
  return {};
}

// Submits the step of one token. It counts as fed only once the token is known to be wanted.
Status Session::submit_next(uint32_t token, bool on_device) {
  const Executor::Row row{token, position_, sequence_, true};
  return executor_->submit({&row, 1}, on_device, &flight_);
}

// Gives the token that the step `flight` draws, or chooses it from the step's logits.
Status Session::draw(bool on_device, uint32_t flight, bool may_end, int32_t* token) {
  GRETA_TRY(executor_->wait(flight));
  if (!on_device) return sample(executor_->logits(), may_end, token);
  *token = int32_t(executor_->drawn(sequence_, position_ - 1));
  return *token == int32_t(kNoDraw) ? no_finite_logit() : Status{};
}

Status Session::generate(std::span<const int32_t> tokens, const GenerateOptions& options,
                         GenerateResult* result) {
  GRETA_TRY(check(tokens));
  Undo undo{this, position_};
  GRETA_TRY(feed_and_draw(tokens, options, &undo, result));
  undo.keep();
  return {};
}

Status Session::feed_and_draw(std::span<const int32_t> tokens, const GenerateOptions& options, Undo* undo,
                              GenerateResult* result) {
  const Tokenizer& tokenizer = *executor_->model().tokenizer;
  const bool fresh = position_ == 0 && tokens.size() == 1 && tokens[0] == tokenizer.bos();
  const bool on_device = sampler_.on_device() && !grammar_.active();
  const bool strip_space = fresh && tokenizer.adds_space_prefix() && !grammar_.active();
  TokenStream stream{options, {tokenizer, strip_space, options.spoken}, {}};
  GRETA_TRY(stream.stream.open(options.stops));
  take_cancel();
  const uint64_t start = now_ns();
  GenerateResult r;
  r.prompt_tokens = uint32_t(tokens.size());
  const Status prompt = feed(tokens, on_device, options);
  if (!prompt.ok() && prompt.code != Code::Cancelled) return prompt;
  const uint64_t prompt_end = now_ns();
  r.prompt_ns = prompt_end - start;
  for (r.reason = StopReason::Cancelled; prompt.ok();) {
    const uint32_t flight = flight_;
    const bool last = r.generated_tokens + 1 == options.max_tokens || position_ == context();
    Status status;
    const bool ahead = on_device && !last && executor_->model().device->info().runs_ahead;
    if (ahead) status = submit_next(kTokenFromSample, true);
    int32_t token = kNoToken;
    const Status drawn = draw(on_device, flight, !options.ignore_end, &token);
    if (drawn.code == Code::Cancelled) break;
    GRETA_TRY(drawn);
    if (token == kNoToken || (!options.ignore_end && tokenizer.is_end(token))) {
      r.reason = StopReason::End;
      break;
    }
    ++r.generated_tokens;
    if (!stream.emit(token) || take_cancel()) break;
    r.reason = StopReason::Length;
    if (r.generated_tokens == options.max_tokens) break;
    if (position_ == context()) {
      const Status room = make_room(on_device, options, undo, &r);
      r.reason = room.code == Code::Cancelled ? StopReason::Cancelled : StopReason::Context;
      if (room.ok() ? position_ == context() : room.code == Code::Cancelled) break;
      GRETA_TRY(room);
    }
    r.reason = StopReason::Cancelled;
    if (!ahead) status = submit_next(uint32_t(token), on_device);
    if (status.code == Code::Full) {  // the sessions have used up the pages that they share
      r.reason = StopReason::Context;
      break;
    }
    if (status.code == Code::Cancelled) break;  // it came while kernels were compiled
    GRETA_TRY(status);
    fed({&token, 1});
  }
  executor_->truncate(sequence_, position_);
  r.generate_ns = now_ns() - prompt_end;
  if (stream.stream.found() < 0) stream.emit(kNoToken);
  r.stop_string = stream.stream.found();
  if (r.stop_string >= 0) r.reason = StopReason::String;
  *result = r;
  return {};
}

}  // namespace greta
