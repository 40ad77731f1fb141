// Who guesses the next tokens of sessions and requests.
#include "api/handles.h"

using namespace greta;

namespace greta {

Status read_draft(const greta_draft_options* given, DraftSettings* out) {
  greta_draft_options o;
  GRETA_TRY(read_options(given, &o));
  switch (o.kind) {
    case GRETA_DRAFT_NONE:
      *out = {};
      return {};
    case GRETA_DRAFT_TEXT:
      *out = {DraftKind::Text, o.depth};
      break;
    case GRETA_DRAFT_HEAD:
      *out = {DraftKind::Head, o.depth};
      break;
    case GRETA_DRAFT_MODEL:
      *out = {DraftKind::Model, o.depth};
      if (o.executor)
        out->executor = std::shared_ptr<Executor>(o.executor->shared, o.executor->shared->executor.get());
      break;
    case GRETA_DRAFT_CALLBACK:
      *out = {DraftKind::Caller, o.depth};
      break;
    default:
      return fail(Code::Argument, "the kind of draft is %u, expected a greta_draft_kind", o.kind);
  }
  if (o.guess && o.kind != GRETA_DRAFT_TEXT)
    out->guess_tokens = [call = o.guess, user = o.user](std::span<const int32_t> text, int32_t* to,
                                                        size_t most) {
      return call_back("guess", [&] { return call(user, text.data(), text.size(), to, most); });
    };
  return check_draft(*out, true);  // of what model is said later
}

}  // namespace greta

greta_status greta_session_draft_tokens(greta_session* session, uint32_t most) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(session, "session"));
    if (!most) return session->session->set_draft({});
    return session->session->set_draft({DraftKind::Text, most});
  });
}

greta_status greta_session_draft(greta_session* session, const greta_draft_options* options) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(session, "session"));
    DraftSettings settings;
    GRETA_TRY(read_draft(options, &settings));
    return session->session->set_draft(std::move(settings));
  });
}
