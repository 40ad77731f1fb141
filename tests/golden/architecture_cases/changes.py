"""What a converter does to a tensor between transformers and GGUF: functions of (tensor, config)."""


def as_it_is(t, config):
    return t


def plus_one(t, config):
    return t + 1


def pairs(t, heads):
    """Rows i and i + D/2 of a head, which rotate together, become 2i and 2i + 1."""
    return t.reshape(heads, 2, t.shape[0] // heads // 2, *t.shape[1:]).swapaxes(1, 2).reshape(t.shape)


def query_pairs(t, config):
    return pairs(t, config.num_attention_heads)


def key_pairs(t, config):
    return pairs(t, config.num_key_value_heads)


def gate_rows(t, config):
    return t[:t.shape[0] // 2]


def up_rows(t, config):
    return t[t.shape[0] // 2:]


def gate_experts(t, config):
    """[experts, gate rows then up rows, width]"""
    return t[:, :t.shape[1] // 2]


def up_experts(t, config):
    return t[:, t.shape[1] // 2:]


def down_experts(t, config):
    return t


def transposed(t, config):
    return t.transpose(-1, -2)


def gate_columns(t, config):
    """Gate and up take turns: along dimension 1 of [experts, 2 F, ...]."""
    return t[:, 0::2]


def up_columns(t, config):
    return t[:, 1::2]


def latent(t, config):
    """kv_b_proj by head: [heads, nope + value, rank]"""
    return t.reshape(config.num_attention_heads, config.qk_nope_head_dim + config.v_head_dim, config.kv_lora_rank)


def latent_keys(t, config):
    """[heads, rank, nope]: maps a query's part without rope into the latent space"""
    return latent(t, config)[:, :config.qk_nope_head_dim].transpose(1, 2)


def latent_values(t, config):
    """[heads, value, rank]"""
    return latent(t, config)[:, config.qk_nope_head_dim:]


def regroup(model, before, after):  # of GPT-NeoX
    """The class has queries, keys and values of a head together, the file those of all heads."""
    for layer in model.gpt_neox.layers:
        for tensor in layer.attention.query_key_value.parameters():
            apart = tensor.data.unflatten(0, (before, 3, -1)).transpose(0, 1).flatten(1, 2)
            tensor.data = apart.unflatten(1, (after, -1)).transpose(0, 1).flatten(0, 2).contiguous()
