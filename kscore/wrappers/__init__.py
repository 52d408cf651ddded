"""The normalizers in other people's loops: environments of Gymnasium, and the learners of Stable-Baselines3.

`gymnasium`: wrappers of environments that scale rewards. `sb3`: the same for the vector environments of
Stable-Baselines3, and buffers (`sb3_buffers`) that normalize returns and advantages inside its PPO and A2C. `scaling`:
what they share, on numpy alone, with what is known of `returns`, the `memory` of episodes under way, and `states`.
Each module is imported by its own name, and needs its library only then:

    >>> from kscore.wrappers.scaling import RewardScaling
    >>> RewardScaling("episode", lanes=2, gamma=0.99).lanes
    2
"""
