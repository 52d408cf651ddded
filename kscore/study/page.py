"""The tables of parts in data/PLAN.md: `python -m kscore.study.page` writes them as data/plan.toml has them."""

import re

from kscore.project import DATA
from kscore.study import plan

PATH = DATA / "PLAN.md"


def rendered(text: str) -> str:
    """Return the text of data/PLAN.md with the tables of this plan; each stands below a line `<!-- parts: NAME -->`."""
    tables: dict[str, list[str]] = {}
    for table, row in plan.rows():
        name = re.sub(r"{(\w+)}", lambda found, row=row: f"{{{','.join(row[found[1]])}}}", row["name"])
        first = {1000: "", 2000: " tuning"}.get(row["first_seed"], f" from {row['first_seed']}")
        tables.setdefault(table, []).append(f"| `{name}` | {row['says']} | {row['seeds']}{first} |\n")
    for table, lines in tables.items():
        head = f"<!-- parts: {table} -->\n"
        if text.count(head) != 1:
            raise ValueError(f"{PATH.name} must have one line {head.strip()!r}, got {text.count(head)}")
        before, after = text.split(head)
        below = re.sub(r"\A(\|.*\n)*", "", after)
        text = f"{before}{head}| file | arms | seeds |\n|---|---|---|\n{''.join(lines)}{below}"
    return text


if __name__ == "__main__":
    PATH.write_text(rendered(PATH.read_text(encoding="utf-8")), encoding="utf-8")
