// The functions of greta.h for files and tokenizers.
#include <set>

#include "api/handles.h"

using namespace greta;

Status StoredSource::store(const greta_source* source) {
  GRETA_TRY(need(source, "source"));
  GRETA_TRY(read_options(source, &given));
  GRETA_TRY(check_reserved(given.reserved));
  const int ways = (given.path != nullptr) + (given.memory != nullptr) + (given.read_at != nullptr);
  if (ways != 1)
    return fail(Code::Argument,
                "a source needs exactly one of path, memory and read_at, but %d of them are set", ways);
  if (given.path) path = given.path;
  return read_flag(given.map, "map", &map);
}

Status StoredSource::open(Source* out) const {
  if (given.path) return out->open_file(path.c_str(), map);
  if (given.memory) return out->open_memory(given.memory, given.memory_bytes);
  const auto read_at = [](void* self, uint64_t offset, void* to, uint64_t bytes) {
    const greta_source& from = static_cast<const StoredSource*>(self)->given;
    return call_back("read_at", [&] { return from.read_at(from.user, offset, to, bytes); });
  };
  return out->open_callback(read_at, const_cast<StoredSource*>(this), given.size_bytes);
}

greta_status greta_file_open(const greta_source* source, greta_file** out_file) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(out_file, "out_file"));
    auto file = std::make_unique<greta_file>();
    GRETA_TRY(file->source.store(source));
    Source opened;
    GRETA_TRY(file->source.open(&opened));
    GRETA_TRY(file->gguf.open(std::move(opened)));
    for (const GgufTensor& tensor : file->gguf.tensors()) file->tensor_names.emplace_back(tensor.name);
    for (const GgufValue& pair : file->gguf.values()) {
      const bool array = pair.type == ValueType::Array;
      file->keys.emplace_back(pair.key);
      file->types.push_back(array ? std::string("array of ") + value_type_name(pair.element)
                                  : value_type_name(pair.type));
    }
    *out_file = file.release();
    return {};
  });
}

void greta_file_close(greta_file* file) { close_object(file); }

uint32_t greta_file_version(const greta_file* file) { return file ? file->gguf.version() : 0; }

uint64_t greta_file_size_bytes(const greta_file* file) {
  uint64_t bytes = 0;
  for (uint32_t part = 0; file && part < file->gguf.source().parts(); ++part)
    bytes += file->gguf.source().size(part);
  return bytes;
}

uint64_t greta_file_tensor_count(const greta_file* file) { return file ? file->gguf.tensors().size() : 0; }
uint64_t greta_file_metadata_count(const greta_file* file) { return file ? file->gguf.values().size() : 0; }

Status greta::tensor_at(const greta_file* file, uint64_t index, const GgufTensor** out) {
  const std::vector<GgufTensor>& tensors = file->gguf.tensors();
  if (index >= tensors.size())
    return fail(Code::Argument, "there is no tensor %llu: the file has %zu", (unsigned long long)index,
                tensors.size());
  *out = &tensors[index];
  return {};
}

greta_status greta_file_tensor(const greta_file* file, uint64_t index, greta_tensor_info* out_tensor) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(file, "file"));
    const GgufTensor* found = nullptr;
    GRETA_TRY(tensor_at(file, index, &found));
    const GgufTensor& tensor = *found;
    greta_tensor_info info = {};
    info.dimensions = tensor.dims;
    info.name = file->tensor_names[index].c_str();
    info.type = quant_info(tensor.type).name;
    std::copy(tensor.ne, tensor.ne + kMaxDims, info.shape);
    info.offset_bytes = tensor.offset;
    info.size_bytes = tensor.bytes;
    info.part = tensor.part;
    return write_result(info, out_tensor);
  });
}

greta_status greta_file_metadata(const greta_file* file, uint64_t index, const char** out_key,
                                 const char** out_type, char* value, size_t capacity) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(file, "file"));
    if (index >= file->gguf.values().size())
      return fail(Code::Argument, "there is no metadata %llu: the file has %zu", (unsigned long long)index,
                  file->gguf.values().size());
    const GgufValue& pair = file->gguf.values()[index];
    if (capacity) GRETA_TRY(need(value, "value"));
    if (capacity)
      format_text(value, capacity, "%s",
                  gguf_text(pair, uint32_t(std::min<size_t>(capacity, 1 << 20))).c_str());
    if (out_key) *out_key = file->keys[index].c_str();
    if (out_type) *out_type = file->types[index].c_str();
    return {};
  });
}

namespace {

// A part of a file for the callback of an audit.
struct AuditPart {
  greta_unused_verdict verdict;
  bool tensor;
  std::string name;
  const char* reason;
};

std::vector<AuditPart> differences(const Nearest& nearest) {
  std::vector<AuditPart> parts;
  const auto add = [&](const std::set<std::string>& names, bool tensor, const char* reason) {
    for (const std::string& name : names) parts.push_back({GRETA_UNUSED_REFUSED, tensor, name, reason});
  };
  add(nearest.unused_keys, false, "the nearest known architecture does not read it");
  add(nearest.unused_tensors, true, "the nearest known architecture has no use for it");
  add(nearest.lacking_tensors, true, "the nearest known architecture needs it, and the file lacks it");
  return parts;
}

// Of an unknown architecture: how the file differs from the nearest known one, and a failure.
Status read_audit(const Gguf& gguf, std::vector<AuditPart>* out) {
  std::vector<UnusedPart> parts;
  std::string_view name;
  const Arch* arch = nullptr;
  GRETA_TRY(gguf.get_string("general.architecture", &name));
  if (!name.empty() && !find_arch(name, &arch).ok())
    *out = differences(nearest_arch(gguf, std::string(name)));
  GRETA_TRY(audit_file(gguf, &parts));
  for (const UnusedPart& part : parts)
    out->push_back({greta_unused_verdict(part.verdict), part.tensor, std::string(part.name), part.reason});
  return {};
}

}  // namespace

greta_status greta_file_audit(const greta_file* file,
                              int (*on_unused)(void* user, const greta_unused* unused), void* user) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(file, "file"));
    if (!on_unused) return fail(Code::Argument, "on_unused is NULL");
    std::vector<AuditPart> parts;
    const Status status = read_audit(file->gguf, &parts);
    const std::string text = status.ok() ? "" : error_text();  // the callback may have failures of its own
    for (const AuditPart& part : parts) {
      const greta_unused unused = {sizeof unused,     part.verdict, part.tensor, 0,
                                   part.name.c_str(), part.reason};
      if (call_back("on_unused", [&] { return on_unused(user, &unused); }))
        return fail(Code::Cancelled, "the callback stopped the audit at %s", part.name.c_str());
    }
    return status.ok() ? status : fail(status.code, "%s", text.c_str());
  });
}

greta_status greta_tokenizer_open(const greta_file* file, greta_log_callback log, void* log_user,
                                  greta_tokenizer** out_tokenizer) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(file, "file"));
    GRETA_TRY(need(out_tokenizer, "out_tokenizer"));
    auto tokenizer = std::make_unique<greta_tokenizer>();
    tokenizer->owned = std::make_unique<Tokenizer>();
    tokenizer->c_log = {log, log_user};
    GRETA_TRY(tokenizer->owned->open(file->gguf, tokenizer->c_log.log()));
    tokenizer->tokenizer = tokenizer->owned.get();
    tokenizer->gguf = &file->gguf;
    GRETA_TRY(tokenizer->chat.open(file->gguf, *tokenizer->owned, tokenizer->c_log.log()));
    *out_tokenizer = tokenizer.release();
    return {};
  });
}

void greta_tokenizer_close(greta_tokenizer* tokenizer) { close_object(tokenizer); }

greta_status greta_tokenizer_encode(const greta_tokenizer* tokenizer, const char* text, size_t bytes,
                                    uint32_t flags, int32_t* tokens, size_t capacity, size_t* out_count) {
  return greta_tokenizer_encode_until(tokenizer, text, bytes, flags, tokens, capacity, out_count, nullptr,
                                      nullptr);
}

greta_status greta_tokenizer_encode_until(const greta_tokenizer* tokenizer, const char* text, size_t bytes,
                                          uint32_t flags, int32_t* tokens, size_t capacity, size_t* out_count,
                                          int (*should_stop)(void* user), void* user) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(tokenizer, "tokenizer"));
    GRETA_TRY(need(out_count, "out_count"));
    if (bytes) GRETA_TRY(need(text, "text"));
    if (capacity) GRETA_TRY(need(tokens, "tokens"));
    constexpr uint32_t kKnown = GRETA_ENCODE_BOS | GRETA_ENCODE_SPECIAL;
    if (flags & ~kKnown)
      return fail(Code::Argument, "the flags are 0x%x, and the bits 0x%x of them mean nothing", flags,
                  flags & ~kKnown);
    std::vector<int32_t> ids;
    const StopCallback stop{should_stop, user};
    EncodeOptions options{(flags & GRETA_ENCODE_BOS) != 0, (flags & GRETA_ENCODE_SPECIAL) != 0};
    if (should_stop) options.should_stop = StopCallback::ask, options.user = &stop;
    GRETA_TRY(tokenizer->tokenizer->encode({text, bytes}, options, &ids));
    std::copy_n(ids.begin(), std::min(capacity, ids.size()), tokens);
    *out_count = ids.size();
    return {};
  });
}

Status greta::give_text(const std::string& from, char* text, size_t capacity, size_t* out_bytes) {
  GRETA_TRY(need(out_bytes, "out_bytes"));
  if (capacity) GRETA_TRY(need(text, "text"));
  std::copy_n(from.data(), std::min(capacity, from.size()), text);
  if (capacity > from.size()) text[from.size()] = 0;
  *out_bytes = from.size();
  return {};
}

greta_status greta_tokenizer_decode(const greta_tokenizer* tokenizer, const int32_t* tokens, size_t count,
                                    char* text, size_t capacity, size_t* out_bytes) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(tokenizer, "tokenizer"));
    if (count) GRETA_TRY(need(tokens, "tokens"));
    std::string bytes;
    for (size_t i = 0; i < count; ++i) {
      if (tokens[i] < 0 || uint32_t(tokens[i]) >= tokenizer->tokenizer->size())
        return fail(Code::Argument, "token %zu is %d, expected 0 to %u", i, tokens[i],
                    tokenizer->tokenizer->size() - 1);
      tokenizer->tokenizer->append_piece(tokens[i], false, &bytes);
    }
    return give_text(bytes, text, capacity, out_bytes);
  });
}

uint32_t greta_tokenizer_size(const greta_tokenizer* t) { return t ? t->tokenizer->size() : 0; }
int32_t greta_tokenizer_bos(const greta_tokenizer* t) { return t ? t->tokenizer->bos() : -1; }
int32_t greta_tokenizer_eos(const greta_tokenizer* t) { return t ? t->tokenizer->eos() : -1; }
int greta_tokenizer_is_end(const greta_tokenizer* t, int32_t token) {
  return t && t->tokenizer->is_end(token);
}
