"""What a case is, and the metadata that every architecture has."""
from dataclasses import dataclass, field

VOCAB = 64


@dataclass
class Case:
    name: str            # of the file: <architecture>-<variant>
    model: str           # class of transformers, less "ForCausalLM"
    table: list          # of tables.py
    config: dict         # of the model class
    keys: dict = field(default_factory=dict)   # metadata beside that of all models or of the converter, without the prefix
    arch: str = ""       # general.architecture; else what stands before the first "-" of the name
    factors: str = ""    # rope factors that the file must hold: "llama3" or "longrope"
    tokens: int = 28     # of the golden
    context: int = 64    # of the session that is to reproduce it
    seed: int = 0        # else drawn from the name
    spread: dict = field(default_factory=dict)  # part of a tensor's name: standard deviation times sqrt(inputs)
    mxfp4: str = ""      # part of a name: tensors of the file that are MXFP4
    # Of converted cases only.
    # The config is that of the text part of a model that reads pictures, too; a dictionary is the rest of it.
    pictures: bool | dict = False
    published: dict = field(default_factory=dict)  # what config.json says otherwise than transformers saves it; None: no such key
    options: dict = field(default_factory=dict)  # of the converter
    old_latent: bool = False  # latent attention in the form of before April 2025

    def __post_init__(self):
        self.arch = self.arch or self.name.split("-")[0]


def shape(width, heads, kv_heads, ffn, layers=2, **more):
    """The part of a config that all model classes share."""
    return dict(vocab_size=VOCAB, hidden_size=width, num_attention_heads=heads, num_key_value_heads=kv_heads,
                intermediate_size=ffn, num_hidden_layers=layers, max_position_embeddings=256,
                bos_token_id=1, eos_token_id=2, pad_token_id=None, **more)


def rope(base=10000.0, **more):
    return {"rope_type": "default", "rope_theta": base, **more}


def yarn(base, factor, original, **more):
    return {"rope_type": "yarn", "rope_theta": base, "factor": factor,
            "original_max_position_embeddings": original, **more}


def yarn_keys(factor, original, **more):
    return {"rope.scaling.type": "yarn", "rope.scaling.factor": float(factor),
            "rope.scaling.original_context_length": original, **more}


def base_of(config):
    parameters = config.rope_parameters
    return parameters.get("full_attention", parameters)["rope_theta"]


def common_keys(case, config):
    """What the converter writes for every model (TextModel.set_gguf_parameters in conversion/base.py)."""
    keys = {
        "block_count": config.num_hidden_layers,
        "context_length": config.max_position_embeddings,
        "embedding_length": config.hidden_size,
        "feed_forward_length": config.intermediate_size,
        "attention.head_count": config.num_attention_heads,
        "attention.head_count_kv": config.num_key_value_heads,
        "rope.freq_base": float(base_of(config)),
        "vocab_size": config.vocab_size,
    }
    if getattr(config, "rms_norm_eps", None) is not None:
        keys["attention.layer_norm_rms_epsilon"] = config.rms_norm_eps
    if "head_dim" in case.config:
        keys["attention.key_length"] = keys["attention.value_length"] = config.head_dim
    return {**keys, **case.keys}
