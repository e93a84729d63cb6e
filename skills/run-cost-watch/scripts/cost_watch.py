#!/usr/bin/env python3
"""Compare a run's spending with its budget; answers a control signal as JSON.

Exit codes: 0 continue, 1 pause or cancel, 2 usage or unreadable.
"""
import argparse
import collections
import json
import sys


def load(name):
    with open(name, encoding="utf-8") as handle:
        return json.load(handle)


def records(name):
    handle = sys.stdin if name == "-" else open(name, encoding="utf-8")
    with handle:
        for number, line in enumerate(handle, 1):
            if line.strip():
                try:
                    record = json.loads(line)
                    yield (str(record["step"]), str(record["model"]),
                           int(record.get("input_tokens", 0)), int(record.get("output_tokens", 0)))
                except (ValueError, KeyError, TypeError) as error:
                    raise ValueError(f"{name}:{number}: no usage record ({error})") from error


def main():
    parser = argparse.ArgumentParser(description="Compare a run's spending with its budget.")
    parser.add_argument("usage", help="JSON Lines: step, model, input_tokens, output_tokens; - reads stdin")
    parser.add_argument("--prices", required=True, help="JSON: model -> {input, output} per million tokens")
    parser.add_argument("--budget", type=float, required=True)
    parser.add_argument("--pause-at", type=float, default=0.8, metavar="SHARE", help="share of the budget that pauses (0.8)")
    parser.add_argument("--steps-left", type=int, default=0)
    args = parser.parse_args()
    if args.budget <= 0 or not 0 < args.pause_at <= 1:
        print("--budget must be above 0 and --pause-at between 0 and 1", file=sys.stderr)
        return 2
    steps, unpriced = collections.Counter(), set()
    try:
        prices = load(args.prices)
        for step, model, tokens_in, tokens_out in records(args.usage):
            if model not in prices:
                unpriced.add(model)
                continue
            price = prices[model]
            steps[step] += (tokens_in * price["input"] + tokens_out * price["output"]) / 1e6
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"cannot read: {error}", file=sys.stderr)
        return 2
    spent = sum(steps.values())
    share = spent / args.budget
    if share >= 1:
        control, reason = "cancel", "the budget is used up"
    elif unpriced:
        control, reason = "pause", "no price for " + ", ".join(sorted(unpriced))
    elif share >= args.pause_at:
        control, reason = "pause", f"{share:.0%} of the budget is used"
    else:
        control, reason = "none", f"{share:.0%} of the budget is used"
    mean = spent / len(steps) if steps else 0.0
    print(json.dumps({"control": control, "reason": reason, "spent": round(spent, 6), "budget": args.budget,
                      "forecast": round(spent + mean * args.steps_left, 6),
                      "by_step": {step: round(cost, 6) for step, cost in steps.most_common()}}))
    return 0 if control == "none" else 1


if __name__ == "__main__":
    sys.exit(main())
