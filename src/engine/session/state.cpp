// Saves sessions as bytes and restores them.
#include "engine/session/state.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "engine/model/rope.h"
#include "engine/session/session.h"

namespace greta {

namespace {

using Number = unsigned long long;  // for %llu

uint64_t header_sum(const StateHeader& header) { return checksum(&header, offsetof(StateHeader, checksum)); }

}  // namespace

StateHeader state_header(const Executor& executor, uint32_t tokens) {
  const Shape& s = executor.model().shape;
  StateHeader h = {};
  memcpy(h.magic, kStateMagic, sizeof h.magic);
  h.version = kStateVersion;
  h.header_bytes = sizeof h;
  h.total_bytes =
      sizeof h + uint64_t(tokens) * sizeof(int32_t) + executor.cache_bytes(tokens) + sizeof(uint64_t);
  h.model = executor.model().identity;
  h.tokens = tokens;
  h.vocab = s.vocab;
  h.layers = s.layers;
  h.kv_heads = s.kv_heads;
  h.key_width = s.key_width;
  h.value_width = s.value_width;
  h.key_type = executor.options().key_type;
  h.value_type = executor.model().arch->latent ? h.key_type : executor.options().value_type;
  h.page_tokens = kPageTokens;
  h.long_rope = long_rope(s, executor.plan().context);
  h.checksum = header_sum(h);
  return h;
}

namespace {

const char* type_name(uint32_t cache_type) {
  QuantType type = QuantType::f32;
  return cache_quant(cache_type, &type) ? quant_info(type).name : "an unknown type";
}

Status check_form(const StateHeader& header) {
  if (memcmp(header.magic, kStateMagic, sizeof header.magic) != 0)
    return fail(Code::File, "this is no saved session: it does not begin with GRETAKV");
  if (header.version != kStateVersion)
    return fail(Code::Unsupported, "a saved session of version %u, this library reads version %u",
                header.version, kStateVersion);
  if (header.header_bytes != sizeof header || header.checksum != header_sum(header))
    return fail(Code::File, "damaged: the checksum of the header is wrong");
  return {};
}

// Fails if the session could not have saved the state.
Status check_origin(const StateHeader& header, const StateHeader& own) {
  const struct {
    const char* what;
    uint32_t saved, here;
  } numbers[] = {
      {"a vocabulary", header.vocab, own.vocab},
      {"layers", header.layers, own.layers},
      {"heads of keys", header.kv_heads, own.kv_heads},
      {"values of a key", header.key_width, own.key_width},
      {"values of a value", header.value_width, own.value_width},
      {"positions of a page", header.page_tokens, own.page_tokens},
  };
  for (const auto& number : numbers)
    if (number.saved != number.here)
      return fail(Code::Unsupported, "saved with another model: %s of %u, this one has %u", number.what,
                  number.saved, number.here);
  if (header.model != own.model)
    return fail(Code::Unsupported,
                "saved with another model of the same size, or with another file of this one");
  if (header.key_type != own.key_type || header.value_type != own.value_type)
    return fail(Code::Unsupported, "saved with a cache of %s keys and %s values, this session has %s and %s",
                type_name(header.key_type), type_name(header.value_type), type_name(own.key_type),
                type_name(own.value_type));
  if (header.long_rope != own.long_rope)
    return fail(
        Code::Unsupported,
        "saved with a context %s the length that the model was first trained for, where positions turn "
        "otherwise than in this session's: ask for a context like that",
        header.long_rope ? "past" : "within");
  return {};
}

}  // namespace

// Reads the source from its beginning and sums up what was read.
struct Session::StateReader {
  const Source& source;
  uint64_t at = 0;
  Checksum sum = {};
  bool failed = false;  // reading failed, and that error's text has the source's name already

  Status read(void* to, uint64_t bytes) {
    failed = true;
    GRETA_TRY(source.read_at(0, at, to, bytes));
    failed = false;
    sum.add(to, bytes);
    at += bytes;
    return {};
  }
  Status check_sum() {
    const uint64_t want = sum.value();
    uint64_t saved = 0;
    GRETA_TRY(read(&saved, sizeof saved));
    return saved == want ? Status{} : fail(Code::File, "damaged: the checksum is wrong");
  }
};

uint64_t Session::state_bytes() const { return state_header(*executor_, position_).total_bytes; }

Status Session::save(WriteState write, void* user) {
  take_cancel();
  const StateHeader header = state_header(*executor_, position_);
  Checksum sum;
  uint64_t done = 0;
  const auto put = [&](const void* bytes, uint64_t count) -> Status {
    if (take_cancel() || write(user, bytes, count) != 0)
      return fail(Code::Cancelled, "stopped after %llu of %llu bytes of the session", Number(done),
                  Number(header.total_bytes));
    sum.add(bytes, count);
    done += count;
    return {};
  };
  GRETA_TRY(put(&header, sizeof header));
  if (position_) GRETA_TRY(put(tokens_.data(), position_ * sizeof(int32_t)));
  GRETA_TRY(executor_->save_cache(sequence_, position_, put));
  const uint64_t value = sum.value();
  return put(&value, sizeof value);
}

Status Session::restore(const Source& source) {
  take_cancel();
  if (source.parts() != 1) return fail(Code::Argument, "a saved session is one file");
  StateReader reader{source};
  const Status status = restore_from(reader);
  return reader.failed ? status : within(status, "%s", source.name(0));
}

Status Session::restore_from(StateReader& reader) {
  const Source& source = reader.source;
  StateHeader header;
  if (source.size(0) < sizeof header)
    return fail(Code::File, "this is no saved session: it has %llu bytes", Number(source.size(0)));
  GRETA_TRY(reader.read(&header, sizeof header));
  GRETA_TRY(check_form(header));
  GRETA_TRY(check_origin(header, state_header(*executor_, 0)));
  if (header.tokens > context())
    return fail(Code::Full, "%u tokens were saved, the context has %u: ask for more", header.tokens,
                context());
  const uint64_t expected = state_header(*executor_, header.tokens).total_bytes;
  if (header.total_bytes != expected || source.size(0) != expected)
    return fail(Code::File, "truncated or damaged: %llu bytes, a saved session of %u tokens has %llu",
                Number(source.size(0)), header.tokens, Number(expected));

  std::vector<int32_t> tokens(header.tokens);
  GRETA_TRY(reader.read(tokens.data(), tokens.size() * sizeof(int32_t)));
  for (size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] < 0 || uint32_t(tokens[i]) >= header.vocab)
      return fail(Code::File, "damaged: token %zu is %d, expected 0 to %u", i, tokens[i], header.vocab - 1);
  uint64_t left = executor_->cache_bytes(header.tokens);
  std::vector<uint8_t> piece;  // the sum is made here, since memory for uploads may be slow to read
  if (left == 0) GRETA_TRY(reader.check_sum());
  const Status status =
      executor_->restore_cache(sequence_, tokens, [&](uint8_t* to, uint64_t bytes) -> Status {
        if (take_cancel())
          return fail(Code::Cancelled, "stopped with %llu bytes of the cache to come", Number(left));
        piece.resize(bytes);
        GRETA_TRY(reader.read(piece.data(), bytes));
        memcpy(to, piece.data(), bytes);
        left -= bytes;
        return left ? Status{} : reader.check_sum();
      });
  if (status.code == Code::Full && position_)
    return within(status, "beside the %u tokens that the session holds", position_);
  GRETA_TRY(status);
  position_ = header.tokens;
  tokens_.assign(tokens.begin(), tokens.end());
  sampler_.truncate(0);
  grammar_.truncate(0);
  return {};
}

}  // namespace greta
