// Generation: the prompt in steps, then a token a step, drawn on the device.
#include <algorithm>

#include "engine/session.h"

namespace greta {

// Text of tokens as they come, always valid UTF-8.
struct Session::TokenStream {
  const Tokenizer& tokenizer;
  const GenerateOptions& options;
  bool strip_space;  // the space that the vocabulary puts before the first word of a text
  Utf8Stream stream;
  std::string piece, text;

  bool emit(int32_t token) {  // false: the caller wants to stop
    piece.clear();
    tokenizer.append_piece(token, false, &piece);
    if (strip_space && !piece.empty() && piece[0] == ' ') piece.erase(0, 1);
    strip_space = false;
    text.clear();
    stream.push(piece, &text);
    return !options.on_token || options.on_token(options.user, token, text.c_str(), text.size()) == 0;
  }
};

Status Session::feed(std::span<const int32_t> tokens, bool sample, const GenerateOptions& options) {
  const uint32_t begin = position_;
  GRETA_TRY(executor_->reserve(sequence_, begin, begin + uint32_t(tokens.size())));
  for (size_t done = 0; done < tokens.size();) {
    const size_t count = std::min<size_t>(executor_->plan().step_tokens, tokens.size() - done);
    rows_.clear();
    for (size_t i = 0; i < count; ++i)
      rows_.push_back({uint32_t(tokens[done + i]), position_ + uint32_t(i), sequence_,
                       sample && done + i + 1 == tokens.size()});
    const Status status = executor_->step(rows_, sample);
    if (!status.ok()) return take_back(status, begin);
    done += count;
    position_ += uint32_t(count);
    const bool stop = options.on_prompt && options.on_prompt(options.user, uint32_t(done), uint32_t(tokens.size())) != 0;
    if (stop || take_cancel())
      return take_back(fail(Code::Cancelled, "stopped after %zu of %zu tokens of the prompt", done, tokens.size()),
                       position_);
  }
  return {};
}

Status Session::generate(std::span<const int32_t> tokens, const GenerateOptions& options, GenerateResult* result) {
  GRETA_TRY(check(tokens));
  take_cancel();
  const Tokenizer& tokenizer = *executor_->model().tokenizer;
  const uint64_t start = now_ns();
  const bool fresh = position_ == 0 && tokens.size() == 1 && tokens[0] == tokenizer.bos();
  GenerateResult r;
  r.prompt_tokens = uint32_t(tokens.size());
  const Status fed = feed(tokens, true, options);
  if (!fed.ok() && fed.code != Code::Cancelled) return fed;
  const uint64_t prompt_end = now_ns();
  r.prompt_ns = prompt_end - start;
  TokenStream stream{tokenizer, options, fresh && tokenizer.adds_space_prefix(), {}, {}, {}};
  for (r.reason = StopReason::Cancelled; fed.ok();) {
    const int32_t token = int32_t(executor_->last_token(sequence_));
    if (!options.ignore_end && tokenizer.is_end(token)) {
      r.reason = StopReason::End;
      break;
    }
    ++r.generated_tokens;
    if (!stream.emit(token) || take_cancel()) break;
    r.reason = StopReason::Length;
    if (r.generated_tokens == options.max_tokens) break;
    r.reason = StopReason::Context;
    if (position_ == context()) break;
    r.reason = StopReason::Cancelled;
    const Executor::Row row{kTokenFromSample, position_, sequence_, true};
    const Status status = executor_->step({&row, 1}, true);
    if (status.code == Code::Full) {  // the pool that sessions share has run out
      r.reason = StopReason::Context;
      break;
    }
    GRETA_TRY(status);
    ++position_;
  }
  r.generate_ns = now_ns() - prompt_end;
  if (options.on_token) {
    stream.text.clear();
    stream.stream.flush(&stream.text);
    if (!stream.text.empty()) options.on_token(options.user, -1, stream.text.c_str(), stream.text.size());
  }
  *result = r;
  return {};
}

}  // namespace greta
