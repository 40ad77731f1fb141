"""The cases of make_architectures.py: what is made, and how its tensors and keys are named."""
from .dense import DENSE
from .experts import EXPERT
from .gemma import GEMMA
from .latent import LATENT

CASES = DENSE + GEMMA + EXPERT + LATENT
