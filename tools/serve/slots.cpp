// llama.cpp's slots: what runs, and the texts of requests that have ended, which are saved to files, given
// back to the prefix cache, and forgotten.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "endpoints.h"

namespace greta::serve {

void slots(Context& context) {
  if (!context.server.options().slots) throw Refused(501, "the server was started with --no-slots");
  Hosted* hosted = context.hosted;
  const Json length =
      context.asleep ? context.server.models().props_asleep(hosted)["n_ctx"] : Json(context.model().context);
  Json list = Json::array();
  for (uint32_t i = 0; i < hosted->options->parallel; ++i)
    list.push_back({{"id", i}, {"n_ctx", length}, {"is_processing", false}});
  if (context.asleep) return context.send(list);
  for (const Slot& slot : hosted->jobs->slots()) {
    if (slot.number >= list.size()) continue;
    const greta_request_info& info = slot.info;
    const int64_t rest = slot.max_tokens < 0 ? -1 : slot.max_tokens - int64_t{info.generated_tokens};
    Json& json = list[slot.number];
    json["is_processing"] = true;
    json["id_task"] = slot.id;
    json["n_prompt_tokens"] = info.prompt_tokens;
    json["n_prompt_tokens_processed"] = std::min(info.read_tokens, info.prompt_tokens);
    json["n_prompt_tokens_cache"] = info.cached_tokens;
    json["next_token"] = {{"n_decoded", info.generated_tokens}, {"n_remain", rest}, {"has_next_token", true}};
  }
  context.send(list);
}

namespace {

constexpr size_t kMostName = 200;  // bytes of a file's name

using tools::Request;

// Runs a request of this thread's own to its end.
Request run_alone(const Model& model, greta_request_options options, greta_request_result* result) {
  options.no_answer = 1;
  greta_request* added = nullptr;
  const greta_status status = greta_service_add(model.service, &options, &added);
  if (status != GRETA_OK) throw refusal_of(status);
  Request request(added);
  auto event = sized<greta_request_event>();
  do {
    if (greta_request_next(added, UINT64_MAX, &event) != GRETA_OK) break;
  } while (event.kind != GRETA_EVENT_END);
  *result = sized<greta_request_result>();
  const greta_status ended = greta_request_finish(added, result);
  if (ended != GRETA_OK) throw refusal_of(ended);
  if (result->reason == GRETA_STOP_CANCELLED) throw Refused(503, "the server is stopping");
  return request;
}

// A new file that gets its name when all of it is written.
class NewFile {
 public:
  explicit NewFile(std::string path) : path_(std::move(path)), begun_(path_ + ".XXXXXX") {
    const int file = mkstemp(begun_.data());  // readable by this user alone
    file_ = file < 0 ? nullptr : fdopen(file, "wb");
    if (!file_) failed();
  }
  ~NewFile() {
    if (!file_) return;
    std::fclose(file_);
    unlink(begun_.c_str());
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  static int write(void* user, const void* bytes, uint64_t count) {
    auto* to = static_cast<NewFile*>(user);
    to->bytes_ += count;
    return std::fwrite(bytes, 1, count, to->file_) == count ? 0 : 1;
  }
  void finish() {
    const bool closed = std::fclose(std::exchange(file_, nullptr)) == 0;
    if (closed && std::rename(begun_.c_str(), path_.c_str()) == 0) return;
    unlink(begun_.c_str());
    failed();
  }
  [[noreturn]] void failed() const {
    throw Refused(500, "cannot write the file: " + std::string(std::strerror(errno)));
  }
  uint64_t bytes() const { return bytes_; }

 private:
  std::string path_, begun_;
  std::FILE* file_ = nullptr;
  uint64_t bytes_ = 0;
};

struct SlotCall {
  Context& context;
  const Fields& fields;
  const uint32_t number;
  Jobs& jobs() const { return *context.hosted->jobs; }
  const Model& model() const { return context.model(); }

  // The file that the body names, in the folder of the server.
  std::string path() const {
    const std::string* name = fields.text("filename");
    if (!name) throw Refused(400, "filename is missing", "filename");
    const auto bad = [](char letter) {
      return static_cast<unsigned char>(letter) < 0x20 || letter == '/' || letter == '\\' || letter == 0x7f;
    };
    if (name->empty() || name->size() > kMostName || (*name)[0] == '.' ||
        std::any_of(name->begin(), name->end(), bad))
      fields.wrong("filename", "a name of at most 200 bytes without slashes, which begins with no dot",
                   Json(*name));
    return context.server.options().slot_folder + "/" + *name;
  }

  SlotText text() const {
    SlotText text = jobs().slot_text(number);
    if (text.tokens.empty())
      throw Refused(400, "slot " + std::to_string(number) + " is empty: no request has ended in it");
    return text;
  }
};

double ms_since(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count();
}

// The prefix cache has most of the text, and the rest is computed.
Json save(const SlotCall& call) {
  const auto began = std::chrono::steady_clock::now();
  const std::string path = call.path();
  SlotText text = call.text();
  // A state can be given back to the cache where it stands behind whole pages.
  if (call.model().info.recurrent_layers > 0) text.tokens.resize(text.tokens.size() / kPage * kPage);
  if (text.tokens.empty())
    throw Refused(400, "the slot has less than the " + std::to_string(kPage) +
                           " tokens behind which a state of this model can be saved");
  auto options = sized<greta_request_options>();
  options.tokens = text.tokens.data();
  options.token_count = text.tokens.size();
  options.salt = text.salt;
  options.keep_state = 1;
  greta_request_result result;
  const Request request = run_alone(call.model(), options, &result);
  NewFile file(path);
  const greta_status status = greta_request_save(request.get(), NewFile::write, &file);
  if (status == GRETA_ERROR_CANCELLED) file.failed();
  if (status != GRETA_OK) throw refusal_of(status);
  file.finish();
  return {{"n_saved", text.tokens.size()},
          {"n_written", file.bytes()},
          {"timings", {{"save_ms", ms_since(began)}}}};
}

Json restore(const SlotCall& call) {
  const auto began = std::chrono::steady_clock::now();
  const std::string path = call.path();
  struct stat about{};
  if (stat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode))
    throw Refused(400, "there is no file of this name", "filename");
  auto source = sized<greta_source>();
  source.path = path.c_str();
  Ask ask;
  read_sampling(call.fields, call.model().tokenizer, &ask);  // for its salt
  auto options = sized<greta_request_options>();
  options.state = &source;
  options.share_state = 1;
  options.salt = ask.salt;
  greta_request_result result;
  Request request;
  try {
    request = run_alone(call.model(), options, &result);
  } catch (Refused& refused) {
    if (refused.status == 500) refused.status = 400;  // it is the file's fault
    if (refused.status == 400) refused.type = "invalid_request_error", refused.param = "filename";
    throw;
  }
  const int32_t* tokens = nullptr;
  size_t count = 0;
  const greta_status status = greta_request_tokens(request.get(), &tokens, &count);
  if (status != GRETA_OK) throw refusal_of(status);
  call.jobs().set_slot_text(call.number, {{tokens, tokens + count}, ask.salt});
  return {{"n_restored", count}, {"n_read", about.st_size}, {"timings", {{"restore_ms", ms_since(began)}}}};
}

Json erase(const SlotCall& call) {
  const SlotText text = call.jobs().slot_text(call.number);
  const greta_status status =
      greta_service_forget(call.model().service, text.tokens.data(), text.tokens.size(), text.salt, nullptr);
  if (status != GRETA_OK) throw refusal_of(status);
  call.jobs().set_slot_text(call.number, {});
  return {{"n_erased", text.tokens.size()}};
}

struct SlotAction {
  const char* name;
  Json (*run)(const SlotCall& call);
};
constexpr SlotAction kActions[] = {{"save", save}, {"restore", restore}, {"erase", erase}};

}  // namespace

void slot_action(Context& context) {
  const Options& options = context.server.options();
  if (options.slot_folder.empty())
    throw Refused(501, "slots are not saved: the server was started without --slot-save-path FOLDER");
  const std::string& path = context.call.path;
  const std::string digits = path.substr(path.rfind('/') + 1);
  const bool number =
      !digits.empty() && digits.size() < 6 && digits.find_first_not_of("0123456789") == digits.npos;
  const uint32_t slots = context.hosted->options->parallel;
  if (!number || std::stoul(digits) >= slots)
    throw Refused(400,
                  "there is no slot " + json_string(digits) + ": they are 0 to " + std::to_string(slots - 1));
  const std::string wanted = in_query(context.call.query, "action");
  for (const SlotAction& action : kActions) {
    if (wanted != action.name) continue;
    const Json body = context.call.body.empty() ? Json::object() : context.body();
    const Fields fields(body);
    Json answer = {{"id_slot", std::stoul(digits)}};
    if (const std::string* name = fields.text("filename")) answer["filename"] = *name;
    answer.update(action.run({context, fields, static_cast<uint32_t>(std::stoul(digits))}));
    return context.send(answer);
  }
  throw Refused(400, "action is " + json_string(wanted) + ", expected save, restore or erase", "action");
}

}  // namespace greta::serve
