"""A small network with a policy and a value, and its gradients, in NumPy: one hidden layer, trained by Adam."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_DECAYS = 0.9, 0.999


class ActorCriticNet:
    """State (features,) -> value, and a probability for each action."""

    def __init__(self, features: int, actions: int, hidden: int, rate: float, random: np.random.Generator) -> None:
        def layer(inputs: int, outputs: int) -> Array:
            bound = 1.0 / max(1, inputs) ** 0.5
            return random.uniform(-bound, bound, (outputs, inputs + 1))

        self._weights = [layer(features, hidden), layer(hidden, 1), layer(hidden, actions)]
        self._first = [np.zeros_like(weight) for weight in self._weights]
        self._second = [np.zeros_like(weight) for weight in self._weights]
        self._steps, self._rate = 0, rate

    def __call__(self, state: Array) -> tuple[float, Array]:
        _, hidden = self._hidden(state)
        return float(self._weights[1][0] @ hidden), _softmax(self._weights[2] @ hidden)

    def train(self, states: Sequence[Array], actions: Sequence[int], rewards: Sequence[float]) -> None:
        """One step down the gradient of the sum over all of: -log(policy of the action) * advantage + advantage².

        The advantage, reward - value, is a constant in the first term.
        """
        gradients = [np.zeros_like(weight) for weight in self._weights]
        for one in zip(states, actions, rewards, strict=True):
            for total, part in zip(gradients, self.gradients(*one), strict=True):
                total += part
        self._adam(gradients)

    def gradients(self, state: Array, action: int, reward: float) -> list[Array]:
        inputs, hidden = self._hidden(state)
        value, policy = float(self._weights[1][0] @ hidden), _softmax(self._weights[2] @ hidden)
        advantage = reward - value
        of_logits = advantage * policy
        of_logits[action] -= advantage
        of_value = -2.0 * advantage
        of_hidden = of_value * self._weights[1][0] + of_logits @ self._weights[2]
        of_hidden = np.where(hidden > 0, of_hidden, 0.0)[:-1]
        return [np.outer(of_hidden, inputs), of_value * hidden[None, :], np.outer(of_logits, hidden)]

    def _hidden(self, state: Array) -> tuple[Array, Array]:
        """Inputs and hidden values, each with a one for the bias."""
        inputs = np.append(state, 1.0)
        return inputs, np.append(np.maximum(self._weights[0] @ inputs, 0.0), 1.0)

    def _adam(self, gradients: Sequence[Array]) -> None:
        self._steps += 1
        for weight, first, second, gradient in zip(self._weights, self._first, self._second, gradients, strict=True):
            first += (1 - _DECAYS[0]) * (gradient - first)
            second += (1 - _DECAYS[1]) * (gradient**2 - second)
            mean = first / (1 - _DECAYS[0] ** self._steps)
            spread = second / (1 - _DECAYS[1] ** self._steps)
            weight -= self._rate * mean / (np.sqrt(spread) + 1e-8)


def _softmax(logits: Array) -> Array:
    powers = np.exp(logits - logits.max())
    return powers / powers.sum()
