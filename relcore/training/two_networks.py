"""`TwoNetworks`: two networks that learn the digits of scikit-learn side by side, from different random
states, watched as any training is.

Four more pairs learn with them, because pairs differ. All networks are one stack of
weights, so that ten of them take little longer than one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from relcore.base.errors import extra, need_one_of
from relcore.base.numbers import short
from relcore.encoders.bundled_data import read_digits
from relcore.engine.threads import one_thread_in_torch
from relcore.scores.score import Interval
from relcore.training.agreement import OWN, RELATIVE, TrainingSpec, is_halfway
from relcore.training.comparison import compare_runs
from relcore.training.runs import Run, open_run
from relcore.training.watching import Watch, watch

if TYPE_CHECKING:
    import torch

EPOCHS = 30
PAIRS = 5
LAYER = "hidden"
_WIDTH = 64
_BATCH = 64
_FRAMES = 16
_PROBE = 600  # held-out digits, which are watched
_RATE = 2e-3
# of Adam
_DECAY_OF_MEANS = 0.9
_DECAY_OF_SQUARES = 0.999
_LEAST_SCALE = 1e-8
NAMES = ("first", "second")


class Lesson(NamedTuple):
    """What the two networks of a pair learn.

    Attributes
    ----------
    title : str
    labels : function
        From the digits (n,) and a random generator to the labels (n,) of one network; the second argument is
        whether it is the second one.
    """

    title: str
    labels: Callable[[np.ndarray, bool, np.random.Generator], np.ndarray]


def _digits(digits: np.ndarray, second: bool, rng: np.random.Generator) -> np.ndarray:
    return digits


def _random_labels(digits: np.ndarray, second: bool, rng: np.random.Generator) -> np.ndarray:
    return rng.permutation(digits)


def _even_or_large(digits: np.ndarray, second: bool, rng: np.random.Generator) -> np.ndarray:
    if second:
        return (digits >= 5).astype(digits.dtype)
    return digits % 2


TASKS = {
    "digits": Lesson("both the digits", _digits),
    "random": Lesson("random labels, each its own", _random_labels),
    "different": Lesson("different tasks: even or odd, below or above 5", _even_or_large),
}


@dataclass(frozen=True)
class Conclusion:
    """What pairs of networks show when they have learned.

    Attributes
    ----------
    rise : Interval
        The mean change of the agreement of similarities to anchors, from before the training to its end, with
        Student's 95 % interval over pairs.
    before, after : float
        The means of this agreement.
    own : float
        The mean agreement on own axes at the end.
    chance : float
        Its chance level.
    n_pairs : int
    measure : str
    """

    rise: Interval
    before: float
    after: float
    own: float
    chance: float
    n_pairs: int
    measure: str = "MRR"

    def sentence(self) -> str:
        span = f"{self.measure} {short(self.before)} before, {short(self.after)} after"
        if self.rise.low > 0:
            verb = "begin"
            if is_halfway(self.before, self.rise.value):
                verb = "come"
            text = f"Their similarities to anchors {verb} to match: {span}, {self.rise.describe()}."
        elif self.rise.high < 0:
            text = f"Their similarities to anchors match less than before: {span}, {self.rise.describe()}."
        else:
            text = f"Their similarities to anchors do not clearly change: {span}, {self.rise.describe()}."
        own = f"On their own axes they match at {short(self.own)} (chance {short(self.chance)})"
        return f"{text} {own}. Means of {self.n_pairs} pairs of random states."


class TwoNetworks:
    """Two networks in training, whose runs are in a folder from the start.

    Each network has two hidden layers of 64. The rows that are watched are those of the second one, for 600
    digits on which no network is trained.

    Parameters
    ----------
    folder : Path
        A new folder. The runs ``first`` and ``second`` are in it, and those of four more pairs below it.
    task : {"digits", "random", "different"}
        What the two networks learn. The last two are controls: nothing makes such networks agree.
    random_state : int
    epochs : int

    Raises
    ------
    SpaceError
        There is no such task, or PyTorch is missing.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> networks = TwoNetworks(Path(mkdtemp()) / "two", epochs=2)
    >>> for epoch in networks.train():
    ...     pass
    >>> [len(run) for run in networks.runs()], networks.conclusion().n_pairs
    ([3, 3], 5)
    """

    def __init__(
        self, folder: Path, task: str = "digits", random_state: int = 0, epochs: int = EPOCHS
    ) -> None:
        need_one_of("task", task, TASKS)
        self.folder = folder
        self.task = task
        self.epochs = epochs
        self.epoch = 0
        (X, self._probe, digits) = _split_digits(random_state)
        self._stack = _Stack(2 * PAIRS, X.shape[1], random_state)
        self._X = self._stack.tensor(X)
        self._labels, self._held_out = self._all_labels(digits, random_state)
        self._generators = [np.random.default_rng((random_state, one)) for one in range(2 * PAIRS)]
        self._open = ExitStack()
        self._shown = [self._watched(one, folder / name, _FRAMES) for one, name in enumerate(NAMES)]
        self._ends = [
            self._watched(one, folder / "pairs" / f"{one // 2 + 1}-{NAMES[one % 2]}", 2)
            for one in range(2 * PAIRS)
        ]

    def _all_labels(
        self, digits: tuple[np.ndarray, np.ndarray], random_state: int
    ) -> tuple[torch.Tensor, np.ndarray]:
        """The labels of all networks (2 · pairs, n), of the training rows and of the probe."""
        both = np.concatenate(digits)
        rows = []
        for one in range(2 * PAIRS):
            rng = np.random.default_rng((random_state, one, 7))
            rows.append(TASKS[self.task].labels(both, one % 2 == 1, rng))
        labels = np.stack(rows)
        n = len(digits[0])
        return self._stack.tensor(labels[:, :n]), labels[:, n:]

    def _watched(self, one: int, folder: Path, steps: int) -> Watch:
        digits = self._probe[1]
        watched = watch(
            folder,
            self._stack.network(one),
            self._stack.whole(self._probe[0]),
            LAYER,
            steps=steps,
            total=self.epochs,
            budget=None,
            labels=digits.astype(str),
            half=True,
        )
        return self._open.enter_context(watched)

    @property
    def done(self) -> bool:
        return self.epoch >= self.epochs

    def train(self, epochs: int | None = None) -> Iterator[int]:
        """Train all networks for some epochs, by default to the end; the number of each epoch that ended."""
        last = self.epochs
        if epochs is not None:
            last = min(last, self.epoch + epochs)
        while self.epoch < last:
            with one_thread_in_torch():
                self._train_once()
            self.epoch += 1
            rights = self._accuracies()
            for watched, right in zip(self._shown, rights, strict=False):
                watched.step(accuracy=right)
            for watched in self._ends:
                watched.step()
            if self.done:
                self.close()
            yield self.epoch

    def close(self) -> None:
        """End the runs. They stay in the folder."""
        self._open.close()

    def _train_once(self) -> None:
        n = len(self._X)
        orders = np.stack([rng.permutation(n) for rng in self._generators])
        for start in range(0, n - _BATCH + 1, _BATCH):
            rows = self._stack.tensor(orders[:, start : start + _BATCH])
            self._stack.step(self._X[rows], self._labels.gather(1, rows))

    def _accuracies(self) -> list[float]:
        answers = self._stack.answers(self._stack.tensor(self._probe[0]))
        return (answers == self._held_out).mean(axis=1).tolist()

    def runs(self) -> list[Run]:
        """The runs of the first pair, as their folder is now."""
        return [open_run(watched.folder) for watched in self._shown]

    def conclusion(self) -> Conclusion:
        """What all pairs show, from before the training to its last frames."""
        runs = [open_run(watched.folder) for watched in self._ends]
        ends = [_ends_of(runs[2 * pair : 2 * pair + 2]) for pair in range(PAIRS)]
        before, after, own, chance = np.array(ends).T
        return Conclusion(
            rise=_mean_interval(after - before),
            before=float(before.mean()),
            after=float(after.mean()),
            own=float(own.mean()),
            chance=float(chance.mean()),
            n_pairs=PAIRS,
        )


class _Stack:
    """The weights of n networks in one stack: two hidden layers, and answers to ten classes."""

    def __init__(self, n: int, d: int, random_state: int) -> None:
        with extra("Training networks"):
            import torch
        self._torch = torch
        self._n = n
        sizes = [(_WIDTH, d), (_WIDTH, _WIDTH), (10, _WIDTH)]
        generator = torch.Generator().manual_seed(random_state)
        self._weights = []
        self._biases = []
        for out, wide in sizes:
            # uniform in ± 1 / √width, as torch.nn.Linear begins
            reach = wide**-0.5
            weight = torch.empty(n, out, wide).uniform_(-reach, reach, generator=generator)
            bias = torch.empty(n, out).uniform_(-reach, reach, generator=generator)
            self._weights.append(weight.requires_grad_())
            self._biases.append(bias.requires_grad_())
        self._optimizer = Adam([*self._weights, *self._biases], _RATE)

    def tensor(self, values: np.ndarray) -> torch.Tensor:
        return self._torch.from_numpy(np.ascontiguousarray(values))

    def whole(self, rows: np.ndarray) -> Any:
        """The rows as a loader of a single batch: they are small, and each batch costs a pass of its own."""
        data = self._torch.utils.data
        return data.DataLoader(data.TensorDataset(self.tensor(rows)), batch_size=len(rows))

    def network(self, number: int) -> torch.nn.Module:
        """One of the networks as a module. It shares its weights with the stack, so it learns with it."""
        nn = self._torch.nn
        layers = []
        for weights, biases in zip(self._weights, self._biases, strict=True):
            (_, out, wide) = weights.shape
            layer = nn.Linear(wide, out)
            layer.weight = nn.Parameter(weights.detach()[number])
            layer.bias = nn.Parameter(biases.detach()[number])
            layers.append(layer)
        (first, second, last) = layers
        parts = {"first": first, "relu": nn.ReLU(), LAYER: nn.Sequential(second, nn.ReLU()), "answers": last}
        return nn.Sequential(OrderedDict(parts))

    def step(self, X: torch.Tensor, labels: torch.Tensor) -> None:
        """One step of Adam for each network, on its own rows (n, m, d) and labels (n, m)."""
        scores = self._forward(X)
        entropy = self._torch.nn.functional.cross_entropy
        # A sum over networks: the gradient of each is what it would be alone.
        loss = entropy(scores.flatten(0, 1), labels.flatten(), reduction="sum") / X.shape[1]
        loss.backward()
        self._optimizer.step()

    def answers(self, X: torch.Tensor) -> np.ndarray:
        """The classes (n, m) that the networks name for the same rows (m, d)."""
        with self._torch.inference_mode():
            return self._forward(X.expand(self._n, -1, -1)).argmax(-1).numpy()

    def _forward(self, X: torch.Tensor) -> torch.Tensor:
        for number, (weights, biases) in enumerate(zip(self._weights, self._biases, strict=True)):
            X = self._torch.baddbmm(biases[:, None], X, weights.transpose(1, 2))
            if number < len(self._weights) - 1:
                X = X.relu()
        return X


class Adam:
    """Adam with the usual settings of `torch.optim.Adam`, and to the last bit its steps.

    The first optimizer of PyTorch in a process imports its compiler, which takes longer than this training.
    """

    def __init__(self, parameters: list[torch.Tensor], rate: float) -> None:
        import torch

        self.parameters = parameters
        self.rate = rate
        self.n_steps = 0
        self._no_grad = torch.no_grad
        self._means = [torch.zeros_like(one) for one in parameters]
        self._squares = [torch.zeros_like(one) for one in parameters]

    def step(self) -> None:
        """Change the parameters by their gradients, and clear these."""
        self.n_steps += 1
        size = self.rate / (1 - _DECAY_OF_MEANS**self.n_steps)
        scale = (1 - _DECAY_OF_SQUARES**self.n_steps) ** 0.5
        with self._no_grad():
            for one, mean, square in zip(self.parameters, self._means, self._squares, strict=True):
                gradient = one.grad
                assert gradient is not None
                mean.lerp_(gradient, 1 - _DECAY_OF_MEANS)
                square.mul_(_DECAY_OF_SQUARES).addcmul_(gradient, gradient, value=1 - _DECAY_OF_SQUARES)
                one.addcdiv_(mean, (square.sqrt() / scale).add_(_LEAST_SCALE), value=-size)
                one.grad = None


def _ends_of(runs: list[Run]) -> tuple[float, float, float, float]:
    """The agreement of two runs by similarities, at their first and last frames; that on own axes at the last
    one, and its chance level."""
    result = compare_runs(runs, TrainingSpec(LAYER))
    relative = result.agreement(RELATIVE)
    own = result.agreement(OWN).iloc[-1]
    return relative.score.iloc[0], relative.score.iloc[-1], own.score, own.chance


def _mean_interval(values: np.ndarray) -> Interval:
    """The mean with Student's 95 % interval."""
    from scipy.special import stdtrit  # equals `scipy.stats.t.ppf`, but is imported faster

    n = len(values)
    mean = float(values.mean())
    half = float(stdtrit(n - 1, 0.975) * values.std(ddof=1) / np.sqrt(n))
    return Interval(mean, mean - half, mean + half)


def _split_digits(
    random_state: int,
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """The pictures (n, 64) to train on; the probe's pictures with their digits; the digits of both."""
    X, digits = read_digits()
    X = (X / 16).astype(np.float32)
    order = np.random.default_rng(random_state).permutation(len(X))
    probe = order[:_PROBE]
    train = order[_PROBE:]
    return X[train], (X[probe], digits[probe]), (digits[train], digits[probe])
