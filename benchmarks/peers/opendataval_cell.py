"""Value the rows of one npz by one of OpenDataVal's methods; started by run_opendataval_table.py.

    python opendataval_cell.py ROWS.npz VALUES.npz --method ame --seed 0

The model is scikit-learn's LogisticRegression in OpenDataVal's own wrapper (its preset
"sklogreg"), the utility accuracy on the validation rows, both as the package makes them.
Budgets are the package's defaults: 1,000 models (AME: 1,000 for each of its four
proportions; DVRL: 1,000 epochs), and GrTMCSampler for Data Shapley and Beta Shapley, which
share one run of it, as the package advises. It asks for at least 1,000 permutations; the
limit of processor seconds ends it before, and what was sampled by then is what is
evaluated. So it is with Data Banzhaf and Data-OOB, averages over models; the others have
no values to give where they meet the limit. The report says who met it.

What OpenDataVal imports but needs for no value (plots, language models, downloads) is
replaced by stand-ins, so that numpy, scipy, scikit-learn, torch and tqdm are enough.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.machinery
import io
import json
import os
import sys
import types
import warnings

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[threads] = "1"
warnings.filterwarnings("ignore")

UNUSED = (
    "matplotlib", "mpl_toolkits", "pandas", "PIL", "requests", "torchvision", "transformers",
)  # fmt: skip


class Anything(type):
    """A class that can be named in a type, as can whatever is asked of it."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything(name, (), {})


class StandIn(types.ModuleType):
    """A module every name of which is such a class."""

    __path__ = ()
    __getattr__ = Anything.__getattr__


class StandIns:
    """Finds a stand-in for whatever of UNUSED is imported."""

    @staticmethod
    def find_spec(name, path=None, target=None):  # noqa: ARG004 - importlib's signature
        if name.partition(".")[0] in UNUSED:
            return importlib.machinery.ModuleSpec(name, StandIns, is_package=True)
        return None

    @staticmethod
    def create_module(spec):
        return StandIn(spec.name)

    @staticmethod
    def exec_module(module):
        """Leave it as it is."""


import numpy as np  # noqa: E402
import sklearn.linear_model  # noqa: E402  before the stand-ins: it asks for pandas itself
import torch  # noqa: E402
from measured import Meter, OutOfTime, read_table, versions  # noqa: E402

sys.meta_path.insert(0, StandIns)

from opendataval import dataval as odv  # noqa: E402
from opendataval.dataloader import DataFetcher  # noqa: E402
from opendataval.dataval.margcontrib.sampler import GrTMCSampler  # noqa: E402
from opendataval.metrics import accuracy  # noqa: E402
from opendataval.model import ClassifierSkLearnWrapper  # noqa: E402


class CountedModel(ClassifierSkLearnWrapper):
    """The package's wrapper; the meter is told of every fit."""

    meter = None

    def fit(self, *args, **settings):
        try:
            self.meter.fit_scored()
        except OutOfTime:
            self.meter.ended = True
            raise
        return super().fit(*args, **settings)


class LimitedSampler(GrTMCSampler):
    """The library's sampler, its permutations untouched, with a time limit around them."""

    meter = None

    def compute_marginal_contribution(self, *args, **settings):
        if not hasattr(self, "marginal_contribution"):
            with contextlib.suppress(OutOfTime):
                super().compute_marginal_contribution(*args, **settings)
            self.marginal_contribution = self.marginal_contrib_sum / self.marginal_count
        return self.marginal_contribution

    def _calculate_marginal_contributions(self, *args, **settings):
        found = super()._calculate_marginal_contributions(*args, **settings)
        self.meter.permutation_done()
        return found


def semivalues(seed, meter):
    """Data Shapley and Beta Shapley of one sampler; the second finds the work done."""
    sampler = LimitedSampler(cache_name=None, random_state=seed)
    sampler.meter = meter
    return {
        "data shapley": odv.DataShapley(sampler),
        "beta shapley": odv.BetaShapley(sampler),
    }


METHODS = {  # what one process answers: the package's evaluators, by name in the table
    "random": lambda seed, _: {"random": odv.RandomEvaluator(random_state=seed)},
    "knn 10": lambda seed, _: {"knn 10": odv.KNNShapley(10, random_state=seed)},
    "knn 100": lambda seed, _: {"knn 100": odv.KNNShapley(100, random_state=seed)},
    "lava": lambda seed, _: {"lava": odv.LavaEvaluator(random_state=seed)},
    "dvrl": lambda seed, _: {"dvrl": odv.DVRL(random_state=seed)},
    "loo": lambda seed, _: {"loo": odv.LeaveOneOut(random_state=seed)},
    "data banzhaf": lambda seed, _: {"data banzhaf": odv.DataBanzhaf(random_state=seed)},
    "data-oob": lambda seed, _: {"data-oob": odv.DataOob(random_state=seed)},
    "ame": lambda seed, _: {"ame": odv.AME(random_state=seed)},
    "semivalues": semivalues,
}

AVERAGES = (odv.DataBanzhaf, odv.DataOob)  # over models: those fitted in time are averaged


def fetched(table, n_classes, seed):
    X, y, X_val, y_val = table
    hot, hot_val = np.eye(n_classes)[y], np.eye(n_classes)[y_val]
    return DataFetcher.from_data_splits(
        X, hot, X_val, hot_val, X_val, hot_val, one_hot=True, random_state=seed
    )


def trained(method, fetcher, model):
    """Whether the method came to its end before the limit."""
    with contextlib.suppress(OutOfTime):
        method.train(fetcher, model, accuracy)
        return True
    return False


def main():
    asked = arguments()
    torch.set_num_threads(1)
    table = read_table(asked.rows)
    with np.load(asked.rows) as stored:
        n_classes, digest = int(stored["n_classes"]), str(stored["digest"])
    fetcher = fetched(table, n_classes, asked.seed)
    model = CountedModel(sklearn.linear_model.LogisticRegression, n_classes)
    meter = CountedModel.meter = Meter(asked.max_cpu_seconds)
    meter.ended = False

    values, silence = {}, io.StringIO()
    with contextlib.redirect_stdout(silence), contextlib.redirect_stderr(silence):
        for name, method in METHODS[asked.method](asked.seed, meter).items():
            if trained(method, fetcher, model) or isinstance(method, AVERAGES):
                values[name] = np.asarray(method.data_values, dtype=np.float32).ravel()
    report = {
        "method": asked.method,
        "rows": digest,
        **meter.read(),
        "limit_cpu_seconds": asked.max_cpu_seconds,
        "ended_by_limit": meter.ended,
        "versions": versions("opendataval", "torch", "numpy", "scipy", "scikit-learn"),
    }
    np.savez(asked.out, report=json.dumps(report), **values)


def arguments():
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("rows", help="npz with X_train, y_train, X_val, y_val, n_classes")
    parser.add_argument("out", help="npz to write: values by name, and report, a JSON text")
    parser.add_argument("--method", choices=METHODS, required=True)
    parser.add_argument("--max-cpu-seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
