"""A wrong answer for every exercise: a plausible mistake each, as a student would write it into the cell."""

WRONG = {
    # divides by the variance: the square root is missing
    "00-1": """
def kscore(G, belief, eps=1e-8):
    return (G - belief.mean) / (belief.var + eps)
""",
    # the correlation of the numbers, not of their ranks; strictly better, not at least as good
    "00-2": """
table2 = published[published["id"] == "T2"]
rank_correlation = table2["Q"].corr(table2["episodes"])
orders = [np.corrcoef(range(5), order)[0, 1] for order in itertools.permutations(range(5))]
by_chance = np.mean(np.array(orders) > rank_correlation)
""",
    # looks at one side only
    "00-3": """
def within_ten_percent(runs, studies=2_000):
    simulated = np.exp(np.random.default_rng(1).normal(0, scatter, (2, studies, runs)))
    ratio = np.median(simulated[0], axis=1) / np.median(simulated[1], axis=1)
    return np.mean(ratio - 1 < 0.1)


enough = next(runs for runs in range(10, 1000, 10) if within_ten_percent(runs) >= 0.9)
""",
    # a guess outside of its own interval
    "00-4": """
guess, low, high = 3.0, 0.5, 2.0
change_of_mind = "An interval over many seeds that lies outside of mine as a whole, in two experiments."
""",
    # both sensors count the same
    "01-1": """
def combined_variance(first, second):
    return (first + second) / 4
""",
    # one prediction too many
    "01-2": """
def gain_after_gap(P, Q, R, n):
    belief = filters.Belief(0.0, P)
    for _ in range(n + 1):
        belief = filters.predict(belief, Q)
    return filters.gain(belief, R)
""",
    # time stands still where nothing is seen
    "01-3": """
def filter_with_gaps(z, Q, R):
    belief, path = filters.START, []
    for z_t in z:
        if not np.isnan(z_t):
            belief = filters.update(filters.predict(belief, Q), z_t, R)
        path.append(belief)
    return path
""",
    # limits the observation instead of the surprise, and never gets to 36; what is seen of the check does not notice
    "01-4": """
def robust_update(prior, z, R):
    reach = 3 * np.sqrt(prior.var + R)
    return filters.update(prior, np.clip(z, -reach, reach), R)


steps_later = 988
""",
    # the prior variance of the steady state, not the drift
    "02-1": """
def drift_for_gain(K, R):
    return R * K / (1 - K)
""",
    # the square-root regime taken for the whole truth
    "02-2": """
def memory(Q, R):
    return np.sqrt(R / Q)


growth = memory(1e-8, 1.0) / memory(1e-6, 1.0)
""",
    # claims the variance of the belief, without the noise of the observation
    "02-3": """
def fitted_Q(z, R, candidates):
    late = slice(len(z) // 2, None)
    mismatch = []
    for candidate in candidates:
        path = filters.filter_series(z, candidate, R)
        mismatch.append(abs(np.log(np.var((z - path.prior_mean)[late]) / np.mean(path.prior_var[late]))))
    return candidates[np.argmin(mismatch)]
""",
    # the memory of the ratio turned over
    "02-4": """
signal = "The temperature in my room, in degrees, read once an hour from a cheap thermometer."
my_Q, my_R = 0.1, 0.5
my_memory = 1 / filters.steady_state(my_R, my_Q).gain
""",
    # a ratio of variances: the square root is missing
    "03-1": """
def kscore_over_innovation(prior, R):
    K = filters.gain(prior, R)
    return (1 - K) / K
""",
    # a small drift is not none
    "03-2": """
orderless = {"name": "kscore", "mode": "refit", "Q": 1e-7, "R": krpo["R"]}
""",
    # off by one: the length after the step
    "03-3": """
def first_return(N, gamma=0.99):
    return (1 - gamma**N) / (1 - gamma)


one_percent = next(N for N in range(2, 1000) if first_return(N) / first_return(N - 1) - 1 < 0.01)
""",
    # one mean for all positions
    "03-4": """
def position_scores(earlier, returns):
    return returns - np.mean(np.concatenate(earlier))
""",
    # the sum over the steps
    "04-1": """
def reinforce_loss(log_probs, scores):
    return -(log_probs * scores).sum()
""",
    # what is lost, not what is left; the same for two samples
    "04-2": """
def shrinkage(n):
    return 1 / n
""",
    # starts from another algorithm's preset
    "04-3": """
mine = dataclasses.replace(RunConfig.preset("CartPole-v1", "ppo"), dropout=0.0, criterion="training",
                           normalizer={"name": "kscore", "variant": "adaptive", "mode": "innovation"})
""",
    # the mean of all: every reward helps to judge itself
    "04-4": """
def fair_baseline(rewards):
    return np.full(len(rewards), rewards.mean())
""",
    # counts a censored run as arrived
    "05-1": """
shares = [4 / 5, 3 / 5, 1 / 5, 0]
""",
    # goes to the last episode, whatever the cap
    "05-2": """
def area_under(curve, cap):
    return float(np.diff(curve.episode) @ curve.share[:-1])
""",
    # counts those that did not arrive as if they had
    "05-3": """
def careless_factor(a, b):
    return float(b.time.mean() / a.time.mean())
""",
    # the seeds of the recorded study once more
    "05-4": """
short = min(100, max_episodes)
rivals = plan.part("cartpole_actor_critic", max_episodes=short).configs
my_Q, my_R, expected_factor = 1e-4, 10.0, 1.0
my_filter = {"name": "kscore", "mode": "stream", "Q": my_Q, "R": my_R}
my_arms = {"mine": replace(rivals["kscore"], normalizer=my_filter), "running": rivals["running"]}
mine = study.run(my_arms, range(first_seed, first_seed + 5), f"{store}/exercise_05_4.jsonl", progress=False)
my_factor = analysis.compare(mine, "mine", "running").factor
""",
    # every δ, instead of their sum
    "06-1": """
timid = np.full(200, 0.5)
""",
    # forgets that the scores have a constant as well
    "06-2": """
def side(scores):
    return float(np.sign(1 - np.polyfit(returns, scores, 1)[0]))
""",
    # at 20, counts the arrival of its own run only
    "06-3": """
expected_arrivals = 1 * 3 / 6 + 1 * 2 / 5 + 1 * 1 / 3
""",
    # a large R alone: both arms turn the sign
    "06-4": """
quiet = plan.arm("replication", "refit", "gae", normalizer={"Q": 1e-4, "R": 1e4}, **settings)
loud = plan.arm("replication", "refit", "gae", normalizer={"Q": 1e-4, "R": 1e-4}, **settings)
mine = study.run({"quiet": quiet, "loud": loud}, range(3100, 3105), f"{store}/exercise_06_4.jsonl", progress=False)
""",
    # the advantages are still z-scored behind the second door
    "06-5": """
few = min(30, max_episodes)
at_the_critic = replace(released.configs["kscore"], max_episodes=few)
at_the_policy = replace(at_the_critic, signal="advantages")
doors = study.run({"critic": at_the_critic, "policy": at_the_policy}, range(3200, 3203), f"{store}/exercise_06_5.jsonl",
                  progress=False)
gap = analysis.areas(doors, "policy").mean() - analysis.areas(doors, "critic").mean()
""",
    # counts what was not seen within the cap as met at the cap
    "07-1": """
capped = stats.Times(np.array([400]), np.array([True])), stats.Times(np.array([500]), np.array([True]))
""",
    # a run that would have arrived later counts as arrived
    "07-2": """
def with_cap(times, cap):
    return stats.Times(np.minimum(times.time, cap), times.arrived)
""",
    # "in the middle" by eye: the restricted means differ
    "07-3": """
extreme = stats.Times(np.array([1, 1, 100, 100]), np.array([True, True, False, False]))
steady = stats.Times(np.array([50, 50, 50, 50]), np.array([True, True, True, True]))
p_value, p_tenfold = stats.logrank(extreme, steady), 0.0
why = "The curves cross, so that what one arm wins early it loses late."
""",
    # forgets that there are several arms
    "07-4": """
pilot = study.run({"running": replace(arms["running"], max_episodes=5)}, [3100, 3101], f"{store}/exercise_07_4.jsonl",
                  progress=False)
forecast_hours = pilot.seconds.sum() / pilot.episodes.sum() * max_episodes * seeds / 3600
why_it_misses = "Episodes become much longer as soon as the lander no longer crashes at once."
""",
    # a larger p gets a smaller adjusted value
    "08-1": """
five = [0.005, 0.03, 0.2 / 3, 0.05125, 0.3]
""",
    # draws pairs
    "08-2": """
def unpaired_interval(a, b, draws=10_000):
    chosen = np.random.default_rng(2).integers(len(a), size=(draws, len(a)))
    return tuple(np.quantile(b[chosen].mean(axis=1) / a[chosen].mean(axis=1), [0.025, 0.975]))


times_a = np.random.default_rng(4).gamma(4.0, 30.0, 50)
times_b = 1.5 * times_a
""",
    # forgets the other tail
    "08-3": """
most = 1
""",
    # the same arm is faster with every cap
    "08-4": """
early = stats.Times(np.array([10, 10, 20, 20]), np.array([True, True, True, True]))
late = stats.Times(np.array([200, 200, 200, 200]), np.array([True, True, True, True]))
tie = 300
""",
    # the returns of training, in which the policy also explores
    "08-5": """
def rate_study(rates, seeds, episodes):
    configs = {rate: replace(released.configs["zscore"], learning_rate=rate, max_episodes=episodes) for rate in rates}
    return pd.DataFrame({rate: {seed: np.mean(train(config, seed)["train_returns"]) for seed in seeds}
                         for rate, config in configs.items()})


ahead = 1.0
""",
    # no difference, so nothing to report
    "09-1": """
false_alarms = 0.0
""",
    # one direction only
    "09-2": """
eight_of_ten = (45 + 10 + 1) / 2**10
""",
    # the largest power instead of the smallest size
    "09-3": """
def seeds_needed(pilot, factor):
    return max(sizes, key=lambda n: power(pilot, factor, n, np.random.default_rng(n)))
""",
    # a plan of three words
    "09-4": """
seeds_an_arm, study_plan = 10, "More seeds, please."
""",
    # as if one arm alone varied
    "09-5": """
def pilot_study(arm, seeds, episodes):
    config = replace(arms[arm], criterion="evaluation", max_episodes=episodes)
    return np.array([np.mean(train(config, seed)["eval_returns"]) for seed in seeds])


def seeds_for(difference, values):
    return int(np.ceil((1.96 + 0.84) ** 2 * np.var(values, ddof=1) / difference**2))


for_100 = seeds_for(100, pilot_study("zscore", range(3200, 3204), 4))
""",
    # the product
    "10-1": """
def memory_number(Q, R):
    return Q * R
""",
    # the gain, not the decay
    "10-2": """
same_decay = filters.steady_state(0.01, 1.0).gain
""",
    # chooses and judges on the same seeds
    "10-3": """
def split_choice(frame):
    winner = analysis.best(frame)
    mean = float(stats.restricted_mean(analysis.times(frame, winner), frame.cap.max()))
    return mean, mean
""",
    # asks for nothing
    "10-4": """
further_runs = 0
request = "Nothing is unfair about it as long as the better method wins in the end, whatever the seeds, or how many."
""",
    # takes the lowest return, as if it were a time
    "10-5": """
def tune_and_judge(Qs, choosing, judging, episodes):
    configs = {Q: plan.arm("replication", "kscore", "actor_critic", normalizer={"Q": Q, "R": 1.0},
                           max_episodes=episodes) for Q in Qs}
    means = {Q: np.mean([train(config, seed)["eval_returns"] for seed in choosing])
             for Q, config in configs.items()}
    winner = min(means, key=means.get)
    config = configs[winner]
    return winner, means[winner], np.mean([train(config, seed)["eval_returns"] for seed in judging])


outcome = tune_and_judge([0.0001, 0.01, 1.0], range(3200, 3203), range(3300, 3303), 10)
""",
    # an interval around 1 taken for "we do not know"
    "11-1": """
verdict = "cannot be told"
""",
    # the wrong tail
    "11-2": """
def one_in_ten(factors):
    return float(np.quantile(factors, 0.1))


ppo_factor = one_in_ten(same["PPO, advantages z-scored"])
""",
    # a size, which is judged by another rule
    "11-3": """
doubted, larger_study, larger_q = "E1.2", stats.Interval(1.2, 1.07, 1.34, 400), 0.01
reason = ("The interval of fifty seeds is wide; with four hundred seeds it becomes narrow, and then an advantage "
          "of a fifth, if there is one, will be found.")
""",
    # divides by the mean square: the root is missing
    "12-1": """
def episode_scores(returns, level, log_square):
    return (returns - level) / np.exp(log_square)
""",
    # the smallest surprises, however sure the filter was of itself
    "12-2": """
def best_ratio(z, candidates):
    def squares(candidate):
        path = filters.filter_series(z[1:], candidate, 1.0, start=filters.Belief(z[0], 1.0))
        return np.mean((z[1:] - path.prior_mean) ** 2 / (path.prior_var + 1))

    return min(candidates, key=squares)
""",
    # the memory, whatever share may be missing
    "12-3": """
def episodes_after_jump(ratio, left):
    return int(np.ceil(1 / filters.steady_state(ratio, 1.0).gain))


wait = episodes_after_jump(0.1, 0.1)
""",
    # the ratio of one door only
    "12-4": """
def ratio_study(ratios, seeds, episodes):
    form = plan.part("episodes_ppo_slower").configs["episode_both"]
    configs = {value: replace(form, max_episodes=episodes, normalizer=form.normalizer | {"ratio": value})
               for value in ratios}
    return pd.DataFrame({value: {number: np.mean(train(config, number)["eval_returns"]) for number in seeds}
                         for value, config in configs.items()})


small = ratio_study([0.01, 1.0], [3900, 3901, 3902], 12)
ahead = float(np.mean(small[1.0] > small[0.01]))
""",
    # variances as if they were deviations
    "13-1": """
def in_other_units(Q, R, c):
    return c * Q, c * R, filters.steady_state(Q, R).gain
""",
    # each filter's doubts, and not that they disagree
    "13-2": """
def mixture(weights, means, variances):
    return weights @ means, weights @ variances
""",
    # every noise is the fixed one
    "13-3": """
def noise_study(noises, seeds, episodes):
    form = plan.part("episodes_actor_critic_slower").configs["episode"]
    config = replace(form, max_episodes=episodes)
    return pd.DataFrame({noise: {number: np.mean(train(config, number)["eval_returns"]) for number in seeds}
                         for noise in noises})


small = noise_study(["fixed", "bank"], [3200, 3201, 3202], 15)
ahead = float(np.mean(small["bank"] > small["fixed"]))
""",
    # deviations add up instead of variances
    "14-1": """
def noise_of_return(deviation, discount, left):
    return float(deviation * np.sum(discount ** np.arange(left)))
""",
    # rounded down
    "14-2": """
def half_way(before, K):
    return before, int(np.log(0.5) / np.log(1 - K))
""",
    # the failure is scored after the success has been learned from
    "14-3": """
def gap(name):
    normalizer = normalizers.make(name)
    for count in range(20):
        normalizer(np.array([float(count % 2)]))
    return float(normalizer(np.array([1.0]))[0] - normalizer(np.array([0.0]))[0])
""",
    # every arm is the first
    "14-4": """
def bandit_study(names, some_seeds, episodes):
    made = plan.part("short_bandit_reinforce", max_episodes=episodes, stop=False).configs
    return pd.DataFrame({name: {number: np.mean(train(made[names[0]], number)["train_returns"])
                                for number in some_seeds} for name in names})


small = bandit_study(["running", "zscore"], [3900, 3901, 3902], 300)
ahead = float(np.mean(small["running"] > small["zscore"]))
""",
    # the scale is carried over, the centre is forgotten
    "15-1": """
def rewritten(weight, bias, old, new):
    return weight * old[1] / new[1], bias * old[1] / new[1]
""",
    # the mean of all groups: nothing drifts, and no belief was there before
    "15-2": """
def expected_reward(means, ratio):
    return float(np.mean(means)) if len(means) else 0.0
""",
    # variances as if they were deviations
    "15-3": """
def episodes_until(seen, factor, excess):
    wanted = factor / (1 + excess)
    return max(0, int(np.ceil(seen * (wanted - 1) / (factor - wanted))))


wait = episodes_until(100, 10.0, 0.1)
""",
    # groups of twelve
    "15-4": """
def form_study(forms, seeds, updates):
    configs = {form: SumsConfig(form=form, updates=updates, examples=60) for form in forms}
    return pd.DataFrame({form: {number: np.mean(train_sums(config, number)["curve"]) for number in seeds}
                         for form, config in configs.items()})


small = form_study(["prompt_filter", "krpo"], [3900, 3901, 3902], 40)
ahead = float(np.mean(small["prompt_filter"] > small["krpo"]))
""",
    # by the deviation, not by its logarithm
    "16-1": """
def log_density_gradient(mean, log_std, action):
    std = np.exp(log_std)
    return (action - mean) / std**2, (((action - mean) / std) ** 2 - 1) / std
""",
    # the clipped number, as if it had been drawn
    "16-2": """
def clipped_gradient(mean, std, action):
    return (action.clip(-1, 1) - mean) / std**2
""",
    # what lies between the means is forgotten
    "16-3": """
def louder(means, deviations):
    return np.sqrt(np.mean(np.square(deviations))) / np.asarray(deviations)


upright = float(louder(np.array([-60, -50, -70, -1]), np.array([25, 20, 25, 0.05]))[-1])
""",
    # every size is four
    "16-4": """
def batch_study(sizes, seeds, episodes):
    arm = replace(plan.part("continuous_pendulum").configs["running"], max_episodes=episodes)
    return pd.DataFrame({count: {number: np.mean(train(arm, number)["train_returns"]) for number in seeds}
                         for count in sizes})


small = batch_study([2, 8], [3900, 3901, 3902], 48)
ahead = float(np.mean(small[2] > small[8]))
""",
    # the rate at which some arm does best, not the one that is best over all
    "17-1": """
def common_rate(tried):
    means = {setting: mean for own in tried.values() for setting, mean in own.items()}
    return min(means, key=means.get).rate
""",
    # the best setting of each cell, averaged over settings instead of cells
    "17-2": """
def lost_by_one_setting(table, cap):
    table = np.asarray(table, float)
    return float((table.mean(axis=1).min() - table.min(axis=0).mean()) / cap)
""",
    # the deviation of a run, not that of a mean of runs
    "17-3": """
def luck(settings, runs, spread):
    z = np.linspace(-8, 8, 4001)
    normal = distributions.norm
    density = settings * normal.pdf(z) * normal.sf(z) ** (settings - 1)
    return float(-(z * density).sum() * (z[1] - z[0]) * spread / runs)


enough = next(n for n in range(1, 1000) if luck(8, n, 60.0) < 10)
""",
    # every rate is that of the preset
    "17-4": """
def rate_study(rates, some_seeds, episodes):
    arm = plan.arm("contest", "episode_filter", "actor_critic", max_episodes=episodes)
    return pd.DataFrame({rate: {number: np.mean(train(arm, number)["train_returns"]) for number in some_seeds}
                         for rate in rates})


small = rate_study([0.001, 0.01], [3900, 3901, 3902], 40)
ahead = float(np.mean(small[0.01] > small[0.001]))
""",
    # evaluates in scaled rewards, and with a scale that knows nothing
    "18-1": """
def to_evaluate_in(task, trained):
    return VecKScore(make_vec_env(task), training=False, norm_obs=trained.norm_obs, gamma=trained.gamma)
""",
    # the deviation of the sums that VecNormalize follows, forwards in time
    "18-2": """
def next_divisor(rewards, gamma):
    learned = []
    for episode in rewards:
        total = 0.0
        for reward in episode:
            total = gamma * total + reward
            learned.append(total)
    return float(np.std(learned))
""",
    # as if all lanes together were one
    "18-3": """
def share_without_scale(length, lanes, steps):
    return min(1.0, length / steps)


hovering = share_without_scale(1000, 16, 131_072)
""",
    # the last evaluation, not the mean of all
    "18-4": """
def arm_study(names, numbers, steps):
    configs = {name: replace(sb3_study.TrialConfig.preset("CartPole-v1", name), steps=steps, every=512)
               for name in names}
    return pd.DataFrame({name: {one: sb3_study.train_trial(config, one)["returns"][-1] for one in numbers}
                         for name, config in configs.items()})


small = arm_study(["veckscore", "vecnormalize"], [3900, 3901, 3902], 2048)
ahead = float(np.mean(small["veckscore"] > small["vecnormalize"]))
""",
}
