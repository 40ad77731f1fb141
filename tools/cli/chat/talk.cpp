// The conversation itself: writes events to the streams and makes messages of lines.
#include "chat/talk.h"

#include <ctime>

#include "console.h"

namespace greta::cli {
namespace {

constexpr char kDim[] = "\x1b[2m", kPlain[] = "\x1b[0m";

int64_t local_time_s() {
  const time_t now = time(nullptr);
  tm local = {};
  localtime_r(&now, &local);
  return int64_t{now} + local.tm_gmtoff;
}

// Unlike check(), this does not end the program after a Ctrl-C, which only stops an answer here.
void must(greta_status status) {
  if (status != GRETA_OK) throw Failed(greta_error_text());
}

double speed(uint32_t tokens, uint64_t ns) { return ns == 0 ? 0.0 : 1e9 * tokens / static_cast<double>(ns); }

}  // namespace

ShowReasoning ChatOptions::show_reasoning() const {
  ShowReasoning shows = reasoning_format == "none" ? ShowReasoning::kRaw : ShowReasoning::kAuto;
  for (const std::string& word : reasoning) {
    if (word == "show") shows = ShowReasoning::kShow;
    if (word == "hide") shows = ShowReasoning::kHide;
    if (word == "raw") shows = ShowReasoning::kRaw;
  }
  return shows;
}

// Some templates read enable_thinking and others thinking.
std::string ChatOptions::arguments_json() const {
  Json arguments = Json::object();
  std::string thinks = reasoning_budget == 0 ? "off" : "";
  for (const std::string& word : reasoning) {
    if (word == "on" || word == "off") thinks = word;
  }
  if (!thinks.empty()) arguments["enable_thinking"] = arguments["thinking"] = thinks == "on";
  if (template_arguments.empty()) return arguments.dump();
  const Json given = Json::parse(template_arguments, nullptr, false);
  if (!given.is_object()) throw Misused("--chat-template-kwargs takes a JSON object");
  arguments.update(given);
  return arguments.dump();
}

Talk::Talk(const Engine& engine, ChatOptions& options, bool conversation)
    : engine_(engine), options_(options) {
  shows_ = options.show_reasoning();
  if (shows_ == ShowReasoning::kAuto) {
    shows_ = conversation && stderr_is_terminal() ? ShowReasoning::kShow : ShowReasoning::kHide;
  }
  if (conversation)
    editor_ = std::make_unique<LineEditor>(options.simple_io, stderr_has_colour(), chat_completions);
  std::string form = options.chat_template;
  if (!options.template_file.empty()) form = read_file(options.template_file);
  if (!options.tools_file.empty()) tools_ = read_file(options.tools_file);
  const std::string arguments = options.arguments_json();
  auto open = sized<greta_chat_options>();
  open.raw = shows_ == ShowReasoning::kRaw ? 1 : 0;
  open.chat_template = form.empty() ? nullptr : form.c_str();
  open.tools = tools_.empty() ? nullptr : tools_.c_str();
  open.arguments = arguments.c_str();
  open.now_s = local_time_s();
  open.parse_content = options.parse_content ? 1 : 0;
  open.forget_oldest = options.shift.shift ? 1 : 0;
  greta_chat* chat = nullptr;
  const greta_status status = greta_chat_open(engine.session.get(), &open, &chat);
  chat_.reset(chat);
  check(status);
  if (!options.system_file.empty()) {
    options.system = read_file(options.system_file);
    if (!options.system.empty() && options.system.back() == '\n') options.system.pop_back();
  }
  if (!options.system.empty()) set_system(options.system);
}

// ---- writing answers ----

// Ends what was written last, before something else is written.
void Talk::end_part() {
  end_words();
  if (in_reasoning_) {
    write_error(thoughts_.flush() + (stderr_has_colour() ? kPlain : "") + (line_open_ ? "\n\n" : "\n"));
    thoughts_ = {};
  }
  in_reasoning_ = line_open_ = false;
}

void Talk::show(greta_chat_part part, std::string_view text) {
  if (part == GRETA_CHAT_REASONING) {
    if (shows_ == ShowReasoning::kHide) return;
    if (!in_reasoning_ && line_open_) write_words("\n");
    if (!in_reasoning_) end_words();
    if (!in_reasoning_ && stderr_has_colour()) write_error(kDim);
    in_reasoning_ = true;
    write_error(stderr_is_terminal() ? thoughts_.push(printable_lines(text), terminal_columns())
                                     : std::string(text));
  } else {
    if (in_reasoning_) end_part();
    write_words(text);
  }
  wrote_ = true;
  if (!text.empty()) line_open_ = text.back() != '\n';
}

int Talk::on_event(void* user, const greta_chat_event* event) {
  Talk& self = *static_cast<Talk*>(user);
  if (event->part == GRETA_CHAT_PROMPT) {
    // The line of progress would erase an answer's line, within which turns have left.
    if (self.line_open_ || self.in_reasoning_) return interrupted() ? 1 : 0;
    if (event->done < event->total) {
      self.progress_.show_fraction(event->done, event->total);
    } else {
      self.progress_.clear();
    }
  } else if (event->part == GRETA_CHAT_TOOL_CALL) {
    if (self.line_open_ && !self.in_reasoning_) self.show(GRETA_CHAT_TEXT, "\n");
    Json call = {{"id", event->id}, {"name", event->name}};
    call["arguments"] = Json::parse(event->arguments, nullptr, false);
    self.show(GRETA_CHAT_TEXT, json_text(call, -1));
    self.calls_.push_back(std::move(call));
  } else {
    self.show(event->part, {event->text, event->bytes});
  }
  return !interrupted() && write_output("") ? 0 : 1;
}

bool Talk::answer() {
  calls_.clear();
  if (options_.verbose_prompt) {
    size_t bytes = 0;
    check(greta_chat_render(chat_.get(), 1, nullptr, 0, &bytes));
    std::string text(bytes + 1, '\0');
    check(greta_chat_render(chat_.get(), 1, text.data(), text.size(), &bytes));
    text.resize(bytes);
    write_error(printable_lines(text) + "\n");
  }
  auto options = sized<greta_chat_answer_options>();
  options.max_tokens = options_.predict < 0 ? 0 : static_cast<uint32_t>(options_.predict);
  options.ignore_end = options_.ignore_end ? 1 : 0;
  options.limit_reasoning = options_.reasoning_budget >= 0 ? 1 : 0;
  options.reasoning_tokens = options.limit_reasoning ? static_cast<uint32_t>(options_.reasoning_budget) : 0;
  std::vector<std::string> texts;
  std::vector<const char*> stops;
  for (const std::string& stop : options_.sampling.stops) texts.push_back(unescape(stop));
  for (const std::string& text : texts) stops.push_back(text.c_str());
  options.stop_strings = stops.data();
  options.stop_count = static_cast<uint32_t>(stops.size());
  options.on_event = on_event;
  options.user = this;
  auto result = sized<greta_chat_result>();
  greta_status status = GRETA_OK;
  {
    std::optional<SilentKeys> silent;
    if (editor_ && editor_->edits()) silent.emplace();
    status = greta_chat_answer(chat_.get(), &options, &result);
  }
  progress_.clear();
  if (in_reasoning_ || line_open_ || (!wrote_ && status == GRETA_OK)) {
    const bool thought = in_reasoning_;
    end_part();
    if (!thought) write_words("\n");
    end_words();
  }
  line_open_ = wrote_ = false;
  check_output();
  if (status == GRETA_ERROR_FULL) {
    say(std::string(greta_error_text()) + " (-c sets another length, /clear starts anew)");
    return false;
  }
  if (status == GRETA_ERROR_ARGUMENT && !interrupted()) {
    say(greta_error_text());
    return false;
  }
  if (!interrupted()) check(status);
  if (status == GRETA_OK) last_ = result;
  if (result.open_reasoning && result.end != GRETA_CHAT_END_CANCELLED) {
    note("the answer ended within its reasoning (see --reasoning show, --reasoning-budget N and -n)");
  }
  tell_of_context(result);
  if (options_.show_timings) {
    say(stats());
  } else {
    detail(stats());
  }
  return true;
}

void Talk::tell_of_context(const greta_chat_result& result) {
  const uint32_t context = greta_session_context(engine_.session.get());
  if (result.forgotten_messages > 0 && !told_forgotten_) {
    note(format(
        "the context of %u tokens is full: the model no longer reads the oldest turns (-c sets another "
        "length)",
        context));
    told_forgotten_ = true;
  }
  if (result.end == GRETA_CHAT_END_CONTEXT)
    note(format("the context of %u tokens is full; /clear starts anew, -c sets another length", context));
}

std::string Talk::stats() const {
  if (last_.prompt_tokens == 0) return "nothing was answered yet";
  return format(
      "prompt %u tokens, %u of them reused, %.2f t/s; generated %u tokens, %.2f t/s; context %u of %u",
      last_.prompt_tokens, last_.reused_tokens,
      speed(last_.prompt_tokens - last_.reused_tokens, last_.prompt_ns), last_.generated_tokens,
      speed(last_.generated_tokens, last_.generate_ns), greta_session_position(engine_.session.get()),
      greta_session_context(engine_.session.get()));
}

bool Talk::ask(const std::string& text) {
  const uint32_t before = count();
  add({{"role", "user"}, {"content", attached_ + text}});
  attached_.clear();
  if (!answer()) {
    truncate(before);
    return false;
  }
  if (count() == before + 1) truncate(before);  // There was no answer, so the question is taken back, too.
  return true;
}

// ---- the conversation ----

void Talk::add(const Json& message) {
  const std::string json = json_text(message, -1);
  const greta_message given = {nullptr, nullptr, json.c_str()};
  must(greta_chat_add(chat_.get(), &given));
}

void Talk::truncate(uint32_t count) { must(greta_chat_truncate(chat_.get(), count)); }

Json Talk::messages() const {
  Json list = Json::array();
  for (uint32_t i = 0; i < count(); ++i) {
    greta_message message = {};
    must(greta_chat_get(chat_.get(), i, &message));
    list.push_back(Json::parse(message.json));
  }
  return list;
}

void Talk::set_messages(const Json& messages) {
  const Json before = this->messages();
  try {
    truncate(0);
    for (const Json& message : messages) add(message);
  } catch (const Failed&) {
    truncate(0);
    for (const Json& message : before) add(message);
    throw;
  }
  calls_.clear();
}

void Talk::clear() {
  const Json all = messages();
  truncate(!all.empty() && all[0]["role"] == "system" ? 1 : 0);
  calls_.clear();
  attached_.clear();
  told_forgotten_ = false;
}

uint32_t Talk::last_question() const {
  const Json all = messages();
  for (uint32_t i = count(); i > 0; --i) {
    if (all[i - 1]["role"] == "user") return i - 1;
  }
  return count();
}

bool Talk::undo() {
  const uint32_t question = last_question();
  if (question == count()) return false;
  truncate(question);
  calls_.clear();
  return true;
}

bool Talk::regenerate() {
  const uint32_t question = last_question();
  if (question == count()) return false;
  const Json before = messages();
  truncate(question + 1);
  // Draws depend on seed and position alone, so that another answer needs another seed.
  if (options_.sampling.seed >= 0) ++options_.sampling.seed;
  set_sampling(engine_.session.get(), options_.sampling);
  if (!answer() || count() == question + 1) set_messages(before);
  return true;
}

void Talk::set_system(const std::string& text) {
  Json all = messages();
  if (!all.empty() && all[0]["role"] == "system") all.erase(all.begin());
  if (!text.empty()) all.insert(all.begin(), Json{{"role", "system"}, {"content", text}});
  set_messages(all);
}

// ---- lines ----

// Reads a message. It has several lines if a line ends with \ or if """ stand around them. False after
// Ctrl-C.
bool Talk::read_message(std::string* text, bool* leave) {
  text->clear();
  *leave = false;
  bool quoted = false;
  for (bool first = true;; first = false) {
    std::string line;
    const LineEditor::Outcome outcome = editor_->read(first ? ">" : "...", &line);
    if (outcome == LineEditor::Outcome::kInterrupted) return false;
    if (outcome == LineEditor::Outcome::kEnd) {
      *leave = true;
      return false;
    }
    if (first && line.rfind("\"\"\"", 0) == 0) {
      quoted = true;
      line.erase(0, 3);
    }
    const size_t size = line.size();
    if (quoted) {
      const bool last = size >= 3 && line.compare(size - 3, 3, "\"\"\"") == 0;
      if (last) line.resize(size - 3);
      // A line end beside the quotes is not part of the message.
      if (!text->empty() && !(last && line.empty())) *text += '\n';
      *text += line;
      if (last) return true;
      continue;
    }
    *text += line;
    if (line.empty() || line.back() != '\\') return true;
    text->back() = '\n';
  }
}

bool Talk::answer_calls() {
  const std::vector<Json> calls = calls_;
  for (const Json& call : calls) {
    std::string result;
    if (editor_->read(call["name"].get<std::string>() + ">", &result) != LineEditor::Outcome::kLine)
      return false;
    add({{"role", "tool"}, {"tool_call_id", call["id"]}, {"name", call["name"]}, {"content", result}});
  }
  return true;
}

void Talk::toggle_timings() {
  options_.show_timings = !options_.show_timings;
  note(options_.show_timings ? "tokens and speed are shown after each answer"
                             : "tokens and speed are not shown");
}

void Talk::retry(const std::string& text) {
  const uint32_t question = last_question();
  if (question == count()) throw Failed("there is no question yet");
  const Json before = messages();
  std::string asked = text;
  if (asked.empty()) {
    if (!editor_ || !editor_->edits())
      throw Failed("write /retry TEXT: without line editing there is nothing to edit");
    const Json& content = before[question]["content"];
    if (!content.is_string()) throw Failed("the last question is no plain text: write /retry TEXT");
    if (editor_->read(">", &asked, content.get<std::string>()) != LineEditor::Outcome::kLine) return;
    if (asked.find_first_not_of(" \t\n") == std::string::npos) return;
    editor_->remember(asked);
  }
  truncate(question);
  if (!ask(asked) || count() == question) set_messages(before);
}

// Two lines: what runs, and where help is.
void Talk::greet() const {
  const greta_device_info device = describe(engine_.runtime.get());
  const uint32_t context = greta_session_context(engine_.session.get());
  const std::string of = context < engine_.info.context ? format(" of %u", engine_.info.context) : "";
  note(format("%s on %s (%s), context %u%s tokens", engine_.model_name.c_str(), device.id, device.name,
              context, of.c_str()));
  note("/help lists the commands, Ctrl-C stops an answer, and Ctrl-D leaves");
}

int Talk::loop() {
  greet();
  bool hinted = false;
  for (;;) {
    std::string text;
    bool leave = false;
    if (!read_message(&text, &leave)) {
      if (leave) break;
      if (hinted) note("Ctrl-D or /exit leaves");
      hinted = true;
      continue;
    }
    hinted = false;
    if (text.find_first_not_of(" \t\n") == std::string::npos) continue;
    editor_->remember(text);
    if (is_chat_command(text)) {
      if (!run_chat_command(*this, text)) return kExitOk;
    } else {
      const uint32_t before = count();
      ask(text.rfind("//", 0) == 0 ? text.substr(1) : text);
      while (!calls_.empty() && !interrupted()) {
        note("type what the call returned, or press Ctrl-C to take the question back");
        if (!answer_calls() || !answer()) {
          truncate(before);
          calls_.clear();
        }
      }
      if (options_.single_turn) return interrupted() ? kExitInterrupted : kExitOk;
    }
    forget_interrupt();
  }
  write_error("\n");
  return kExitOk;
}

}  // namespace greta::cli
