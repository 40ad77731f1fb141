// Saves sessions as bytes and restores them.
#include "engine/session/state.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "engine/model/rope.h"

namespace greta {

namespace {

using Number = unsigned long long;  // for %llu

uint64_t header_sum(const StateHeader& header) { return checksum(&header, offsetof(StateHeader, checksum)); }

}  // namespace

StateHeader state_header(const Executor& executor, uint32_t tokens, uint64_t adapters) {
  return state_header(executor, tokens, executor.cache_form(), adapters);
}

StateHeader state_header(const Executor& executor, uint32_t tokens, Executor::CacheForm form,
                         uint64_t adapters) {
  const Shape& s = executor.model().shape;
  StateHeader h = {};
  memcpy(h.magic, kStateMagic, sizeof h.magic);
  h.version = form == Executor::CacheForm::Whole ? 1 : kStateVersion;
  h.header_bytes = sizeof h;
  h.total_bytes =
      sizeof h + uint64_t(tokens) * sizeof(int32_t) + executor.cache_bytes(tokens, form) + sizeof(uint64_t);
  h.model = identity_with(executor.model().identity, adapters);
  h.tokens = tokens;
  h.vocab = s.vocab;
  h.layers = s.layers;
  const LayerShape& layer = s.attending();  // total_bytes and the model tell whether other layers differ
  h.kv_heads = layer.kv_heads;
  h.key_width = layer.key_width;
  h.value_width = layer.value_width;
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
  if (header.version < 1 || header.version > kStateVersion)
    return fail(Code::Unsupported, "a saved session of version %u, this library reads versions 1 to %u",
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
                "saved with another model of the same size, with another file of this one, or with other "
                "adapters or scales");
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

Status StateReader::read(void* to, uint64_t bytes) {
  failed = true;
  GRETA_TRY(source.read_at(0, at, to, bytes));
  failed = false;
  sum.add(to, bytes);
  at += bytes;
  return {};
}

Status StateReader::check_sum() {
  const uint64_t want = sum.value();
  uint64_t saved = 0;
  GRETA_TRY(read(&saved, sizeof saved));
  return saved == want ? Status{} : fail(Code::File, "damaged: the checksum is wrong");
}

Status StateReader::read_head(const Executor& executor, uint64_t adapters, StateHeader* out,
                              std::vector<int32_t>* tokens) {
  StateHeader& header = *out;
  if (source.size(0) < sizeof header)
    return fail(Code::File, "this is no saved session: it has %llu bytes", Number(source.size(0)));
  GRETA_TRY(read(&header, sizeof header));
  GRETA_TRY(check_form(header));
  GRETA_TRY(check_origin(header, state_header(executor, 0, adapters)));
  const Shape& shape = executor.model().shape;
  const bool windows = form_of(header) == Executor::CacheForm::Windows;
  if (shape.recurrent_layers ? !windows : windows && !common_window(shape))
    return fail(Code::Unsupported, "a saved session of version %u, which models like this one do not have",
                header.version);
  if (header.tokens > executor.plan().context)
    return fail(Code::Full, "%u tokens were saved, the context has %u: ask for more", header.tokens,
                executor.plan().context);
  const uint64_t expected = state_header(executor, header.tokens, form_of(header)).total_bytes;
  if (header.total_bytes != expected || source.size(0) != expected)
    return fail(Code::File, "truncated or damaged: %llu bytes, a saved session of %u tokens has %llu",
                Number(source.size(0)), header.tokens, Number(expected));
  tokens->resize(header.tokens);
  GRETA_TRY(read(tokens->data(), tokens->size() * sizeof(int32_t)));
  for (size_t i = 0; i < tokens->size(); ++i)
    if ((*tokens)[i] < 0 || uint32_t((*tokens)[i]) >= header.vocab)
      return fail(Code::File, "damaged: token %zu is %d, expected 0 to %u", i, (*tokens)[i],
                  header.vocab - 1);
  return {};
}

Status read_state(const Source& source, const Executor& executor, SavedState* out, uint64_t adapters) {
  if (source.parts() != 1) return fail(Code::Argument, "a saved session is one file");
  StateReader reader{source};
  const auto read = [&]() -> Status {
    GRETA_TRY(reader.read_head(executor, adapters, &out->header, &out->tokens));
    out->cache.resize(executor.cache_bytes(out->header.tokens, form_of(out->header)));
    GRETA_TRY(reader.read(out->cache.data(), out->cache.size()));
    return reader.check_sum();
  };
  const Status status = read();
  return reader.failed ? status : within(status, "%s", source.name(0));
}

Status save_state(Executor& executor, uint32_t sequence, std::span<const int32_t> tokens, uint64_t adapters,
                  SavedState* out) {
  const uint32_t count = uint32_t(tokens.size());
  SavedState state{state_header(executor, count, adapters), {tokens.begin(), tokens.end()}, {}};
  state.cache.reserve(executor.cache_bytes(count, form_of(state.header)));
  GRETA_TRY(executor.save_cache(sequence, count, [&](const uint8_t* bytes, uint64_t more) {
    state.cache.insert(state.cache.end(), bytes, bytes + more);
    return Status{};
  }));
  *out = std::move(state);
  return {};
}

Status load_state(const SavedState& state, Executor& executor, uint32_t sequence) {
  const uint8_t* next = state.cache.data();
  return executor.restore_cache(sequence, state.tokens, form_of(state.header),
                                [&](uint8_t* to, uint64_t bytes) {
                                  memcpy(to, next, bytes);
                                  next += bytes;
                                  return Status{};
                                });
}

namespace {

// Gives out the parts of a state and sums them up.
struct StateWriter {
  Session::WriteState write;
  void* user;
  uint64_t total;
  uint64_t done = 0;
  Checksum sum = {};

  Status put(const void* bytes, uint64_t count, bool cancelled = false) {
    if (cancelled || write(user, bytes, count) != 0)
      return fail(Code::Cancelled, "stopped after %llu of %llu bytes of the session", Number(done),
                  Number(total));
    sum.add(bytes, count);
    done += count;
    return {};
  }
  Status end(bool cancelled = false) {
    const uint64_t value = sum.value();
    return put(&value, sizeof value, cancelled);
  }
};

}  // namespace

Status write_state(const SavedState& state, Session::WriteState write, void* user) {
  StateWriter writer{write, user, state.header.total_bytes};
  GRETA_TRY(writer.put(&state.header, sizeof state.header));
  if (!state.tokens.empty())
    GRETA_TRY(writer.put(state.tokens.data(), state.tokens.size() * sizeof(int32_t)));
  for (uint64_t at = 0, bytes = 0; at < state.cache.size(); at += bytes) {
    bytes = std::min<uint64_t>(kCachePieceBytes, state.cache.size() - at);
    GRETA_TRY(writer.put(state.cache.data() + at, bytes));
  }
  return writer.end();
}

uint64_t Session::state_bytes() const { return state_header(*executor_, position()).total_bytes; }

Status Session::save(WriteState write, void* user) {
  take_cancel();
  const std::optional<uint64_t> adapters = adapters_of_all();
  if (!adapters)
    return fail(Code::Unsupported,
                "the session's tokens were not all read with the same adapters and scales, so that no other "
                "session could go on from its state");
  if (!executor_->can_save(text_.sequence, text_.fed)) {  // then the last token is read again, too
    const uint32_t there = executor_->truncate(text_.sequence, text_.fed - 1);
    behind_ = position() - there;
    text_.fed = there;
  }
  GRETA_TRY(catch_up());
  const StateHeader header = state_header(*executor_, position(), *adapters);
  StateWriter writer{write, user, header.total_bytes};
  const auto put = [&](const void* bytes, uint64_t count) { return writer.put(bytes, count, take_cancel()); };
  GRETA_TRY(put(&header, sizeof header));
  if (position()) GRETA_TRY(put(text_.tokens.data(), position() * sizeof(int32_t)));
  GRETA_TRY(executor_->save_cache(text_.sequence, position(), put));
  return writer.end(take_cancel());
}

Status Session::restore(const Source& source) {
  take_cancel();
  if (source.parts() != 1) return fail(Code::Argument, "a saved session is one file");
  StateReader reader{source};
  const Status status = restore_from(reader);
  return reader.failed ? status : within(status, "%s", source.name(0));
}

Status Session::restore_from(StateReader& reader) {
  StateHeader header;
  std::vector<int32_t> tokens;
  GRETA_TRY(reader.read_head(*executor_, identity_of(executor_->adapters(text_.sequence)), &header, &tokens));
  const Executor::CacheForm form = form_of(header);
  uint64_t left = executor_->cache_bytes(header.tokens, form);
  std::vector<uint8_t> piece;  // the sum is made here, since memory for uploads may be slow to read
  if (left == 0) GRETA_TRY(reader.check_sum());
  const Status status =
      executor_->restore_cache(text_.sequence, tokens, form, [&](uint8_t* to, uint64_t bytes) -> Status {
        if (take_cancel())
          return fail(Code::Cancelled, "stopped with %llu bytes of the cache to come", Number(left));
        piece.resize(bytes);
        GRETA_TRY(reader.read(piece.data(), bytes));
        memcpy(to, piece.data(), bytes);
        left -= bytes;
        return left ? Status{} : reader.check_sum();
      });
  if (status.code == Code::Full && position())
    return within(status, "beside the %u tokens that the session holds", position());
  GRETA_TRY(status);
  text_.take_back(0);
  text_.feed(tokens);
  behind_ = 0;
  adapters_since_ = 0;
  return {};
}

}  // namespace greta
