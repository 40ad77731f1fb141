"""As settings.py, for keys of layers with states and of positions in several dimensions."""
from .settings import REQUIRED, NoChange, NoReference, Setting, head_width, no_change, size


def state_size(state, value):
    """Granite's files give the sizes where no layer has a state, too."""
    if state.arch in ("granite", "granitemoe"):
        raise NoChange("no layer has a state space")
    raise NoReference


def recurrent_layers(state, value):
    if value is None:
        raise NoChange("full_attention_interval says the same")
    raise NoReference


def sections(state, value):
    turned = state.keys.get("rope.dimension_count", state.keys.get("attention.key_length", head_width(state)))
    if value and sum(value) > turned // 2:
        raise NoReference
    raise NoChange("a text has one position in all dimensions")


RECURRENT = {f"ssm.{name}": Setting(
    state_size, lambda state: 0 if state.arch in ("granite", "granitemoe") else REQUIRED)
             for name in ("conv_kernel", "state_size", "group_count", "inner_size", "time_step_rank")}
RECURRENT |= {
    "ssm.dt_b_c_rms": Setting(size, False),
    "full_attention_interval": Setting(no_change("attention.recurrent_layers says which layers attend"), 4),
    "attention.recurrent_layers": Setting(recurrent_layers, None),
    "rope.dimension_sections": Setting(sections, None),
    "n_deepstack_layers": Setting(no_change("pictures pass these layers, text does not"), None),
}
