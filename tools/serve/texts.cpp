// Vectors, tokens and templates.
#include "endpoints.h"

namespace greta::serve {
namespace {

constexpr size_t kMostInputs = 2048;

std::string base64(const std::vector<float>& values) {
  constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto* bytes = reinterpret_cast<const unsigned char*>(values.data());  // little-endian float32
  const size_t count = values.size() * sizeof(float);
  std::string text;
  for (size_t i = 0; i < count; i += 3) {
    const size_t rest = std::min<size_t>(count - i, 3);
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) group = group << 8 | (k < rest ? bytes[i + k] : 0U);
    for (size_t k = 0; k < 4; ++k) text += k <= rest ? kLetters[group >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

class VectorSink : public Sink {
 public:
  VectorSink(std::string name, size_t count, bool base64)
      : name_(std::move(name)), vectors_(count), base64_(base64) {}

  void event(uint32_t index, const greta_request_event& event) override {
    if (event.kind == GRETA_EVENT_EMBEDDING)
      vectors_[index].assign(event.embedding, event.embedding + event.embedding_count);
  }
  void ended(uint32_t, const greta_request_result& result) override { tokens_ += result.prompt_tokens; }
  void failed(Reply& reply, const Refused& error) override {
    reply.send(error_response(Form::OpenAi, error));
  }
  void done(Reply& reply) override {
    Json data = Json::array();
    for (size_t i = 0; i < vectors_.size(); ++i)
      data.push_back({{"object", "embedding"},
                      {"index", i},
                      {"embedding", base64_ ? Json(base64(vectors_[i])) : Json(vectors_[i])}});
    const Json json = {{"object", "list"},
                       {"data", std::move(data)},
                       {"model", name_},
                       {"usage", {{"prompt_tokens", tokens_}, {"total_tokens", tokens_}}}};
    reply.send({200, "application/json; charset=utf-8", dump(json), {}});
  }

 private:
  std::string name_;
  std::vector<std::vector<float>> vectors_;
  const bool base64_;
  uint64_t tokens_ = 0;
};

}  // namespace

void embeddings(Context& context) {
  const Model& model = context.model();
  const Json& body = context.body();
  const Fields fields(body);
  Ask base = model.defaults;
  base.embed = true;
  const std::string* form = fields.word("encoding_format", {"float", "base64"});
  const int64_t width = model.info.width;
  if (const auto size = fields.whole("dimensions", 1, INT32_MAX); size && *size != width)
    fields.wrong("dimensions", std::to_string(width) + ", as the model has them", Json(*size));
  if (const auto norm = fields.whole("embd_normalize", -1, 2)) {
    if (*norm != -1 && *norm != 2) fields.wrong("embd_normalize", "2 or -1", Json(*norm));
    base.embed_raw = *norm == -1;
  }
  const char* input = fields.has("input") ? "input" : "content";  // llama.cpp's name
  std::vector<JobItem> items;
  for (std::vector<int32_t>& tokens :
       prompts_of(fields, fields.has(input) ? input : "input", model.tokenizer, kMostInputs)) {
    auto ask = std::make_shared<Ask>(base);
    ask->tokens = std::move(tokens);
    items.push_back({std::move(ask), 0});
  }
  const std::string* name = fields.text("model");
  auto sink =
      std::make_unique<VectorSink>(name ? *name : model.name, items.size(), form && *form == "base64");
  context.start(std::move(sink), std::move(items));
}

void tokenize(Context& context) {
  const greta_tokenizer* tokenizer = context.model().tokenizer;
  const Json& body = context.body();
  const Fields fields(body);
  const std::string* text = fields.text("content");
  if (!text) throw Refused(400, "content is missing", "content");
  const uint32_t flags = (fields.flag("add_special").value_or(false) ? uint32_t{GRETA_ENCODE_BOS} : 0) |
                         (fields.flag("parse_special").value_or(true) ? uint32_t{GRETA_ENCODE_SPECIAL} : 0);
  const std::vector<int32_t> tokens = encode(tokenizer, *text, flags);
  if (!fields.flag("with_pieces").value_or(false)) return context.send({{"tokens", tokens}});
  Json list = Json::array();
  for (const int32_t token : tokens) {
    const std::string piece = piece_of(tokenizer, token);
    Json bytes = Json::array();
    for (const char each : piece) bytes.push_back(static_cast<unsigned char>(each));
    list.push_back({{"id", token}, {"piece", is_utf8(piece) ? Json(piece) : bytes}});
  }
  context.send({{"tokens", list}});
}

void detokenize(Context& context) {
  const greta_tokenizer* tokenizer = context.model().tokenizer;
  const Json& body = context.body();
  const std::vector<int32_t> tokens = tokens_of(Fields(body), "tokens", tokenizer);
  context.send({{"content", decode(tokenizer, tokens.data(), tokens.size())}});
}

void apply_template(Context& context) {
  const Model& model = context.model();
  const Json& body = context.body();
  Ask ask = model.defaults;
  std::string skipped;
  read_conversation(Fields(body), &ask, &skipped);
  Prompt prompt;
  const greta_status status = make_prompt(model.service, ask, &prompt);
  if (status != GRETA_OK) throw refusal_of(status);
  context.send({{"prompt", prompt.text}});
}

}  // namespace greta::serve
