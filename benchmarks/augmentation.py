"""The amplified half of `hcdv bench augment`, on fewer images: hours of work in minutes.

    python benchmarks/augmentation.py [--data FOLDER] [--seeds 1] [--out benchmarks/results]

6,000 originals and 1,000 candidates in place of 60,000 and 10,000, slices of 100, each 18
times over beside 4,200 originals as in the table. Left out are slices added once and the
methods that change little here (`hcdv κ=0`, `hcdv joint`). Finished cells are kept.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from speed import command

from hcdv.bench.augment import AugmentTable, Size
from hcdv.bench.cells import Ask, run
from hcdv.bench.datasets import data_folder

HERE = Path(__file__).resolve().parent
FEWER = Size(originals=6_000, candidates=1_000, judges=2_000, test=5_000, epochs=20)
METHODS = "originals,hcdv,hcdv chosen,mcds,group shapley,random"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder of the real data sets")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--out", type=Path, default=HERE / "results")
    given = parser.parse_args()
    table = AugmentTable("augment-amplified", FEWER, ("amplified",))
    ask = Ask(
        given.out, data_folder(given.data), given.seeds, only={"method": METHODS},
        command=command(),
    )  # fmt: skip
    print(run(table, ask, lambda said: print(said, file=sys.stderr, flush=True)))


if __name__ == "__main__":
    main()
