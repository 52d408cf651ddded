"""Whole episodes of CartPole-v1 in compiled code: the same records as the plain loop, several times as fast.

What is compiled is the inner loop alone: look, choose, move. All chance is drawn outside of it, by the same generators
in the same order, and the two products of a forward pass are done by the very routine of OpenBLAS that numpy calls. So
an episode is the same to the last bit, and with it the record. Nobody has to believe that: before the first use with a
width of the hidden layer, thousands of single steps and some episodes are done both ways, and if one bit differs
the plain loop, `environments.play` and `environments.evaluate`, goes on playing. `training.why_plain` says why.
"""

import ctypes
import logging
import math
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from gymnasium.envs.classic_control import CartPoleEnv

from kscore.rl import disturbances, environments
from kscore.rl.environments import BLOCK, Environment, Episode
from kscore.rl.networks import Dropout, Memory, Network
from kscore.rl.policies import Categorical, Policy

ENOUGH = 1_000  # updates that take the plain loop longer than compiling takes: seven runs or so
EARLY = 3  # a run ends on average after this part of the episodes that it may have
SINGLE, STEPS = 2_000, 300  # steps from anywhere, and steps of episodes, that are compared at first use


class Loop(NamedTuple):
    """Who plays a run's episodes, and why it is not the compiled loop; None if it is."""

    play: Callable[[Environment, Policy, np.random.Generator, Dropout], Episode]
    evaluate: Callable[[Environment, Policy], tuple[float, int]]
    why_plain: str | None


# Which loop


_updates, _ahead = 0, 0  # of this process: asked for so far, and those that are still to come


def expect(episodes: int) -> None:
    """Let this process know how many episodes its runs may still have, so that it need not wait with compiling."""
    global _ahead
    _ahead = episodes // EARLY


def loop_for(environment: Environment, policy: Policy) -> Loop:
    """Return the loop for the next update: the compiled one where it can be used, is worth its time, and is right."""
    global _updates
    why = _unsuited(environment, policy)
    if why is None:
        _updates += 1
        why = "too few runs for two seconds of compiling" if _updates + _ahead < ENOUGH else _fault(_width(policy))
    return Loop(play, evaluate, None) if why is None else Loop(environments.play, environments.evaluate, why)


def why_plain(environment: Environment, policy: Policy) -> str | None:
    """Return why such episodes are never played by compiled code, or None if they are as soon as it pays."""
    return _unsuited(environment, policy) or _fault(_width(policy))


def _unsuited(environment: Environment, policy: Policy) -> str | None:
    bare = environment.env
    if isinstance(bare, disturbances.Disturbed):
        if type(bare.disturbance).action is not disturbances.Disturbance.action:
            return "its disturbance changes actions"
        bare = bare.env
    if type(bare) is not CartPoleEnv:
        return "its environment is not CartPole-v1"
    if bare.kinematics_integrator != "euler" or bare._sutton_barto_reward:
        return "its CartPole has other rules"
    if type(policy.head) is not Categorical:
        return "its head is not the usual one"
    return None if policy.outputs.single_relu else "its network is not one hidden layer of ReLU"


def _width(policy: Policy) -> int:
    return len(policy.outputs.single_relu.hidden)


# The compiled loop


def play(environment: Environment, policy: Policy, rng: np.random.Generator, dropout: Dropout) -> Episode:
    """Play what `environments.play` would."""
    state, blocks = _begun(environment), []
    for start in range(0, environment.limit, BLOCK):
        steps = min(BLOCK, environment.limit - start)
        masks, noise = dropout.draw(steps), policy.head.noise(rng, steps)
        *played, over = _run(environment, policy, state, steps, _nothing(policy) if masks is None else masks[0], noise)
        blocks.append(played if masks is None else [*played, masks[0][: len(played[0])]])
        if over:
            break
    observations, actions, *masks = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return Episode(observations, actions, _rewards(environment, len(actions)), masks or None)


def evaluate(environment: Environment, policy: Policy) -> tuple[float, int]:
    """Play what `environments.evaluate` would."""
    nothing = _nothing(policy)
    _, actions, _ = _run(environment, policy, _begun(environment), environment.limit, nothing, nothing)
    return float(len(actions)), len(actions)


def _begun(environment: Environment) -> np.ndarray:
    environment.env.reset()
    return environment.env.unwrapped.state.copy()


def _run(environment: Environment, policy: Policy, state: np.ndarray, steps: int, masks: np.ndarray, noise: np.ndarray):
    """Go on from a state, which is changed; return observations, actions, and whether the pole fell."""
    observations, actions = np.empty((steps, len(state)), np.float32), np.empty(steps, np.int64)
    pole = _pole(environment.env.unwrapped)
    played = _machine_code()(state, pole, policy.outputs.single_relu, masks, noise, observations, actions)
    return observations[: abs(played)], actions[: abs(played)], played < 0


def _nothing(policy: Policy) -> np.ndarray:
    """Return masks, or noise, for no steps at all."""
    return np.empty((0, _width(policy)), np.float32)


def _rewards(environment: Environment, steps: int) -> list[float]:
    """Return what the steps of an episode paid, as the learner is told it; what they really paid stays in `clean`."""
    paid, env = [1.0] * steps, environment.env
    if not isinstance(env, disturbances.Disturbed):
        return paid
    env.clean = paid
    return [env.disturbance.reward(reward, env.rng) for reward in paid] if env.begun else list(paid)


Pole = tuple[float, ...]


def _pole(env: CartPoleEnv) -> Pole:
    """Return the numbers of the physics, in the order in which `moved` takes them apart."""
    masses = env.masspole, env.total_mass, env.polemass_length
    return env.gravity, *masses, env.length, env.force_mag, env.tau, env.x_threshold, env.theta_threshold_radians


def moved(state: np.ndarray, action: int, pole: Pole) -> bool:
    """Move cart and pole by a step, and say whether that was the end: gymnasium's arithmetic, in gymnasium's order."""
    gravity, mass, total, moment, length, push, tau, farthest, steepest = pole
    x, velocity, angle, turning = state
    force, cos, sin = push if action == 1 else -push, math.cos(angle), math.sin(angle)
    pushed = (force + moment * (turning * turning) * sin) / total
    twist = (gravity * sin - cos * pushed) / (length * (4.0 / 3.0 - mass * (cos * cos) / total))
    thrust = pushed - moment * twist * cos / total
    state[0], state[1] = x + tau * velocity, velocity + tau * thrust
    state[2], state[3] = angle + tau * turning, turning + tau * twist
    return abs(state[0]) > farthest or abs(state[2]) > steepest


@cache
def _machine_code() -> Callable[..., int]:
    """Compile the loop: it fills `observations` and `actions`, and returns their number, negative if the pole fell."""
    import numba

    product, move, one, zero = _numpys_product(), numba.njit(moved), np.float32(1), np.float32(0)

    @numba.njit
    def run(state, pole, layers, masks, noise, observations, actions):
        inputs, matrix, hidden, last, bias, outputs = layers
        width, count = len(hidden), len(outputs)
        for t in range(len(actions)):
            for i in range(len(state)):
                observations[t, i] = inputs[i] = state[i]
            product(101, 112, len(inputs), width, one, matrix.ctypes, width, inputs.ctypes, 1, zero, hidden.ctypes, 1)
            for i in range(width):
                if len(masks):
                    hidden[i] *= masks[t, i]
                if hidden[i] < zero:
                    hidden[i] = zero
            product(101, 111, count, width, one, last.ctypes, width, hidden.ctypes, 1, zero, outputs.ctypes, 1)
            for i in range(count):
                outputs[i] += bias[i]
                if len(noise):
                    outputs[i] += noise[t, i]
            actions[t] = np.argmax(outputs)
            if move(state, actions[t], pole):
                return -(t + 1)
        return len(actions)

    return run


def _numpys_product() -> Callable:
    """Return the routine by which numpy multiplies a matrix and a vector, from the library that comes with numpy."""
    home = Path(np.__file__).parent
    found = [
        path for folder in (home.with_name("numpy.libs"), home / ".dylibs") for path in folder.glob("*openblas64_*")
    ]
    if not found:
        raise OSError("this numpy brings no OpenBLAS of its own")
    product = ctypes.CDLL(str(found[0])).scipy_cblas_sgemv64_
    how, size, factor = [ctypes.c_int], [ctypes.c_int64], [ctypes.c_float]
    vector = [ctypes.c_void_p, ctypes.c_int64]  # where it is, and its stride; a matrix is told in the same way
    product.argtypes = 2 * how + 2 * size + factor + vector + vector + factor + vector
    product.restype = None
    return product


# The check


@cache
def _fault(width: int) -> str | None:
    """Return what is wrong with the compiled loop at a width, or None: it was compiled, and does what it has to."""
    try:
        fault = _compared(width)
    except ImportError:
        fault = "numba is not installed"
    except Exception as error:  # whatever it is, the plain loop is there
        fault = f"it cannot be compiled: {error}"
    if fault is not None:
        logging.getLogger(__name__).info("width %s is played by the plain loop: %s", width, fault)
    return fault


def _compared(width: int) -> str | None:
    rng, sizes = np.random.default_rng(width), (4, width, 2)
    memory = Memory(Network.size(sizes, "relu"))
    environment = environments.make("CartPole-v1", 0)
    policy = Policy(Network(sizes, "relu", rng, memory), Categorical(environment.actions, memory))
    memory.parameters.numpy()[:] += rng.normal(0, 0.1, len(memory.parameters))  # biases are not 0
    for state in rng.normal(0, (1, 2, 0.15, 2), (SINGLE, 4)):
        if fault := _differing(environment, policy, state):
            return fault
    for dropout in (0.0, 0.5):
        plain = list(_samples(environments.play, environments.evaluate, policy, dropout))
        if plain != list(_samples(play, evaluate, policy, dropout)):
            return "its episodes differ from the plain loop's"
    return None


def _differing(environment: Environment, policy: Policy, state: np.ndarray) -> str | None:
    """Take a step from a state both ways; say what differs, if anything does."""
    env, outputs = environment.env, policy.outputs(state.astype(np.float32)).copy()
    env.state, env.steps_beyond_terminated = state.copy(), None
    over = env.step(outputs.argmax())[2]
    own = _run(environment, policy, state, 1, _nothing(policy), _nothing(policy))[2]
    if policy.outputs.single_relu.outputs.tobytes() != outputs.tobytes():
        return "its products differ from numpy's"
    return None if own == over and state.tobytes() == env.state.tobytes() else "its steps differ from gymnasium's"


def _samples(play: Callable, evaluate: Callable, policy: Policy, dropout: float) -> Iterator[tuple]:
    """Play as many steps as are to be compared, in training and in evaluation; yield everything that came out."""
    environment, rng, steps = environments.make("CartPole-v1", 0), np.random.default_rng(0), 0
    source = Dropout(dropout, [_width(policy)], np.random.default_rng(1))
    while steps < STEPS:
        episode = play(environment, policy, rng, source)
        steps += len(episode.rewards)
        masks = [layer.tobytes() for layer in episode.masks or []]
        yield episode.observations.tobytes(), episode.actions.tolist(), episode.rewards, masks, rng.random()
        yield evaluate(environment, policy)
