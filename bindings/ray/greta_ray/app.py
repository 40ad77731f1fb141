"""Replicas of greta-cli serve under Ray Serve.

    serve.run(build(["-m", "model.gguf", "--parallel", 8], replicas=3))

An ingress takes HTTP and passes each request on to a replica, which has a server on a unix socket. Requests whose prompts begin alike go to the
same replica while it has room. What a client leaves is cancelled. If a replica is lost before anything of an answer was sent, another one answers.
"""
import asyncio
import json
import math

from ray import serve
from ray.exceptions import RayError
from ray.serve.config import AutoscalingConfig, RequestRouterConfig
from ray.serve.request_router import FIFOMixin, RequestRouter
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from .client import Gone
from .prefix import prefix_of, rank
from .process import Server
from .prometheus import parse, total

PASSED = ("authorization", "x-api-key", "traceparent", "x-request-id", "content-type")
TRIES = 5


class PrefixRouter(FIFOMixin, RequestRouter):
    """Ray asks the ranks in turn until a replica has room."""

    async def choose_replicas(self, candidate_replicas, pending_request=None):
        if pending_request is None:
            return [candidate_replicas]
        by_name = {each.replica_id.unique_id: each for each in candidate_replicas}
        prefix = pending_request.kwargs.get("prefix", "")
        ranked = rank(prefix or pending_request.metadata.request_id, by_name)
        # A request that found no room in its turn takes whoever has some.
        return [[by_name[name]] for name in ranked]


class Replica:
    """One server. ask() yields the head of its answer, and then its bytes."""

    async def __init__(self, args, env=None):
        self.server = Server(args, env=env)
        await self.server.start()

    async def ask(self, method, path, body, headers, prefix=""):
        answer = await self.server.client.ask(method, path, body, headers)
        try:
            yield {"status": answer.status, "headers": answer.headers}
            async for piece in answer:
                yield piece
        finally:
            answer.close()

    async def check_health(self):
        if self.server.process.returncode is not None and self.server.starts > 10:
            raise RuntimeError("greta-cli ends again and again: " + " ".join(self.server.lines))

    async def record_autoscaling_stats(self):
        samples = parse(await self.server.metrics())
        return {name: total(samples, "vllm:num_requests_" + name) for name in ("running", "waiting")}

    async def __del__(self):
        await self.server.stop()


class Ingress:
    def __init__(self, replicas):
        self.replicas = replicas

    async def __call__(self, request: Request):
        body = await request.body()
        path = request.url.path + ("?" + request.url.query if request.url.query else "")
        headers = [(name, value) for name, value in request.headers.items() if name in PASSED]
        handle = self.replicas.options(stream=True, method_name="ask")
        error = None
        for attempt in range(TRIES):
            answer = handle.remote(request.method, path, body, headers, prefix=prefix_of(body))
            try:
                head = await anext(answer)
                first = await anext(answer, None)
                if head["headers"].get("content-length") is None:
                    return StreamingResponse(self.pass_on(first, answer), head["status"], media_type=head["headers"].get("content-type"))
                whole = (first or b"") + b"".join([piece async for piece in answer])
                return Response(whole, head["status"], media_type=head["headers"].get("content-type"))
            except (RayError, Gone) as lost:
                error = lost
                await asyncio.sleep(0.1 * 2 ** attempt)
        text = json.dumps({"error": {"message": f"no replica answers: {type(error).__name__}", "type": "unavailable_error", "param": None, "code": None}})
        return Response(text, 503, {"Retry-After": "1"}, "application/json")

    @staticmethod
    async def pass_on(first, answer):
        if first is not None:
            yield first
        try:
            async for piece in answer:
                yield piece
        finally:
            answer.cancel()  # nothing, where it has ended


class WantedReplicas:
    """A policy for Ray's autoscaler: as many replicas as the requests that run and wait need, by the servers' own metrics."""

    def __init__(self, per_replica):
        self.per_replica = per_replica

    def __call__(self, context):
        metrics = context.aggregated_metrics or {}
        load = sum(value for name in ("running", "waiting") for value in metrics.get(name, {}).values())
        wanted = max(math.ceil(load / self.per_replica), context.capacity_adjusted_min_replicas)
        return min(wanted, context.capacity_adjusted_max_replicas), {}


def build(args, replicas=1, most=None, parallel=4, env=None, options=None, ingress_options=None, scaling=None):
    """The application. `args` are those of greta-cli serve, `parallel` its --parallel; with `most` the number of replicas goes up to that,
    and down again. `scaling` are further fields of Ray's AutoscalingConfig, such as {"downscale_delay_s": 60}.

    `options` are further ones of the replicas' deployment, such as {"ray_actor_options": {"num_gpus": 1}}, and `ingress_options` those of the
    ingress. What is under way in an ingress is lost with it, so it belongs on nodes that stay.
    """
    given = {"request_router_config": RequestRouterConfig(request_router_class=PrefixRouter), "max_ongoing_requests": parallel * 4,
             "health_check_period_s": 2, "health_check_timeout_s": 30, **(options or {})}
    if most:
        policy = {"policy_function": WantedReplicas, "policy_kwargs": {"per_replica": parallel}}
        given["autoscaling_config"] = AutoscalingConfig(min_replicas=replicas, max_replicas=most, policy=policy, **(scaling or {}))
    else:
        given["num_replicas"] = replicas
    words = [*map(str, args), "--parallel", str(parallel), "--metrics"]
    deployed = serve.deployment(Replica).options(name="greta", **given).bind(words, env)
    return serve.deployment(Ingress).options(name="ingress", **{"max_ongoing_requests": 1000, **(ingress_options or {})}).bind(deployed)
