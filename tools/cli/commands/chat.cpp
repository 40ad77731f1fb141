// greta-cli chat: declares its options, and decides whether there is one message or a conversation.
#include <CLI/Config.hpp>

#include "chat/talk.h"
#include "adapters.h"
#include "commands/commands.h"
#include "console.h"
#include "slips.h"

namespace greta::cli {
namespace {

int talk_until_done(const Engine& engine, ChatOptions& options, const std::optional<std::string>& message,
                    bool conversation) {
  Talk talk(engine, options, conversation);
  say_later_notes();
  if (message && !talk.ask(*message) && !conversation) return kExitFailed;
  if (!conversation || (message && options.single_turn)) return interrupted() ? kExitInterrupted : kExitOk;
  forget_interrupt();
  return talk.loop();
}

int chat(ChatOptions& options) {
  options.engine.verbosity.apply();
  options.arguments_json();  // reports wrong usage before the model is loaded
  const bool from_terminal = stdin_is_terminal();
  const std::optional<std::string> message = read_text(options.text, true);
  if (message && message->empty()) throw Misused("the message is empty");
  const bool conversation = !message || (options.interactive && from_terminal);
  const Engine engine = open_engine(options.engine, !conversation, &options.sampling);
  use_model_sampling(engine.model.get(), &options.sampling);
  set_sampling(engine.session.get(), options.sampling);
  PromptCache cache(options.cache, engine.session.get());
  const int code = talk_until_done(engine, options, message, conversation);
  cache.save(UINT32_MAX);
  return code;
}

void add_reasoning(CLI::App& app, ChatOptions& options) {
  app.add_option(
         "--reasoning", options.reasoning,
         "on|off: tell the template whether the model shall reason; show|hide|raw: what you see of it")
      ->type_name("WORD")
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->check(one_of({"on", "off", "auto", "show", "hide", "raw"}));
  app.add_option("--reasoning-budget", options.reasoning_budget,
                 "end the reasoning after N tokens; 0: no reasoning, -1: as long as the model wants")
      ->type_name("N")
      ->check(in_range(int64_t{-1}, INT32_MAX))
      ->capture_default_str();
  app.add_option("--reasoning-format", options.reasoning_format, "none: the same as --reasoning raw")
      ->type_name("FORM")
      ->check(one_of({"none", "auto", "deepseek", "deepseek-legacy"}))
      ->group("");
}

}  // namespace

Action chat_command(CLI::App& app) {
  auto options = std::make_shared<ChatOptions>();
  CLI::Option* system =
      app.add_option("--system-prompt", options->system, "tell the model this before all else");
  system->type_name("TEXT");
  app.add_option("--system-prompt-file", options->system_file, "take the system prompt from a file")
      ->type_name("FILE")
      ->excludes(system);
  add_options(app, options->text);
  app.add_flag("-i,--conversation,--interactive", options->interactive,
               "go on at the terminal after the message of -p or -f");
  app.add_flag("--single-turn", options->single_turn, "end after one question and one answer");
  app.add_option("-n,--predict", options->predict,
                 "answer with at most N tokens; -1: as long as the model wants")
      ->type_name("N")
      ->check(in_range(int64_t{-1}, INT32_MAX))
      ->capture_default_str();
  app.add_flag("--ignore-eos", options->ignore_end, "go on after the model has ended its answer");
  add_shift(app, options->shift, "let the oldest turns leave a full context, which is the default",
            "end an answer where the context is full");
  add_reasoning(app, *options);
  CLI::Option* form =
      app.add_option("--chat-template", options->chat_template,
                     "use this Jinja text in place of the model's, or chatml, llama3, gemma, phi3, mistral");
  form->type_name("TEXT");
  app.add_option("--chat-template-file", options->template_file, "take the template from a file")
      ->type_name("FILE")
      ->excludes(form);
  app.add_option("--chat-template-kwargs", options->template_arguments,
                 "pass a JSON object of variables to the template: '{\"enable_thinking\": false}'")
      ->type_name("JSON");
  app.add_option("--tools", options->tools_file, "let the model call the tools in this file, a JSON array")
      ->type_name("FILE");
  app.add_flag("--parse-content", options->parse_content,
               "read control tokens that are written out in messages as control tokens, not as text");
  app.add_flag("--simple-io", options->simple_io,
               "read plain lines, without editing and without escape sequences");
  app.add_flag("--show-timings", options->show_timings, "show tokens and speed after each answer");
  app.add_flag("--verbose-prompt", options->verbose_prompt, "show on stderr what the model reads");
  add_options(app, options->cache);
  add_options(app, options->sampling);
  add_options(app, options->engine);
  add_options(app, options->engine.adapters);
  app.footer(
      "With -p, -f or a pipe the text is one message. It is answered, and then the program ends.\n"
      "On a terminal Ctrl-C stops an answer, /help lists the commands, and Ctrl-D leaves.");
  return [options] { return chat(*options); };
}

}  // namespace greta::cli
