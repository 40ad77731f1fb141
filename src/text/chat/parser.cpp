// A state machine over a buffer. Each state takes off its front what is certain, and leaves what may yet be
// the beginning of a mark.
#include "text/chat/parser.h"

#include "text/chat/text.h"

namespace greta {

using Kind = ChatSection::Kind;

namespace {

// ---- the forms ----------------------------------------------------------------------------------

constexpr ChatSection kSections[] = {
    // Qwen 3, DeepSeek R1, GLM, Granite 3.3, SmolLM 3, MiniMax, Nemotron, ...
    {Kind::Reasoning, "</think>", "<think>", "</think>"},
    {Kind::Reasoning, "[THINK]", "[THINK]", "[/THINK]"},                                // Ministral
    {Kind::Reasoning, "<seed:think>", "<seed:think>", "</seed:think>"},                 // Seed-OSS
    {Kind::Reasoning, "<|START_THINKING|>", "<|START_THINKING|>", "<|END_THINKING|>"},  // Command R7B
    {Kind::Reasoning, "<|channel>thought", "<|channel>thought", "<channel|>"},          // Gemma 4
    {Kind::Reasoning, "</thinking>", "<thinking>", "</thinking>"},
    {Kind::Reasoning, "</thought>", "<thought>", "</thought>"},

    {Kind::Answer, "<response>", "<response>", "</response>"},                       // Granite 3.3
    {Kind::Answer, "<|START_RESPONSE|>", "<|START_RESPONSE|>", "<|END_RESPONSE|>"},  // Command R7B

    {Kind::Calls, "<tool_call>", "<tool_call>", "</tool_call>"},                 // Hermes, Qwen, GLM
    {Kind::Calls, "<function=", "<function=", "</function>", true},              // Qwen 3 Coder, bare
    {Kind::Calls, "<tool_calls>", "<tool_calls>", "</tool_calls>"},              // Apriel
    {Kind::Calls, "<TOOLCALL>", "<TOOLCALL>", "</TOOLCALL>"},                    // Nemotron
    {Kind::Calls, "<seed:tool_call>", "<seed:tool_call>", "</seed:tool_call>"},  // Seed-OSS
    {Kind::Calls, "<minimax:tool_call>", "<minimax:tool_call>", "</minimax:tool_call>"},        // MiniMax
    {Kind::Calls, "<|START_ACTION|>", "<|START_ACTION|>", "<|END_ACTION|>"},                    // Command R7B
    {Kind::Calls, "<|tool_call_start|>", "<|tool_call_start|>", "<|tool_call_end|>"},           // LFM2
    {Kind::Calls, "<|tool_call>", "<|tool_call>", "<tool_call|>"},                              // Gemma 4
    {Kind::Calls, "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"},  // DeepSeek
    {Kind::Calls, "｜DSML｜", "<｜DSML｜function_calls>", "</｜DSML｜function_calls>"},  // DeepSeek V3.2
    {Kind::Calls, "<|tool_calls_section_begin|>", "<|tool_calls_section_begin|>",
     "<|tool_calls_section_end|>"},                                              // Kimi K2
    {Kind::Calls, "<|function_call|>", "<|function_call|>", "<|message_sep|>"},  // GigaChat 3
    {Kind::Calls, "<|tool_call|>", "<|tool_call|>", ""},                         // Granite 3
    {Kind::Calls, "[TOOL_CALLS]", "[TOOL_CALLS]", ""},                           // Mistral
    {Kind::Calls, "<|python_tag|>", "<|python_tag|>", ""},                       // Llama 3.1
};

// gpt-oss: <|start|>ROLE to=RECIPIENT<|channel|>NAME <|constrain|>TYPE<|message|>TEXT<|end|>
constexpr std::string_view kStart = "<|start|>", kChannel = "<|channel|>", kMessage = "<|message|>",
                           kConstrain = "<|constrain|>";
constexpr std::string_view kMessageEnds[] = {"<|end|>", "<|return|>", "<|call|>", kStart, kChannel};
constexpr size_t kLongestHeader = 512;

// ---- looking for marks --------------------------------------------------------------------------

// The most bytes at the end of `text` that may be the beginning of `mark`.
size_t begun(std::string_view text, std::string_view mark) {
  for (size_t bytes = std::min(text.size(), mark.size() - 1); bytes > 0; --bytes)
    if (text.substr(text.size() - bytes) == mark.substr(0, bytes)) return bytes;
  return 0;
}

// Returns true if `text` begins with `mark`, or may do so once more has come.
bool may_become(std::string_view text, std::string_view mark) {
  return text.size() < mark.size() && mark.starts_with(text);
}

// Returns the number of bytes before the first mark, and sets *which to its index. Without a mark, *which is
// -1 and the bytes are those that cannot belong to one.
template <class Marks>
size_t before_mark(std::string_view text, const Marks& marks, int* which) {
  size_t first = text.npos, held = 0;
  *which = -1;
  int index = 0;
  for (const std::string_view mark : marks) {
    const size_t at = text.find(mark);
    // Of marks at one place, the longest counts.
    if (at < first || (at == first && at != text.npos && mark.size() > std::begin(marks)[*which].size())) {
      first = at;
      *which = index;
    }
    held = std::max(held, begun(text, mark));
    ++index;
  }
  return *which >= 0 ? first : text.size() - held;
}

}  // namespace

ChatForm chat_form(std::string_view chat_template) {
  const auto has = [&](std::string_view text) { return chat_template.find(text) != chat_template.npos; };
  ChatForm form;
  form.channels = has(kChannel) && has(kMessage);
  if (form.channels) return form;
  for (const ChatSection& section : kSections)
    if (has(section.in_template)) form.sections.push_back(&section);
  const bool llama3 = has("<|start_header_id|>") && (has("\"parameters\":") || has("<|python_tag|>"));
  form.bare_calls = llama3 && !has("<tool_call>");
  return form;
}

bool ChatForm::is_mark(std::string_view text) const {
  if (channels)
    return text == kMessage || text == kConstrain ||
           std::find(std::begin(kMessageEnds), std::end(kMessageEnds), text) != std::end(kMessageEnds);
  for (const ChatSection* section : sections)
    if (section->open.starts_with(text) || section->close == text) return true;
  return is_call_mark(text);
}

const ChatSection* ChatForm::opened_by(std::string_view prompt) const {
  prompt = prompt.substr(0, prompt.find_last_not_of(kBlanks) + 1);
  for (const ChatSection* section : sections)
    if (section->kind == Kind::Reasoning && prompt.ends_with(section->open)) return section;
  return nullptr;
}

// ---- in and out ---------------------------------------------------------------------------------

ChatParser::ChatParser(const ChatForm& form, const ToolList& tools, std::string_view prompt, ChatSink sink)
    : form_(form), tools_(tools), sink_(std::move(sink)) {
  if (form.channels) state_ = State::Header;
  if (const ChatSection* opened = form.opened_by(prompt)) {
    section_ = opened;
    state_ = State::Reasoning;
    trim_ = true;
  }
}

bool ChatParser::push(std::string_view text) {
  if (stopped_) return false;
  buffer_ += text;
  while (!stopped_ && step(false)) {
  }
  buffer_.erase(0, at_);
  at_ = 0;
  return !stopped_;
}

bool ChatParser::finish() {
  while (!stopped_ && step(true)) {
  }
  buffer_.clear();
  at_ = 0;
  const bool inside = reasoning();
  if (!stopped_ && !inside && !trim_ && !blanks_.empty()) stopped_ = !sink_.text(blanks_);
  blanks_.clear();
  const bool wanted = !stopped_;
  stopped_ = true;
  return wanted;
}

bool ChatParser::step(bool last) {
  using Parser = ChatParser;
  constexpr bool (Parser::* kSteps[])(bool) = {
      // by state
      &Parser::take_start,     &Parser::take_text,   &Parser::take_reasoning, &Parser::take_calls,
      &Parser::take_bare_call, &Parser::take_header, &Parser::take_message};
  return (this->*kSteps[size_t(state_)])(last);
}

bool ChatParser::reasoning() const {
  return state_ == State::Reasoning || (state_ == State::Message && thought_);
}

std::string_view ChatParser::reasoning_end() const {
  if (!reasoning()) return {};
  return form_.channels ? "<|end|><|start|>assistant<|channel|>final<|message|>" : section_->close;
}

// White space waits for what comes after it. It is dropped before a mark, and where trim_ says so.
void ChatParser::pass(std::string_view text, bool thought) {
  if (trim_) skip_blanks(&text);
  if (text.empty()) return;
  trim_ = false;
  const size_t end = text.find_last_not_of(kBlanks) + 1;
  const std::string_view white = text.substr(end);
  if (end > 0) {
    std::string piece;
    if (!blanks_.empty()) {
      piece = std::move(blanks_) + std::string(text.substr(0, end));
      blanks_.clear();
    }
    const std::string_view ready = piece.empty() ? text.substr(0, end) : std::string_view(piece);
    if (!(thought ? sink_.reasoning : sink_.text)(ready)) stopped_ = true;
  }
  blanks_ += white;
}

void ChatParser::say(size_t bytes) {
  const std::string_view text = rest().substr(0, bytes);
  drop(bytes);
  pass(text, false);
}

bool ChatParser::give(std::vector<ChatCall>&& calls) {
  blanks_.clear();
  trim_ = true;
  for (ChatCall& call : calls)
    if (!stopped_ && !sink_.call(std::move(call))) stopped_ = true;
  return !stopped_;
}

// ---- states -------------------------------------------------------------------------------------

// In this state, nothing but white space and reasoning has come so far.
bool ChatParser::take_start(bool last) {
  const std::string_view text = rest(), between = called_ ? " \t\r\n;" : kBlanks;  // Llama 3: call; call
  const std::string_view solid = text.substr(std::min(text.size(), text.find_first_not_of(between)));
  if (solid.empty() && !last) return false;
  for (const ChatSection* section : form_.sections) {
    if (section->kind != Kind::Reasoning) continue;
    if (solid.starts_with(section->open)) {
      drop(text.size() - solid.size() + section->open.size());
      section_ = section;
      state_ = State::Reasoning;
      trim_ = true;
      return true;
    }
    if (!last && may_become(solid, section->open)) return false;
  }
  const bool bare = form_.bare_calls && looks_for_calls() && solid.starts_with('{');
  if (bare) drop(text.size() - solid.size());
  state_ = bare ? State::BareCall : State::Text;
  return true;
}

bool ChatParser::take_text(bool last) {
  // The marks that open sections, and those that close an answer, which are dropped too.
  std::vector<std::string_view> marks;
  std::vector<const ChatSection*> opens;
  for (const ChatSection* section : form_.sections) {
    const bool wanted = section->kind == Kind::Answer || (section->kind == Kind::Calls && looks_for_calls());
    if (!wanted) continue;
    marks.push_back(section->open);
    opens.push_back(section);
    if (section->kind != Kind::Answer) continue;
    marks.push_back(section->close);
    opens.push_back(section);
  }
  int which;
  const std::string_view text = rest();
  const size_t bytes = before_mark(text, marks, &which);
  if (which < 0) {
    say(last ? text.size() : bytes);
    return false;
  }
  say(bytes);
  drop(marks[which].size());
  section_ = opens[which];
  searched_ = 0;
  if (section_->kind == Kind::Calls) {
    state_ = State::Calls;
  } else {
    blanks_.clear();
    trim_ = true;
  }
  return true;
}

bool ChatParser::take_reasoning(bool last) {
  const std::string_view marks[] = {section_->close};
  int which;
  const std::string_view text = rest();
  const size_t bytes = before_mark(text, marks, &which);
  const size_t taken = which < 0 && last ? text.size() : bytes;
  drop(taken);
  pass(text.substr(0, taken), true);
  if (which < 0) return false;
  drop(marks[0].size());
  blanks_.clear();
  trim_ = true;
  state_ = State::Start;
  return true;
}

// A closing mark that begins within the limit is waited for, so that the result does not depend on how the
// text is cut.
bool ChatParser::take_calls(bool last) {
  const std::string_view text = rest(), end = section_->close.empty() ? section_->open : section_->close;
  size_t at = text.find(end, searched_);
  const bool closed = at != text.npos;
  if (!closed && !last && text.size() <= kMaxCallBytes + end.size()) {
    searched_ = text.size() - std::min(text.size(), end.size() - 1);
    return false;
  }
  if (!closed) at = text.size();
  const size_t after = at + (closed && !section_->close.empty() ? end.size() : 0);
  const bool too_long = at > kMaxCallBytes;
  std::vector<ChatCall> calls;
  std::string whole;
  if (section_->keep_open && !too_long)
    whole = std::string(section_->open) + std::string(text.substr(0, after));
  const std::string_view body = section_->keep_open ? std::string_view(whole) : text.substr(0, at);
  if (!too_long && parse_calls(body, tools_, &calls)) {
    state_ = State::Text;
    drop(after);
    return give(std::move(calls));
  }
  ++failed_calls_;
  // If the mark was within an argument, another one follows.
  const bool open_json = body.size() <= kMaxCallBytes && trim_blanks(body).starts_with('{') &&
                         json_extent(trim_blanks(body)) == 0;
  if (closed && !section_->close.empty() && open_json && looks_for_calls()) {
    searched_ = at + 1;
    return true;
  }
  // It is no call. Its mark is text, and what follows is looked at again.
  state_ = State::Text;
  pass(section_->open, false);
  return true;
}

// Takes JSON at the start of the answer if its first key is one that a call begins with.
bool ChatParser::take_bare_call(bool last) {
  static constexpr std::string_view kKeys[] = {"\"name\"",       "\"type\"",      "\"function\"",
                                               "\"parameters\"", "\"arguments\"", "\"id\""};
  constexpr size_t kMaxBytes = 1u << 16;
  const std::string_view text = rest();
  std::string_view key = text;
  if (!key.empty()) key.remove_prefix(1);
  skip_blanks(&key);
  bool begins = false, may = key.empty();
  for (const std::string_view wanted : kKeys) {
    begins |= key.starts_with(wanted);
    may |= may_become(key, wanted);
  }
  const size_t bytes = begins ? json_extent(text.substr(0, kMaxBytes)) : 0;
  if (!last && bytes == 0 && (may || (begins && text.size() < kMaxBytes))) return false;
  std::vector<ChatCall> calls;
  state_ = State::Text;
  if (bytes == 0 || !parse_calls(text.substr(0, bytes), tools_, &calls) || calls.size() != 1 ||
      !tools_.has(calls[0].name))
    return true;
  drop(bytes);
  give(std::move(calls));
  state_ = State::Start;  // there may be more
  called_ = true;
  return true;
}

bool ChatParser::take_header(bool last) {
  const std::string_view text = rest();
  std::string_view solid = text;
  skip_blanks(&solid);
  bool header = false, may = solid.empty();
  for (const std::string_view begin : {kStart, kChannel, kMessage, kConstrain, std::string_view("to=")}) {
    header |= solid.starts_with(begin);
    may |= may_become(solid, begin);
  }
  const size_t end = text.find(kMessage);
  if (end == text.npos && (may || (header && text.size() <= kLongestHeader + kMessage.size()))) {
    if (last) drop(text.size());  // the answer ends within a header, so nothing was said
    return false;
  }
  recipient_.clear();
  thought_ = false;
  state_ = State::Message;
  searched_ = 0;
  if (!header || end > kLongestHeader) {
    say(1);  // it is no header; the text after this character may begin with a mark
    return true;
  }
  const std::string_view head = text.substr(0, end);
  const auto word_after = [&](std::string_view mark) -> std::string_view {
    const size_t at = head.find(mark);
    if (at == head.npos) return {};
    const std::string_view word = head.substr(at + mark.size());
    return word.substr(0, word.find_first_of(" \t\r\n<"));
  };
  std::string_view to = word_after("to=");
  if (to.starts_with("functions.")) to.remove_prefix(10);
  recipient_ = to;
  thought_ = to.empty() && word_after(kChannel) == "analysis";
  drop(end + kMessage.size());
  blanks_.clear();
  trim_ = thought_;
  return true;
}

bool ChatParser::take_message(bool last) {
  const std::string_view text = rest();
  int which;
  const bool call = !recipient_.empty();
  size_t bytes = searched_ + before_mark(text.substr(searched_), kMessageEnds, &which);
  if (call && bytes > kMaxCallBytes) {
    recipient_.clear();  // too long for a call
    searched_ = 0;
    return true;
  }
  if (which < 0 && last) bytes = text.size();
  if (call && which < 0 && !last) {
    searched_ = bytes;
    return false;
  }
  std::vector<ChatCall> calls;
  const std::string_view body = text.substr(0, bytes);
  drop(bytes);
  if (call && parse_call(recipient_, body, &calls))
    give(std::move(calls));
  else
    pass(body, thought_);
  searched_ = 0;
  if (which < 0) return false;
  const bool header_follows = kMessageEnds[which] == kStart || kMessageEnds[which] == kChannel;
  if (!header_follows) drop(kMessageEnds[which].size());
  blanks_.clear();
  state_ = State::Header;
  return true;
}

}  // namespace greta
