#!/usr/bin/env python3
"""Reads a file that --timeline wrote, and says what it shows: its lanes, and how much of the time the CPU's experts ran
while the device or the link was busy. Ends with an error where it is no sound timeline."""
import json, sys

LANES = ("device", "link", "cpu", "planner")


def overlap_us(ours, others):
    """Time of `ours` during which one of `others` runs too; both are (begin, end)."""
    merged = []
    for begin, end in sorted(others):
        if merged and begin <= merged[-1][1]:
            merged[-1][1] = max(end, merged[-1][1])
        else:
            merged.append([begin, end])
    return sum(max(0.0, min(end, b[1]) - max(begin, b[0])) for begin, end in ours for b in merged)


def read(path):
    """Lists of (begin, end) in microseconds, by lane."""
    with open(path) as file:
        data = json.load(file)
    names, lanes = {}, {}
    for event in data["traceEvents"]:
        if event["ph"] == "M":
            names[event["tid"]] = event["args"]["name"]
            lanes[event["args"]["name"]] = []
            continue
        assert event["ph"] == "X" and event["dur"] >= 0 and event["ts"] >= 0 and event["name"], event
        lanes[names[event["tid"]]].append((event["ts"], event["ts"] + event["dur"]))
    assert tuple(lanes) == LANES, f"the lanes are {list(lanes)}, must be {list(LANES)}"
    return lanes


def main():
    lanes = read(sys.argv[1])
    for lane, events in lanes.items():
        assert events, f"the lane '{lane}' is empty"
    end = max(event[1] for events in lanes.values() for event in events)
    busy = {lane: sum(b - a for a, b in events) for lane, events in lanes.items()}
    both = overlap_us(lanes["cpu"], lanes["device"] + lanes["link"])
    print(", ".join(f"{lane} {len(events)} events {100 * busy[lane] / end:.0f} %" for lane, events in lanes.items())
          + f" of {end / 1000:.1f} ms; the CPU's experts ran {100 * both / busy['cpu']:.0f} % beside device or link")


if __name__ == "__main__":
    main()
