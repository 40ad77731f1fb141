// The table of routes, and errors in the form of each API.
#include <cstring>

#include "endpoints.h"
#include "server.h"

namespace greta::serve {
namespace {

constexpr Route kRoutes[] = {
    {"GET", "/health", Form::OpenAi, kOpen | kQuick | kWithoutModel, health},
    {"GET", "/ready", Form::OpenAi, kOpen | kQuick | kWithoutModel, health},
    {"GET", "/", Form::OpenAi, kOpen | kQuick | kWithoutModel, page},
    {"GET", "/page/*", Form::OpenAi, kOpen | kQuick | kWithoutModel, page},
    {"GET", "/models", Form::OpenAi, kQuick | kWithoutModel, list_models},
    {"GET", "/models/*", Form::OpenAi, kQuick | kWithoutModel, show_model},
    {"POST", "/models/load", Form::OpenAi, kQuick | kWithoutModel, load_model},
    {"POST", "/models/unload", Form::OpenAi, kQuick | kWithoutModel, unload_model},
    {"GET", "/props", Form::OpenAi, kQuick | kAsleep, props},
    {"GET", "/slots", Form::OpenAi, kQuick | kAsleep, slots},
    {"POST", "/slots/*", Form::OpenAi, kSlow, slot_action},
    {"GET", "/lora-adapters", Form::OpenAi, kQuick, list_adapters},
    {"POST", "/lora-adapters", Form::OpenAi, kQuick, set_adapters},
    {"GET", "/metrics", Form::OpenAi, kQuick | kAsleep, metrics},
    {"POST", "/chat/completions", Form::OpenAi, 0, chat_completions},
    {"POST", "/completions", Form::OpenAi, 0, completions},
    {"POST", "/completion", Form::OpenAi, 0, native_completion},
    {"POST", "/infill", Form::OpenAi, 0, infill},
    {"POST", "/embeddings", Form::OpenAi, 0, embeddings},
    {"POST", "/embedding", Form::OpenAi, 0, embeddings},
    {"POST", "/tokenize", Form::OpenAi, 0, tokenize},
    {"POST", "/detokenize", Form::OpenAi, 0, detokenize},
    {"POST", "/apply-template", Form::OpenAi, 0, apply_template},
    {"POST", "/chat/completions/input_tokens", Form::OpenAi, 0, input_tokens},
    {"POST", "/responses", Form::OpenAi, 0, responses},
    {"POST", "/messages", Form::Anthropic, 0, messages},
    {"POST", "/messages/count_tokens", Form::Anthropic, 0, count_tokens},
    {"GET", "/api/version", Form::Ollama, kQuick | kWithoutModel, ollama_version},
    {"GET", "/api/tags", Form::Ollama, kQuick | kWithoutModel, ollama_tags},
    {"POST", "/api/show", Form::Ollama, 0, ollama_show},
    {"POST", "/api/chat", Form::Ollama, 0, ollama_chat},
    {"POST", "/api/generate", Form::Ollama, 0, ollama_generate},
};

struct ErrorType {
  int status;
  const char *type, *anthropic;
};
constexpr ErrorType kErrorTypes[] = {
    {400, "invalid_request_error", "invalid_request_error"},
    {401, "authentication_error", "authentication_error"},
    {403, "permission_error", "permission_error"},
    {404, "not_found_error", "not_found_error"},
    {405, "invalid_request_error", "invalid_request_error"},
    {408, "timeout_error", "timeout_error"},
    {413, "invalid_request_error", "request_too_large"},
    {429, "rate_limit_error", "rate_limit_error"},
    {431, "invalid_request_error", "invalid_request_error"},
    {501, "not_supported_error", "invalid_request_error"},
    {503, "unavailable_error", "overloaded_error"},
};

std::string plain_path(const std::string& path) {
  std::string plain = path;
  if (plain.starts_with("/v1/")) plain.erase(0, 3);
  while (plain.size() > 1 && plain.back() == '/') plain.pop_back();
  return plain;
}

bool matches(const Route& route, const std::string& path) {
  const size_t length = std::strlen(route.path);
  if (route.path[length - 1] != '*') return path == route.path;
  return path.size() >= length && path.compare(0, length - 1, route.path, length - 1) == 0;
}

}  // namespace

const Route* find_route(const std::string& method, const std::string& path, std::string* allowed_methods) {
  const std::string plain = plain_path(path);
  const std::string& wanted = method == "HEAD" ? "GET" : method;
  for (const Route& route : kRoutes) {
    if (!matches(route, plain)) continue;
    if (wanted == route.method) return &route;
    *allowed_methods += (allowed_methods->empty() ? "" : ", ") + std::string(route.method);
  }
  return nullptr;
}

Form form_of(const std::string& path) {
  const std::string plain = plain_path(path);
  if (plain.starts_with("/messages")) return Form::Anthropic;
  return plain.starts_with("/api/") ? Form::Ollama : Form::OpenAi;
}

Json error_json(Form form, const Refused& refused) {
  const ErrorType* found = nullptr;
  for (const ErrorType& row : kErrorTypes)
    if (row.status == refused.status) found = &row;
  if (form == Form::Ollama) return {{"error", refused.message}};
  if (form == Form::Anthropic) {
    const char* type = found ? found->anthropic : "api_error";
    return {{"type", "error"}, {"error", {{"type", type}, {"message", refused.message}}}};
  }
  const std::string type = !refused.type.empty() ? refused.type : found ? found->type : "server_error";
  Json error = {{"message", refused.message}, {"type", type}, {"param", nullptr}, {"code", nullptr}};
  if (!refused.param.empty()) error["param"] = refused.param;
  if (type == "exceed_context_size_error") error["code"] = "context_length_exceeded";
  if (refused.more.is_object()) error.update(refused.more);
  return {{"error", error}};
}

Response error_response(Form form, const Refused& refused) {
  Response response;
  response.status = refused.status;
  response.body = dump(error_json(form, refused));
  if (refused.retry_s > 0) response.headers.emplace_back("Retry-After", std::to_string(refused.retry_s));
  if (refused.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

}  // namespace greta::serve
