"""greta-cli serve as a child process, and as replicas under Ray Serve.

Importing the package needs nothing but Python; greta_ray.app needs ray[serve].
"""
from .client import Answer, Client, Gone
from .prefix import prefix_of, rank
from .process import Server
from .prometheus import parse, total

__all__ = ["Answer", "Client", "Gone", "Server", "parse", "prefix_of", "rank", "total"]
