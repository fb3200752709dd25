"""Checks whether a reproduction of PipeTransformer has the results of expected.json."""
import statistics

from published import Table, ask

from concertina import study_results


def is_plain(arm):
    """Returns whether the arm freezes nothing."""
    return arm.startswith("static")


class Verdicts:
    """The verdicts on a finished reproduction."""

    def __init__(self, work):
        self.form, self.study, self.expected = work.form, work.study, work.expected
        self.epochs, self.arms = work.task.epochs, work.arms()

    def front(self, baseline):
        """Compares groups by name with `baseline`: gain in seconds, change of the metric, equivalence."""
        metric = self.expected["metric"]
        said = ask("study", "table", self.study, "--baseline", f"arm={baseline}", "--front", f"train_s,{metric}",
                          "--equivalent", f"{metric}={self.expected['margin']}")
        return {point["name"]: point for point in said["front"]["points"]}

    def seconds_to(self, target):
        """Returns by arm the mean seconds to `target`, which is "baseline" or "baseline-NUMBER": relative to
        the final value of the unfrozen run of the same seed. Omits arms that miss it with some seed."""
        said = ask("study", "table", self.study, "--baseline", "arm=static", "--to", f"{self.expected['metric']}={target}")
        column, = (metric["name"] for metric in said["metrics"] if metric["name"].startswith("time_to_"))
        means = {group["values"]["arm"]: group["metrics"][column].get("mean") for group in said["groups"]}
        return {arm: mean for arm, mean in means.items() if mean is not None}

    def rungs(self):
        """Returns the finished runs of the ladder."""
        return [run for run in study_results(self.study).runs if run.state == "done" and run.settings["arm"].startswith("ladder")]

    def hashes(self):
        """Returns by seed the hashes of the ladder's rungs."""
        said = {}
        for run in self.rungs():
            said.setdefault(run.text("run.seed"), set()).add(run.text("state_sha256"))
        return said

    def ceilings(self):
        """Returns by rung of the ladder the largest possible gain over the static pipeline, from F,
        I and W of a run that freezes at that rung: means over seeds."""
        found = [self.ceilings_by(run.directory) for run in self.rungs() if run.settings["arm"] == "ladder: freeze"]
        return {rung: statistics.fmean(one[rung] for one in found) for rung in found[0]}

    def ceilings_by(self, run):
        keys = [f"{key}={value}" for key, value in self.arms["ladder: freeze"].items() if key in ("freeze.max", "freeze.alpha", "freeze.rounding")]
        ladder = ask("plan", "freeze", run, "--policy", "pipetransformer", "--world", 2, "--epochs", self.epochs, "--costs", run,
                     "elastic.policy=predicted", *keys)["ladder"]
        return {rung["rung"]: rung["ceiling_over_static"] for rung in ladder[1:]}

    def claim_gains(self, table, over_static, over_gpipe):
        """Checks that the arms named by expected.json for this form, or else the fastest equivalent one, are
        equivalent to the unfrozen run, and as much faster than the static layouts as expected."""
        want = self.expected
        alike = [name for name, point in over_static.items() if point.get("equivalence", {}).get("verdict") == "equivalent"]
        fastest = {plain: max((name for name in alike if is_plain(name) == plain), default=None,
                              key=lambda name: over_static[name]["gain"]) for plain in (False, True)}
        print(f"\n{want['metric']} within {want['margin']} of the unfrozen run's: {', '.join(alike) or 'no arm'}")
        if not fastest[False]:
            table.claim("an arm that freezes is equivalent to the unfrozen run", False)
        for name in want[self.form].get("claims", [fastest[False]] if fastest[False] else []):
            if name not in over_static:
                table.claim(f"{name}: was not run (--arms), so its claim is not confirmed", False)
                continue
            gains = over_gpipe[name]["gain"], over_static[name]["gain"]
            table.claim(f"{name}: {over_static[name]['equivalence']['verdict']}, {gains[0]:.2f} x static gpipe (at least "
                        f"{want['over_gpipe']}), {gains[1]:.2f} x the best static layout (at least {want['over_static']})",
                        name in alike and gains[0] >= want["over_gpipe"] and gains[1] >= want["over_static"])
        if all(fastest.values()):
            gains = {plain: over_static[name]["gain"] for plain, name in fastest.items()}
            table.claim(f"{fastest[False]} is {gains[False] / gains[True]:.2f} x as fast as {fastest[True]}, the fastest "
                        "that is equivalent and freezes nothing", gains[False] > gains[True])

    def claim_time(self, table, arms_run, target, words, expected=True):
        """Checks whether the first freezing arm reaches the target before the first other arm.
        `expected`: whether expected.json says that one reaches it with every seed."""
        metric, reached = self.expected["metric"], self.seconds_to(target)
        ours, theirs = (min((name for name in arms_run if name in reached and is_plain(name) == plain),
                            key=reached.get, default=None) for plain in (False, True))
        if ours and theirs:
            table.claim(f"seconds to {words} {metric}: {reached[ours]:.1f} by {ours}, {reached[theirs]:.1f} by {theirs}, "
                        "the soonest without freezing", reached[ours] < reached[theirs])
        else:
            table.claim(f"{ours or 'no arm that freezes'} reaches {words} {metric} with every seed (expected: "
                        f"{'an arm' if expected else 'none'})", (ours is not None) == expected)

    def claim_ladder(self, table, over_gpipe):
        ceilings = self.ceilings() if "ladder: freeze" in over_gpipe else {}
        least = self.expected[self.form].get("share", self.expected["share"])
        for rung, most in ceilings.items():
            point = over_gpipe.get(f"ladder: {'' if rung == 'freeze' else '+ '}{rung}")
            if point:
                share = point["gain"] / most
                words = f"ladder, {rung}: {point['gain']:.2f} x static gpipe, {share:.0%} of its ceiling of {most:.2f}"
                if least is None:  # the runs are too short to tell
                    print(words)
                else:
                    table.claim(f"{words} (at least {least:.0%})", share >= least)
        if hashes := self.hashes():
            table.claim(f"all rungs of the ladder have the same bits, with each of {len(hashes)} seeds",
                        all(len(one) == 1 for one in hashes.values()))

    def say(self):
        table, margin = Table(), self.expected["margin"]
        over_static, over_gpipe = self.front("static"), self.front("static gpipe")
        self.claim_gains(table, over_static, over_gpipe)
        expected = self.expected[self.form].get("reaches_final", True)
        if expected is not None:  # null: there are too few seeds to tell
            self.claim_time(table, over_static, "baseline", "the unfrozen run's final", expected)
        self.claim_time(table, over_static, f"baseline-{margin}", f"{margin} below the unfrozen run's final")
        self.claim_ladder(table, over_gpipe)
        table.end()
