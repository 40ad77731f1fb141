"""What the library calls and what it shows, read from its symbols.

    symbols_test.py NM FILE...     libgreta.a, or its objects where they are not joined (sanitizers)

The library never ends the process, prints, reads the environment, takes signals, or depends on the locale or the
time zone that the program has set, so no object may refer to a function that does. It has no function of a driver or
of another engine linked in, but looks them up. In an archive, every global symbol that is defined starts with greta_.
"""
import re
import subprocess
import sys

ENDS = "abort exit _exit _Exit quick_exit at_quick_exit raise kill pthread_exit pthread_kill __assert_fail __assert"
PRINTS = "printf vprintf fprintf vfprintf dprintf vdprintf puts putchar fputs fputc putc fwrite perror psignal " \
         "__printf_chk __vprintf_chk __fprintf_chk __vfprintf_chk __dprintf_chk __vdprintf_chk stdout stderr syslog"
READS = "getenv secure_getenv setenv putenv unsetenv clearenv environ __environ setlocale chdir fchdir umask " \
        "signal bsd_signal sysv_signal __sysv_signal sigaction sigset sigaltstack setitimer alarm atexit on_exit " \
        "pthread_atfork __register_atfork setrlimit prctl fesetround fesetenv feenableexcept srand rand random " \
        "localtime localtime_r mktime ctime ctime_r asctime tzset strtok mallopt"
# Numbers: format_text, std::to_chars and std::from_chars. Letters: is_ascii_alnum, char_class. vsnprintf is
# called by format_text alone, within the locale C; snprintf would write the program's decimal point.
LOCALE = "strerror strerror_r __xpg_strerror_r snprintf sprintf vsprintf asprintf vasprintf __snprintf_chk __sprintf_chk __vsprintf_chk __asprintf_chk " \
         "__vasprintf_chk sscanf vsscanf __isoc99_sscanf __isoc23_sscanf __isoc99_vsscanf __isoc23_vsscanf strtod " \
         "strtof strtold atof isalpha isalnum isspace isupper islower isxdigit ispunct isprint isgraph iscntrl " \
         "isblank tolower toupper __ctype_b_loc __ctype_tolower_loc __ctype_toupper_loc strcasecmp strncasecmp " \
         "strcasestr strcoll strxfrm strftime strptime localeconv nl_langinfo mblen mbtowc mbrtowc mbstowcs " \
         "mbsrtowcs wctomb wcrtomb wcstombs wcsrtombs iswalpha iswalnum iswspace iswupper iswlower towlower " \
         "towupper regcomp fnmatch"
RUNS = "system popen fork vfork execve execv execvp posix_spawn posix_spawnp"
FORBIDDEN = {name: why for names, why in ((ENDS, "ends the process"), (PRINTS, "prints"),
                                          (READS, "touches what belongs to the whole process"),
                                          (LOCALE, "depends on the locale"),
                                          (RUNS, "starts a process")) for name in names.split()}
# Of the C++ library: std::cout and its like, iostreams' initialiser, std::terminate and friends.
FORBIDDEN_CXX = [
    (re.compile(r"^_ZSt4(cout|cerr|clog)$|^_ZSt5wcout$|^_ZNSt8ios_base4InitC1Ev$"), "prints"),
    (re.compile(r"St6locale|St8ios_base|St5ctype|St9use_facet|basic_[a-z]*stream|^_ZNK?S[io]"), "depends on the locale"),
    (re.compile(r"^_ZNSt6thread|^_ZNSt6futureI|^_ZSt5async"), "starts threads that end the process if they fail"),
    (re.compile(r"^_ZSt9terminatev$|^_ZSt10unexpectedv$|^_ZSt21__glibcxx_assert_fail"), "ends the process"),
]

# What is referred to all the same, with the reason.
ALLOWED = {
    "_ZSt9terminatev": "compilers put it where an exception would leave a noexcept function; none does: those of "
                       "ours call nothing that throws",
}


# Functions of drivers and of other engines: what is linked in might be the program's.
FOREIGN = re.compile(r"^(vk|hip|hsa_|cu|ggml_|gguf_|llama_|whisper_)[A-Za-z_]+$")


def forbidden(symbol):
    """Why no object may refer to `symbol`, or None."""
    name = symbol.split("@")[0]
    if name in ALLOWED:
        return None
    if name in FORBIDDEN:
        return FORBIDDEN[name]
    if FOREIGN.match(name):
        return "belongs to a driver or to another engine"
    return next((why for pattern, why in FORBIDDEN_CXX if pattern.search(name)), None)


def parse(text, where=""):
    """(undefined, defined) of nm's output: sets of (object, symbol). nm does not name a file that is alone."""
    undefined, defined = set(), set()
    for line in text.splitlines():
        if line.endswith(":"):
            where = line[:-1]
            continue
        fields = line.split()
        if len(fields) == 2 and fields[0] in ("U", "w", "v"):
            undefined.add((where, fields[1]))
        elif len(fields) == 3:
            defined.add((where, fields[2]))
    return undefined, defined


def violations(undefined, defined, is_archive):
    for where, symbol in sorted(undefined):
        why = forbidden(symbol)
        if why:
            yield f"{where}: refers to {symbol}, which {why}"
    if is_archive:
        for where, symbol in sorted(defined):
            if not symbol.startswith("greta_"):
                yield f"{where}: shows {symbol}, which does not start with greta_"


PLANTED = """
greta.o:
                 U abort
                 U puts
                 U __printf_chk@GLIBC_2.3.4
                 U _ZSt4cout
                 w getenv
                 U vsnprintf
                 U snprintf
                 U __ctype_b_loc@GLIBC_2.3
                 U _ZNSo9_M_insertIdEERSoT_
                 U _ZSt9terminatev
                 U _ZNSt6thread4joinEv
                 U sigaction@GLIBC_2.2.5
                 U localtime_r
                 U strerror
                 U vkCreateInstance
                 U ggml_init
0000000000000000 T greta_version
0000000000000010 W _ZNSt6vectorIiE9push_backEi
"""


def main():
    planted = parse(PLANTED)
    if len(list(violations(*planted, True))) != 15 or len(list(violations(*planted, False))) != 14:
        sys.exit("the test does not see what was planted")
    nm, files = sys.argv[1], sys.argv[2:]
    archive = len(files) == 1 and files[0].endswith(".a")
    text = subprocess.run([nm, "--extern-only", *files], check=True, capture_output=True, text=True).stdout
    undefined, defined = parse(text, files[0])
    found = list(violations(undefined, defined, archive))
    for violation in found:
        print(violation)
    if not undefined or (archive and not defined):
        sys.exit("no symbols were read")
    if found:
        sys.exit(1)
    print(f"{len(undefined)} references and {len(defined)} symbols are as they should be")


main()
