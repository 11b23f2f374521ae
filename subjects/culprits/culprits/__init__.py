"""Pairs of Python statements, of which the second is slower for one known reason.

`laggard-bench.toml` has the statements, `planted.toml` the reasons. The libraries are loaded from the directory
LAGGARD_CULPRITS, or from the directory of this file. `python -m culprits` checks that both sides of each pair agree.
"""


from . import filters, text, track
from .native import Library, pointer

# Argument and return types: p pointer, n size or stride, i int, u 64-bit unsigned, w 32-bit unsigned, f float,
# d double, b bool, - none.
c = Library(
    "culprits_c",
    has_avx2="i:",
    shape_f32_scalar="-:ppn",
    shape_f32_avx2="-:ppn",
    scale_up="-:ppnd",
    scale_down="-:ppnd",
    running_mean="i:ppnnp",
    select_above="n:ppni",
    shares="f:ppn",
    soften="-:ppn",
    soften_v1="-:ppn",
    sum_view="d:pnnnn",
    transpose="-:ppnn",
    row_norms="d:ppnni",
)
rust = Library(
    "culprits_rust",
    tone_f32_sse2="-:ppn",
    tone_f32_avx2="-:ppn",
    contacts_half="u:ppnd",
    contacts_full="u:ppnd",
    mix="w:u",
    mix_all="u:pn",
    digest="u:pn",
    total="d:pppn",
    escape_steps="u:pnnn",
    store_open="p:b",
    store_read="u:pu",
)
