"""Measures what Python costs where a service answers many prompts: `greta-cli bench -np 8` and greta.Service in turn.

    measure_service.py PROGRAM MODEL [ROUNDS [TOKENS]]

Each way answers 8 prompts of 16 tokens with TOKENS (64) tokens on 2 threads of the CPU, behind shorter answers that
warm up. Printed are medians of ROUNDS (3) of tokens per second and their ratio to the bench: while all answers are
written, from when the last of them has begun until the first has ended, and from the sending of the prompts to the last
end. The latter is also of how prompts are laid into steps, which varies. GRETA_LIBRARY names the library.
"""
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import greta  # noqa: E402

STREAMS, PROMPT = 8, 16


def bench(program, model, tokens):
    command = [program, "bench", "-m", model, "-np", str(STREAMS), "-p", str(PROMPT), "-n", str(tokens), "-t", "2", "-r",
               "1", "-dev", "cpu", "--no-mmap", "-q", "-o", "json"]
    found = json.loads(subprocess.check_output(command))[0]
    # The first token of each answer comes with its prompt.
    seconds = STREAMS * PROMPT / found["prompt_ts"] + STREAMS * (tokens - 1) / found["generate_ts"]
    return found["generate_ts"], STREAMS * tokens / seconds


def while_all_write(answers):
    began = [each.queued_s + each.prompt_s for each in answers]
    seconds = min(start + each.generate_s for start, each in zip(began, answers)) - max(began)
    return sum((each.generated_tokens - 1) / each.generate_s for each in answers) if seconds > 0 else 0


def together(service, prompts, options):
    return service.generate_all(prompts, **options)


def from_threads(service, prompts, options):
    def read(request):
        for _ in request:
            pass

    requests = [service.stream(prompt, **options) for prompt in prompts]
    threads = [threading.Thread(target=read, args=(request,)) for request in requests]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [request.result() for request in requests]


def from_asyncio(service, prompts, options):
    async def read(request):
        async for _ in request:
            pass

    async def read_all():
        requests = [service.stream(prompt, **options) for prompt in prompts]
        await asyncio.gather(*[read(request) for request in requests])
        return [await request.aresult() for request in requests]

    return asyncio.run(read_all())


WAYS = {"generate_all": together, "threads": from_threads, "asyncio": from_asyncio}


def rates(model_path, tokens, number):
    """Of each way, with prompts that nobody had before."""
    drawn = random.Random(number)
    options = {"ignore_end": True, "no_cache": True}
    found = {}
    with greta.Model(model_path, device="cpu", threads=2, progress=False) as model:
        size = PROMPT + tokens + 64
        with greta.Service(model, context=size, sequences=STREAMS, cache_tokens=size * STREAMS) as service:
            for name, way in WAYS.items():
                for most in (4, tokens):  # the first one warms up
                    prompts = [[drawn.randrange(model.info.vocab_size) for _ in range(PROMPT)] for _ in range(STREAMS)]
                    began = time.perf_counter()
                    answers = way(service, prompts, options | {"max_tokens": most})
                    found[name] = while_all_write(answers), STREAMS * tokens / (time.perf_counter() - began)
    return found


def main():
    program, model = sys.argv[1:3]
    rounds, tokens = [int(each) for each in sys.argv[3:5]] + [3, 64][len(sys.argv[3:5]):]
    found = {}
    for number in range(rounds):
        for name, rate in ({"bench": bench(program, model, tokens)} | rates(model, tokens, number)).items():
            found.setdefault(name, []).append(rate)
    for index, what in enumerate(("while all write", "from the sending")):
        middle = {name: statistics.median(each[index] for each in rates) for name, rates in found.items()}
        for name, rate in middle.items():
            texts = " ".join(f"{each[index]:.1f}" for each in found[name])
            print(f"{what} {name:12} {rate:8.1f} tokens/s ({texts}), {rate / middle['bench']:.3f} of the bench")


if __name__ == "__main__":
    main()
