"""Pictures and tables: one look, and the charts of the collection; nothing is computed here.

>>> from kscore import figures
>>> fig, ax = figures.panels()
>>> figures.forest(rows, ax)
"""

from kscore.figures.charts import (
    forest,
    forest_grid,
    forest_panels,
    heat,
    learning,
    learning_panels,
    live,
    live_panel,
    survival,
    survival_panels,
)
from kscore.figures.style import (
    BLUE,
    BROWN,
    CONTROL_METHODS,
    EPISODE_METHODS,
    FAIR_METHODS,
    GREEN,
    GREY,
    GROUP_METHODS,
    INK,
    LOOKS,
    METHODS,
    ORANGE,
    PURPLE,
    RED,
    RELATIVE_METHODS,
    SKY,
    SPOKEN,
    TEAL,
    WRAPPER_METHODS,
    caption,
    label,
    method,
    panels,
    show,
    use_style,
)
from kscore.figures.tables import counted, ended, factors, least_factor, pairing, run_count, sentences, table, verdicts
