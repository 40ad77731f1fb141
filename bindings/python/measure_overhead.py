"""Measures what Python adds to a streamed token: a stand-in for libgreta.so gives tokens at once.

    measure_overhead.py [COMPILER]

Printed are microseconds for a token of `for piece in model.stream(...)`, of `events()`, of a session's callback, and
of a loop in C over the same stand-in; and the time to import the package.
"""
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOKENS = 100_000
WRITTEN = {
    "greta_version": "uint32_t greta_version(void) { return GRETA_VERSION; }",
    "greta_error_text": 'const char* greta_error_text(void) { return ""; }',
    "greta_tokenizer_encode": """greta_status greta_tokenizer_encode(const greta_tokenizer* a, const char* b, size_t c, uint32_t d, int32_t* e, size_t f,
        size_t* out) { *out = 1; return GRETA_OK; }""",
    "greta_request_next": """
      greta_status greta_request_next(greta_request* a, uint64_t b, greta_request_event* event) {
        event->kind = left-- > 0 ? GRETA_EVENT_TEXT : GRETA_EVENT_END;
        event->text = " word", event->bytes = 5, event->token = 7;
        return GRETA_OK; }""",
    "greta_service_add": """greta_status greta_service_add(greta_service* a, const greta_request_options* options, greta_request** out) {
        left = (int)options->max_tokens, *out = (greta_request*)&left; return GRETA_OK; }""",
    "greta_session_generate": """greta_status greta_session_generate(greta_session* a, const int32_t* b, size_t c,
        const greta_generate_options* options, greta_generate_result* d) {
        for (uint32_t i = 0; i < options->max_tokens; ++i) if (options->on_token(options->user, 7, " word", 5)) break;
        return GRETA_OK; }""",
}
LOOP = """
#include <time.h>
double greta_loop(uint32_t count) {
  struct timespec began, ended; greta_request_event event; greta_request_options options; greta_request* request;
  size_t bytes = 0;
  options.max_tokens = count; greta_service_add(0, &options, &request);
  clock_gettime(CLOCK_MONOTONIC, &began);
  while (!greta_request_next(request, 0, &event) && event.kind != GRETA_EVENT_END) bytes += event.bytes;
  clock_gettime(CLOCK_MONOTONIC, &ended);
  return (ended.tv_sec - began.tv_sec) * 1e9 + (ended.tv_nsec - began.tv_nsec) + (double)(bytes == 1); }
"""


def stand_in(compiler, folder):
    """A library with every function of greta.h. Those that open something give a pointer, the others do nothing."""
    import make_declarations
    with open(make_declarations.HEADER, encoding="utf-8") as file:
        header = make_declarations.Header(file.read())
    lines = ["#define _POSIX_C_SOURCE 200809L", '#include "greta.h"', "static char object[64];", "static int left;"]
    for name, (result, parameters) in header.functions.items():
        if name in WRITTEN:
            lines.append(WRITTEN[name])
            continue
        texts = ["%s (*%s)(%s)" % (kind[0], parameter, ", ".join(each for each, *_ in kind[1])) if isinstance(kind, tuple)
                 else f"{kind} {parameter}" for kind, parameter, _ in parameters]
        opened = [parameter for kind, parameter, _ in parameters if isinstance(kind, str) and kind.endswith("**")
                  and parameter.startswith("out_") and kind[:-2].strip() in header.handles]
        body = "".join(f"*{each} = (void*)object; " for each in opened) + ("" if result == "void" else "return 0; ")
        lines.append(f"{result} {name}({', '.join(texts) or 'void'}) {{ {body}}}")
    source, library = os.path.join(folder, "stand_in.c"), os.path.join(folder, "libgreta.so")
    with open(source, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + LOOP)
    subprocess.run([compiler, "-O2", "-w", "-shared", "-fPIC", "-fno-inline", "-fsemantic-interposition", "-I",
                    os.path.dirname(make_declarations.HEADER), source, "-o", library], check=True,
                   env={**os.environ, "LD_PRELOAD": ""})  # not under a sanitizer
    return library


def least_us(function, rounds=5):
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        function()
        times.append(time.perf_counter() - began)
    return min(times) / TOKENS * 1e6


def import_ms(text, folder, rounds=7):
    """The least time for an import. The first of them compiles the package, as its installation does."""
    program = f"import time; t = time.perf_counter(); {text}; print(time.perf_counter() - t)"
    environment = {**os.environ, "PYTHONPATH": HERE, "PYTHONPYCACHEPREFIX": folder, "PYTHONDONTWRITEBYTECODE": ""}
    return 1e3 * min(float(subprocess.check_output([sys.executable, "-c", program], env=environment))
                     for _ in range(rounds))


def main():
    compiler = sys.argv[1] if len(sys.argv) > 1 else "cc"
    with tempfile.TemporaryDirectory() as folder:
        os.environ["GRETA_LIBRARY"] = stand_in(compiler, folder)
        imports = [import_ms(text, folder) for text in ("import greta", "from greta import *")]
        import ctypes

        import greta
        from greta._library import lib
        model = greta.Model("no file", device="cpu", progress=False)
        session = model.session()

        def stream():
            assert sum(1 for _ in model.stream("x", max_tokens=TOKENS)) == TOKENS

        def events():
            assert sum(1 for _ in model.stream("x", max_tokens=TOKENS).events()) == TOKENS

        def callback():
            assert len(session.generate([1], max_tokens=TOKENS).tokens) == TOKENS

        lib.greta_loop.restype = ctypes.c_double
        loop = min(lib.greta_loop(TOKENS) for _ in range(5)) / TOKENS / 1000
        print(f"in C {loop:.3f} us, stream {least_us(stream):.2f} us, events {least_us(events):.2f} us, "
              f"a session's callback {least_us(callback):.2f} us for a token; import greta {imports[0]:.0f} ms, with all of its "
              f"modules {imports[1]:.0f} ms")


if __name__ == "__main__":
    main()
